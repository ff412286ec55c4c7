"""The masks of Procgen's games: tables 1 to 4 of the paper (A.6) as data, with each class' sprites and drawn colours.

"Diagnosing and exploiting the computational demands of videos games for deep reinforcement learning", A.6. A row here
is a row there, in its order and with its numbers; a sprite is a PNG below the wheel's `data/assets`, braces stand for
alternatives, and a colour is one that the game draws without a sprite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

Colour = tuple[int, int, int]

BACKGROUND = "background"
MASKS = ("figure_ground", "semantic")


@dataclass(frozen=True)
class Entity:
    """One class of the semantic tables.

    `patterns` are its sprites, `colours` what is drawn without one. `by` says, where sprites alone cannot tell the
    class, what of the game's state does.
    """

    name: str
    patterns: tuple[str, ...] = ()
    colours: tuple[Colour, ...] = ()
    by: str = ""

    @property
    def sprites(self) -> tuple[str, ...]:
        """The files, as paths below the assets' folder."""
        return tuple(name for pattern in self.patterns for name in expand(pattern))


@dataclass(frozen=True)
class Table:
    """A game's masks: the semantic classes, numbered from 1; and which of them figure-ground holds apart.

    `apart` lists the figure-ground classes by the semantic ones they are made of; all other classes are the last one.
    `see_through` are effects that the paper's tables do not list: what lies behind them is shown.
    `brightest` is shown with the last label's grey, which takes its own: chaser's squares, which the game draws pure
    green, become white without being looked for.
    """

    entities: tuple[Entity, ...]
    apart: tuple[tuple[str, ...], ...] = ()
    see_through: tuple[str, ...] = ()
    brightest: str = ""

    def names(self, view: str) -> tuple[str, ...]:
        """The names of a mask's labels; label 0 is the background."""
        if view == "semantic":
            return (BACKGROUND, *(entity.name for entity in self.entities))
        return (BACKGROUND, *(" / ".join(group) for group in self.apart), "all other entities")

    def labels(self, view: str) -> dict[str, int]:
        """Semantic class -> its label in a view."""
        if view == "semantic":
            return {entity.name: number for number, entity in enumerate(self.entities, 1)}
        of_group = {name: number for number, group in enumerate(self.apart, 1) for name in group}
        return {entity.name: of_group.get(entity.name, len(self.apart) + 1) for entity in self.entities}

    def intensities(self, view: str) -> tuple[int, ...]:
        """The grey of each label: evenly spread, 0 for the background and 255 for the last (or the brightest)."""
        last = len(self.names(view)) - 1
        greys = [255 * label // last for label in range(last + 1)]
        if self.brightest and view == "semantic":
            label = self.labels(view)[self.brightest]
            greys[label], greys[last] = greys[last], greys[label]
        return tuple(greys)

    @property
    def sprites(self) -> tuple[str, ...]:
        """Every file that the game draws."""
        own = dict.fromkeys(name for entity in self.entities for name in entity.sprites)
        return (*own, *(name for pattern in self.see_through for name in expand(pattern)))


def expand(pattern: str) -> Iterator[str]:
    """The names that a pattern with braces stands for."""
    parts = [part.strip("{}").split(",") for part in re.findall(r"\{[^}]*\}|[^{}]+", pattern)]
    return ("".join(choice) + ".png" for choice in product(*parts))


EXPLOSIONS = "misc_assets/explosion{1,2,3,4,5}"
METEORS = ("misc_assets/spaceMeteors_00{1,2,3,4}", "misc_assets/meteorGrey_big{1,2,3,4}")
LASERS = "misc_assets/{laserGreen14,laserRed11,laserBlue09}"
FLYERS = "misc_assets/spaceShips_00{1,2,3,4,5,6,7}"
SHIPS = "misc_assets/ship_{1,2,3,4,5,6}"
PUFFS = "misc_assets/spaceEffect{1,2,3,4,5,6,7,8,9}"
PLATFORMS = ("platformer/tile{Blue,Green}_0{5,8}", "platformer/tile{Yellow,Brown}_0{6,9}")

# The paper's tables 1 and 2 (semantic) by the entities, 3 and 4 (figure/ground) by what is held apart.
TABLES: Mapping[str, Table] = {
    "bigfish": Table(
        (
            Entity("player", ("misc_assets/fishTile_072",)),
            Entity("other fish", ("misc_assets/fishTile_0{74,78,80}",)),
        )
    ),
    "bossfight": Table(
        (
            Entity(
                "player", ("misc_assets/playerShip1_{blue,green}", "misc_assets/{playerShip2_orange,playerShip3_red}")
            ),
            Entity("player projectiles", (LASERS,), by="who fired"),
            Entity("enemy", ("misc_assets/enemyShip{Black1,Blue2,Green3,Red4}",)),
            Entity("enemy projectiles", (LASERS,), by="who fired"),
            Entity("enemy's shield", ("misc_assets/shield2",)),
            Entity("meteors", METEORS),
            Entity("explosions", (EXPLOSIONS,)),
        )
    ),
    "caveflyer": Table(
        (
            Entity("player", ("misc_assets/playerShip1_red",)),
            Entity("enemy ships", ("misc_assets/enemyShipBlue4",)),
            Entity("player projectiles", ("misc_assets/laserBlue02",)),
            Entity("targets", ("misc_assets/ufoRed2",)),
            Entity("goal landing pad", ("misc_assets/ufoGreen2",)),
            Entity("meteors", ("misc_assets/meteorBrown_big1",)),
            Entity("explosions", (EXPLOSIONS,)),
            Entity("terrain", ("misc_assets/groundA",)),
        ),
        see_through=("misc_assets/towerDefense_tile295",),  # the ship's exhaust
    ),
    "chaser": Table(
        (
            Entity("player", ("misc_assets/enemyFloating_1b",)),
            Entity("enemies", ("misc_assets/enemyFlying_{1,2,3}",)),
            Entity("weakened enemies", ("misc_assets/enemyWalking_1b",)),
            Entity("enemy eggs", ("misc_assets/enemySpikey_1b",)),
            Entity("small squares", colours=((0, 255, 0),)),
            Entity("large stars", ("misc_assets/yellowCrystal",)),
            Entity("walls", ("misc_assets/tileStone_slope",)),
        ),
        brightest="small squares",
    ),
    "climber": Table(
        (
            Entity("player", ("platformer/player{Blue,Green,Grey,Red}_{stand,walk1,walk2,walk4}",)),
            # The barriers between which they patrol are not drawn by the game.
            Entity("enemies", ("platformer/enemySwimming_{1,2}",)),
            Entity("star rewards", ("platformer/yellowCrystal",)),
            Entity("walls, ground and platforms", PLATFORMS),
        )
    ),
    "coinrun": Table(
        (
            Entity(
                "player",
                tuple(
                    f"kenney/Players/128x256/{colour}/alien{colour}_{{stand,jump,walk1,walk2}}"
                    for colour in ("Beige", "Blue", "Green", "Pink", "Yellow")
                ),
            ),
            Entity(
                "enemies",
                tuple(
                    f"kenney/Enemies/{name}{move}"
                    for name in (
                        *("slimeBlock", "slimePurple", "slimeBlue", "slimeGreen", "mouse"),
                        *("snail", "ladybug", "wormGreen", "wormPink"),
                    )
                    for move in ("", "_move")
                ),
            ),
            Entity("enemy barriers"),  # the game never draws them: the paper's entry has no pixels
            Entity("saws", ("kenney/Enemies/sawHalf", "kenney/Enemies/sawHalf_move")),
            Entity("lava", ("kenney/Tiles/lava", "kenney/Tiles/lavaTop_low")),
            Entity("goal star", ("kenney/Items/coinGold",)),
            Entity("crates", ("kenney/Tiles/boxCrate", "kenney/Tiles/boxCrate_{double,single,warning}")),
            Entity(
                "walls and ground",
                tuple(
                    f"kenney/Ground/{kind}/{kind.lower()}{{Mid,Center}}"
                    for kind in ("Dirt", "Grass", "Planet", "Sand", "Snow", "Stone")
                ),
            ),
        ),
        see_through=("misc_assets/iconCircle_white",),  # the trail of whoever moves
    ),
    "dodgeball": Table(
        (
            Entity("player", ("misc_assets/character12",)),
            Entity("player projectiles", ("misc_assets/ball_soccer1",)),
            Entity("enemies", ("misc_assets/character{1,2,3,4,5,6,7,8,9,10,11}",)),
            Entity("enemy projectiles", ("misc_assets/ball_soccer2",)),
            Entity("locked exit", ("misc_assets/blockRed",)),
            Entity("unlocked exit", ("misc_assets/blockGreen",)),
            Entity("walls", ("misc_assets/tileStone_slope2",)),
        ),
        see_through=(PUFFS,),  # the dust that an enemy leaves
    ),
    "fruitbot": Table(
        (
            Entity("player", ("misc_assets/robot_3Dblue",)),
            Entity("player projectiles", ("misc_assets/keyRed2",)),
            Entity("rewarding objects", ("misc_assets/fruit{1,2,3,4,5,6}",)),
            Entity("penalizing objects", ("misc_assets/food{1,2,3,4,5,6}",)),
            Entity("locks", ("misc_assets/lockRed2",)),
            Entity("locked doors", ("misc_assets/fenceYellow",)),
            Entity("goal", ("misc_assets/present{1,2,3}",)),
            Entity("barriers and terrain", ("misc_assets/tileStone_slope",)),
        )
    ),
    "heist": Table(
        (
            Entity("player", ("misc_assets/spaceAstronauts_008",)),
            Entity("blue keys and locks", ("misc_assets/{keyBlue,lock_blue}",)),
            Entity("green keys and locks", ("misc_assets/{keyGreen,lock_green}",)),
            Entity("red keys and locks", ("misc_assets/{keyRed,lock_red}",)),
            Entity("goal crystal", ("misc_assets/gemYellow",)),
            Entity("walls", ("kenney/Ground/Dirt/dirtCenter",)),
        ),
        apart=(("blue keys and locks",), ("green keys and locks",), ("red keys and locks",)),
    ),
    "jumper": Table(
        (
            Entity("player", ("misc_assets/bunny2_{ready,jump,walk1,walk2}",)),
            Entity("spikes", ("misc_assets/spikeMan_stand",)),
            Entity("goal", ("misc_assets/carrot",)),
            Entity("compass needle and distance bar", colours=((252, 186, 3),)),
            Entity("compass circle", colours=((168, 166, 158),)),
            Entity("terrain", PLATFORMS),
        ),
        apart=(("compass needle and distance bar",), ("compass circle",)),
        see_through=("misc_assets/iconCircle_white",),  # the trail; the puff of a jump is drawn by the game and undone
    ),
    "leaper": Table(
        (
            Entity("player", ("misc_assets/frog{1,2,4,6,7}",)),
            Entity("cars", ("misc_assets/car_{yellow_5,black_1,blue_2,green_3,red_4}",)),
            Entity("road", ("misc_assets/roadTile6b",)),
            Entity("log platforms", ("misc_assets/elementWood044",)),
            Entity("water", ("misc_assets/terrainTile6",)),
            Entity("finish line", ("misc_assets/finish2",)),
        ),
        apart=(("road", "water"),),
    ),
    "maze": Table(
        (
            Entity("player", ("kenney/Enemies/mouse_move",)),
            Entity("goal cheese", ("misc_assets/cheese",)),
            Entity("walls", ("kenney/Ground/Sand/sandCenter",)),
        )
    ),
    "miner": Table(
        (
            Entity("player", ("misc_assets/robot_greenDrive1",)),
            Entity("boulders", ("misc_assets/elementStone007",)),
            Entity("crystals", ("misc_assets/gemBlue",)),
            Entity("exit", ("misc_assets/window",)),
            Entity("dirt", ("misc_assets/dirt",)),
        ),
        see_through=("misc_assets/tile_bricksGrey",),  # what lies around the world, in sight in memory mode only
    ),
    "ninja": Table(
        (
            Entity("player", ("platformer/zombie_{idle,jump,walk1,walk2}",)),
            Entity("player projectiles", ("misc_assets/saw",)),
            Entity("goal mushroom", ("platformer/shroom{1,2,3,4,5,6}",)),
            Entity("bombs", ("misc_assets/bomb",)),
            Entity("explosions", (EXPLOSIONS,)),
            Entity("jump charge bar", colours=((66, 245, 135),)),
            Entity("walls, ground and platforms", ("misc_assets/tile_bricks{Grey,Grown,Red}",)),
        ),
        apart=(("jump charge bar",),),
    ),
    "plunder": Table(
        (
            Entity("player and ally ships", (SHIPS,), by="the level's cue"),
            Entity("player projectiles", ("misc_assets/cannonBall",)),
            Entity("enemy ships and cue", (SHIPS,), by="the level's cue"),
            Entity("circle behind the cue", ("misc_assets/target_red2",)),
            Entity("barriers", ("misc_assets/panel_wood",)),
            Entity("explosions", (EXPLOSIONS,)),
            Entity("time bar", colours=((66, 245, 135),)),
            Entity("points bar", colours=((245, 66, 144),)),
        ),
        apart=(("player and ally ships",), ("enemy ships and cue",), ("time bar",), ("points bar",)),
    ),
    "starpilot": Table(
        (
            Entity("player", ("misc_assets/playerShip2_blue",)),
            Entity("player projectiles", ("misc_assets/towerDefense_tile295",)),
            Entity("slow flyers", (FLYERS,), by="its kind"),
            Entity("fast flyers", (FLYERS,), by="its kind"),
            Entity("flyer projectiles", ("misc_assets/towerDefense_tile296",)),
            Entity("turrets", ("misc_assets/spaceStation_01{8,9}",)),
            Entity("turret projectiles", ("misc_assets/towerDefense_tile297",)),
            Entity("meteors", METEORS),
            Entity("clouds", (PUFFS,)),
            Entity("finish line", ("misc_assets/spaceRockets_00{1,2,3,4}",)),
            Entity("explosions", (EXPLOSIONS,)),
        )
    ),
}
GAMES = tuple(TABLES)
