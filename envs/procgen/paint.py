"""Which colour every sprite is painted with in a mask, and which skins (folders of painted sprites) that makes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from lcd.envs.procgen.mask_tables import FLYERS, LASERS, MASKS, SHIPS, TABLES, Colour, expand

Paint = Mapping[str, Colour | None]
"""Sprite -> its colour; None for one that is see-through."""

# Colours of sprites that stand for several classes, and what tells them apart in `lcd.envs.procgen.decode`. Blue above
# green marks a special pixel even where such a sprite fades over another, because every other sprite is grey.
PLAYER_LASER: Colour = (255, 0, 255)
BOSS_LASER: Colour = (0, 0, 255)
FLYER: Colour = (0, 0, 255)
SHIP_STEP = 40

# The shield is drawn half transparent over the enemy: its rim is kept, so that the enemy stays in sight.
LEAST_OPACITY = {"misc_assets/shield2.png": 64}
OPAQUE = 128


def ship_colour(theme: int) -> Colour:
    """The colour of plunder's ship number `theme`: the level says whose it is."""
    return (SHIP_STEP * (theme + 1), 0, 255)


@lru_cache
def paint(game: str, view: str) -> Paint:
    """The colours of a game's sprites in a mask."""
    table, greys, labels = TABLES[game], TABLES[game].intensities(view), TABLES[game].labels(view)
    colours: dict[str, Colour | None] = dict.fromkeys(table.sprites)
    for entity in table.entities:
        for sprite in entity.sprites:
            colours[sprite] = (greys[labels[entity.name]],) * 3
    if game == "bossfight" and view == "semantic":
        colours |= zip(expand(LASERS), (PLAYER_LASER, BOSS_LASER, BOSS_LASER), strict=True)
    if game == "starpilot" and view == "semantic":
        colours |= dict.fromkeys(expand(FLYERS), FLYER)
    if game == "plunder":
        colours |= {sprite: ship_colour(theme) for theme, sprite in enumerate(expand(SHIPS))}
    return colours


@lru_cache
def skins() -> tuple[dict[str, Colour | None], ...]:
    """As few skins as hold every game and mask: masks share one where they agree on the sprites that they share."""
    made: list[dict[str, Colour | None]] = []
    for view in MASKS:
        for game in TABLES:
            wanted = paint(game, view)
            for skin in made:
                if all(skin.get(sprite, colour) == colour for sprite, colour in wanted.items()):
                    skin |= wanted
                    break
            else:
                made.append(dict(wanted))
    return tuple(made)


def skin_of(game: str, view: str) -> dict[str, Colour | None]:
    """The skin that draws a game's mask."""
    wanted = paint(game, view)
    return next(skin for skin in skins() if wanted.items() <= skin.items())
