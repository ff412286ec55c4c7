"""A second way to the masks: every entity and grid cell of the game's state, drawn by the sprite's outline.

It knows types and sprites by Procgen's numbers and takes nothing from the tables of `lcd.envs.procgen`, nor from how a
mask is made. What a pixel shows is decided here in floating point and there by Qt: outlines may differ by a pixel.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from imageio.v3 import imread

from lcd.envs.procgen.skins import wheel
from lcd.envs.procgen.snapshot import Snapshot, cue_theme, keys_held

SIDE, SEAM = 64, 0.02
NOTHING = "nothing"
EXPLOSIONS = {54 + n: [f"misc_assets/explosion{n + 1}"] for n in range(5)}
METEORS = [f"misc_assets/{name}{n}" for name in ("spaceMeteors_00", "meteorGrey_big") for n in (1, 2, 3, 4)]
LASERS = [f"misc_assets/laser{name}" for name in ("Green14", "Red11", "Blue09")]
TOPS = [f"platformer/tile{name}" for name in ("Blue_05", "Green_05", "Yellow_06", "Brown_06")]
MIDDLES = [f"platformer/tile{name}" for name in ("Blue_08", "Green_08", "Yellow_09", "Brown_09")]
GROUNDS = ("Dirt", "Grass", "Planet", "Sand", "Snow", "Stone")
WALKERS = ["slimeBlock", "slimePurple", "slimeBlue", "slimeGreen", "mouse", "snail", "ladybug", "wormGreen", "wormPink"]
ALIENS = ("Beige", "Blue", "Green", "Pink", "Yellow")


def misc(*names: str) -> list[str]:
    return [f"misc_assets/{name}" for name in names]


# Image type -> its sprites, by theme.
SPRITES: dict[str, dict[int, list[str]]] = {
    "bigfish": {0: misc("fishTile_072"), 2: misc("fishTile_074", "fishTile_078", "fishTile_080")},
    "bossfight": {
        0: misc("playerShip1_blue", "playerShip1_green", "playerShip2_orange", "playerShip3_red"),
        1: LASERS,
        2: misc("enemyShipBlack1", "enemyShipBlue2", "enemyShipGreen3", "enemyShipRed4"),
        3: misc("shield2"),
        4: LASERS,
        7: METEORS,
        **EXPLOSIONS,
    },
    "caveflyer": {
        0: misc("playerShip1_red"),
        1: misc("ufoGreen2"),
        2: misc("meteorBrown_big1"),
        3: misc("ufoRed2"),
        4: misc("laserBlue02"),
        5: misc("enemyShipBlue4"),
        8: misc("groundA"),
        **EXPLOSIONS,
    },
    "chaser": {
        0: misc("enemyFloating_1b"),
        2: misc("yellowCrystal"),
        3: misc("enemyWalking_1b"),
        4: misc("enemySpikey_1b"),
        5: misc("tileStone_slope"),
        **{6 + n: misc(f"enemyFlying_{n + 1}") for n in range(3)},
    },
    "climber": {
        0: [f"platformer/player{colour}_stand" for colour in ("Blue", "Green", "Grey", "Red")],
        1: ["platformer/yellowCrystal"],
        6: ["platformer/enemySwimming_1"],
        7: ["platformer/enemySwimming_2"],
        15: MIDDLES,
        16: TOPS,
    },
    "coinrun": {
        0: [f"kenney/Players/128x256/{colour}/alien{colour}_stand" for colour in ALIENS],
        1: ["kenney/Items/coinGold"],
        2: ["kenney/Enemies/sawHalf"],
        3: ["kenney/Enemies/sawHalf_move"],
        6: [f"kenney/Enemies/{name}" for name in WALKERS],
        7: [f"kenney/Enemies/{name}_move" for name in WALKERS],
        15: [f"kenney/Ground/{name}/{name.lower()}Center" for name in GROUNDS],
        16: [f"kenney/Ground/{name}/{name.lower()}Mid" for name in GROUNDS],
        17: ["kenney/Tiles/lava"],
        18: ["kenney/Tiles/lavaTop_low"],
        20: [f"kenney/Tiles/boxCrate{kind}" for kind in ("", "_double", "_single", "_warning")],
    },
    "dodgeball": {
        0: misc("character12"),
        1: misc("tileStone_slope2"),
        3: misc("ball_soccer1"),
        4: misc(*(f"character{n}" for n in range(1, 12))),
        5: misc("blockRed"),
        6: misc("ball_soccer2"),
        10: misc("tileStone_slope2"),
    },
    "fruitbot": {
        0: misc("robot_3Dblue"),
        1: misc("tileStone_slope"),
        2: misc("tileStone_slope"),
        3: misc("keyRed2"),
        4: misc(*(f"food{n}" for n in range(1, 7))),
        7: misc(*(f"fruit{n}" for n in range(1, 7))),
        10: misc("fenceYellow"),
        11: misc("lockRed2"),
        12: misc("present1", "present2", "present3"),
    },
    "heist": {
        0: misc("spaceAstronauts_008"),
        1: misc("lock_blue", "lock_green", "lock_red"),
        2: misc("keyBlue", "keyGreen", "keyRed"),
        9: misc("gemYellow"),
        51: ["kenney/Ground/Dirt/dirtCenter"],
    },
    "jumper": {0: misc("bunny2_ready"), 1: misc("carrot"), 2: misc("spikeMan_stand"), 6: MIDDLES, 7: TOPS},
    "leaper": {
        0: misc("frog1", "frog2", "frog4", "frog6", "frog7"),
        1: misc("elementWood044"),
        2: misc("roadTile6b"),
        3: misc("terrainTile6"),
        4: misc("car_yellow_5", "car_black_1", "car_blue_2", "car_green_3", "car_red_4"),
        5: misc("finish2"),
    },
    "maze": {0: ["kenney/Enemies/mouse_move"], 2: misc("cheese"), 51: ["kenney/Ground/Sand/sandCenter"]},
    "miner": {
        0: misc("robot_greenDrive1"),
        1: misc("elementStone007"),
        2: misc("gemBlue"),
        6: misc("window"),
        9: misc("dirt"),
    },
    "ninja": {
        0: ["platformer/zombie_idle"],
        1: [f"platformer/shroom{n}" for n in range(1, 7)],
        6: misc("bomb"),
        7: misc("saw"),
        14: misc("bomb"),
        20: misc("tile_bricksGrey", "tile_bricksGrown", "tile_bricksRed"),
        **EXPLOSIONS,
    },
    "plunder": {
        1: misc("cannonBall"),
        3: misc("target_red2"),
        6: misc("panel_wood"),
        7: misc(*(f"ship_{n}" for n in range(1, 7))),
        **EXPLOSIONS,
    },
    "starpilot": {
        0: misc("playerShip2_blue"),
        1: misc("towerDefense_tile295"),
        2: misc("towerDefense_tile296"),
        3: misc("towerDefense_tile297"),
        4: misc(*(f"spaceShips_00{n}" for n in range(1, 8))),
        5: METEORS,
        6: misc(*(f"spaceEffect{n}" for n in range(1, 10))),
        7: misc("spaceStation_018", "spaceStation_019"),
        8: misc(*(f"spaceShips_00{n}" for n in range(1, 8))),
        9: misc(*(f"spaceRockets_00{n}" for n in range(1, 5))),
        **EXPLOSIONS,
    },
}

# Type of an entity or a cell -> the number of the paper's class; None for what has none.
CLASSES: dict[str, dict[int, int | None]] = {
    "bigfish": {0: 1, 2: 2},
    "bossfight": {0: 1, 1: 2, 6: 2, 2: 3, 4: 4, 5: 4, 3: 5, 7: 6, 54: 7},
    "caveflyer": {0: 1, 5: 2, 4: 3, 3: 4, 1: 5, 2: 6, 54: 7, 8: 8, 9: None},
    "chaser": {0: 1, 6: 2, 4: 4, 1002: 5, 2: 6, 5: 7},
    "climber": {0: 1, 5: 2, 1: 3, 15: 4, 16: 4, 19: None},
    "coinrun": {0: 1, 5: 2, 19: None, 2: 4, 3: 4, 17: 5, 18: 5, 1: 6, 20: 7, 15: 8, 16: 8, 59: None},
    "dodgeball": {0: 1, 3: 2, 4: 3, 6: 4, 5: 5, 1: 7, 10: 7, 8: None},
    "fruitbot": {0: 1, 3: 2, 7: 3, 4: 4, 11: 5, 10: 6, 12: 7, 1: 8, 2: 8},
    "heist": {0: 1, 1: 2, 2: 2, 11: 2, 9: 5, 51: 6},
    "jumper": {0: 1, 2: 2, 1: 3, 6: 6, 7: 6, 59: None},
    "leaper": {0: 1, 4: 2, 2: 3, 1: 4, 3: 5, 5: 6},
    "maze": {0: 1, 2: 2, 51: 3},
    "miner": {0: 1, 1: 2, 3: 2, 2: 3, 4: 3, 6: 4, 9: 5, 10: None},
    "ninja": {0: 1, 7: 2, 1: 3, 6: 4, 14: 4, 54: 5, 20: 7},
    "plunder": {0: 1, 1: 2, 2: 3, 7: 3, 3: 4, 6: 5, 54: 6},
    "starpilot": {0: 1, 1: 2, 4: 3, 8: 4, 2: 5, 7: 6, 3: 7, 5: 8, 6: 9, 9: 10, 54: 11},
}
# What the game draws over everything: class numbers, and the rows and columns in which they lie.
DISPLAYS = {
    "jumper": ({4, 5}, (slice(0, 20), slice(44, 64))),
    "ninja": ({6}, (slice(0, 64), slice(0, 6))),
    "plunder": ({7, 8}, (slice(0, 6), slice(0, 64))),
}
TALL = {"coinrun": (-0.7415, 1.7415), "leaper": (-0.275, 1.55)}  # the player's picture, in heights of its body
TILED = {"fruitbot": {1: 1.0, 10: 3.25}, "leaper": {5: 1.0}}


@cache
def outline(sprite: str) -> np.ndarray:
    alpha = imread(wheel() / "assets" / f"{sprite}.png", mode="RGBA")[..., 3]
    return alpha >= (64 if "shield" in sprite else 128)


class Twin:
    """Labels of one copy's frame."""

    def __init__(self, data: bytes) -> None:
        self.state = Snapshot(data)
        self.game = self.state.game
        self.labels = np.zeros((SIDE, SIDE), dtype=np.int64)
        self.unit, self.view_dim = float(self.state.view["unit"]), float(self.state.view["view_dim"])
        self.x_off, self.y_off = float(self.state.view["x_off"]), float(self.state.view["y_off"])
        self.walls = self._wall_theme()
        self._entities(-1)
        self._cells()
        self._entities(0)
        self._entities(1)

    def _wall_theme(self) -> int:
        """All themes of a wall have one outline but for jumper's and climber's tops."""
        state, before = self.state, {"jumper": 5, "climber": 4}
        if self.game not in before:
            return 0
        state.rewind()
        return int(state.integers(before[self.game] + 1)[-1])

    def _entities(self, layer: int) -> None:
        for entity in self.state.entities[self.state.entities["render_z"] == layer]:
            number, image = self._class(entity), self._image(entity)
            if number is None:
                continue
            if self.game == "heist" and entity["type"] == 11 and not keys_held(self.state)[entity["image_theme"]]:
                continue
            if self.game == "bossfight" and entity["type"] == 3 and not self._shields():
                continue
            theme = int(entity["image_theme"])
            if self.game == "bossfight" and image in (1, 4):
                theme = image // 4  # the masks' game always gives the player the first laser and the boss the second
            self._sprite(self._rectangle(entity), SPRITES[self.game][image][theme], number, entity)

    def _image(self, entity: np.void) -> int:
        if self.game == "chaser" and entity["type"] == 6:
            return 3 if self._class(entity) == 3 else 6 + (0, 1, 2, 1)[self.state.time // 2 % 4]
        return int(entity["image_type"])

    def _class(self, entity: np.void) -> int | None:
        kind, number = int(entity["type"]), CLASSES[self.game][int(entity["type"])]
        if self.game == "heist" and kind in (1, 2, 11):
            return 2 + int(entity["image_theme"])
        if self.game == "plunder" and kind == 7:
            return 3 if entity["image_theme"] == cue_theme(self.state) else 1
        if self.game == "chaser" and kind == 6 and self._own(2, 3)[-1] + 75 > self.state.time:
            return 3
        if self.game == "dodgeball" and kind == 5 and not (self.state.entities["type"] == 4).any():
            return 6
        return number

    def _own(self, vectors: int, count: int) -> np.ndarray:
        self.state.rewind()
        for _ in range(vectors):
            self.state.vector()
        return self.state.integers(count)

    def _shields(self) -> bool:
        return bool(self._own(1, 14)[-1])

    def _rectangle(self, entity: np.void) -> tuple[float, float, float, float]:
        x, y, rx, ry = (float(entity[name]) for name in ("x", "y", "rx", "ry"))
        if entity["absolute"]:
            scale = self.view_dim * self.unit
            return (x - rx) * scale, (y + ry) * scale, 2 * rx * scale, 2 * ry * scale
        left, top, width, height = self._on_screen(x - rx, y + ry, 2 * rx, 2 * ry, 0)
        if entity["type"] == 0 and self.game in TALL:
            up, factor = TALL[self.game]
            top, height = top + up * height, factor * height
        return left, top, width, height

    def _on_screen(self, x, y, width, height, seam):
        return (
            (x - seam) * self.unit - self.x_off,
            (self.view_dim - y - seam) * self.unit + self.y_off,
            (width + 2 * seam) * self.unit,
            (height + 2 * seam) * self.unit,
        )

    def _cells(self) -> None:
        state = self.state
        if state.options["center_agent"][0]:
            margin = float(state.view["visibility"]) / 2 + 1
            lows = [int(c - margin) for c in state.center]
            highs = [int(c + margin) for c in state.center]
        else:
            lows, highs = [0, 0], [state.width - 1, state.height - 1]
        for x in range(lows[0], highs[0] + 1):
            for y in range(lows[1], highs[1] + 1):
                inside = 0 <= x < state.width and 0 <= y < state.height
                kind = int(state.grid[y, x]) if inside else state.outside
                number = CLASSES[self.game].get(kind)
                if number is None:
                    continue
                rectangle = self._on_screen(x, y + 1, 1, 1, SEAM)
                if kind == 1002:
                    left, top, width, height = rectangle
                    self._fill((left + 0.35 * width, top + 0.35 * height, 0.3 * width, 0.3 * height), number)
                else:
                    image = {("miner", 3): 1, ("miner", 4): 2}.get((self.game, kind), kind)
                    sprites = SPRITES[self.game][image]
                    self._sprite(rectangle, sprites[self.walls if len(sprites) > self.walls else 0], number, None)

    def _fill(self, rectangle, number: int) -> None:
        left, top, width, height = rectangle
        rows = slice(max(0, round(top)), max(0, round(top + height)))
        self.labels[rows, max(0, round(left)) : max(0, round(left + width))] = number

    def _sprite(self, rectangle, sprite: str, number: int, entity: np.void | None) -> None:
        left, top, width, height = rectangle
        cx, cy, radius = left + width / 2, top + height / 2, np.hypot(width, height) / 2 + 1
        rows = np.arange(max(0, int(cy - radius)), min(SIDE, int(cy + radius) + 1))
        columns = np.arange(max(0, int(cx - radius)), min(SIDE, int(cx + radius) + 1))
        if not len(rows) or not len(columns) or width <= 0 or height <= 0:
            return
        x, y = np.meshgrid(columns + 0.5 - cx, rows + 0.5 - cy)
        angle = 0.0 if entity is None else float(entity["rotation"])
        x, y = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
        across, down = x / width + 0.5, y / height + 0.5
        inside = (across >= 0) & (across < 1) & (down >= 0) & (down < 1)
        if entity is not None and (ratio := TILED.get(self.game, {}).get(int(entity["type"]))):
            across = across * max(1, int(width / (height * ratio))) % 1
        shape = outline(sprite)
        if entity is not None and entity["reflected"]:
            shape = shape[:, ::-1]
        i = np.clip((down * shape.shape[0]).astype(int), 0, shape.shape[0] - 1)
        j = np.clip((across * shape.shape[1]).astype(int), 0, shape.shape[1] - 1)
        self.labels[np.ix_(rows, columns)] = np.where(inside & shape[i, j], number, self.labels[np.ix_(rows, columns)])


def neighbours(labels: np.ndarray) -> np.ndarray:
    """(9, rows, columns): what lies in and around every pixel."""
    padded = np.pad(labels, 1, mode="edge")
    return np.stack([padded[i : i + SIDE, j : j + SIDE] for i in range(3) for j in range(3)])


def disagreements(mask: np.ndarray, data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Where a mask shows a class that is not around, and where it does not show a class that alone is around."""
    twin = Twin(data)
    around = neighbours(twin.labels)
    nowhere = ~(around == mask).any(axis=0)
    missing = (around == around[4]).all(axis=0) & (mask != around[4])
    if twin.game in DISPLAYS:
        numbers, where = DISPLAYS[twin.game]
        shown = np.zeros_like(nowhere)
        shown[where] = np.isin(mask[where], list(numbers))
        nowhere, missing = nowhere & ~shown, missing & ~shown
    return nowhere, missing
