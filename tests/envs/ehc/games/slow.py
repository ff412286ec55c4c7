"""Rules of the same games written again, plainly: a position is a tuple, and a move is looked for square by square.

Each class has `first()`, `moves(position)`, a list of (position after, result or None), and `code(position)`, what the
fast rules call it. A position is (board, player to move, and what else there is); the board is a tuple of characters.
"""

from __future__ import annotations

FIRST, SECOND, EMPTY = "X", "O", "."


class Board:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns

    def at(self, row, column):
        """The square's place in the tuple, or None off the board."""
        return row * self.columns + column if 0 <= row < self.rows and 0 <= column < self.columns else None

    def around(self, place, steps):
        row, column = divmod(place, self.columns)
        found = [self.at(row + down, column + right) for down, right in steps]
        return [each for each in found if each is not None]


def put(board, *changes):
    changed = list(board)
    for place, man in changes:
        changed[place] = man
    return tuple(changed)


def other(player):
    return SECOND if player == FIRST else FIRST


class SlowConnectFour(Board):
    def first(self):
        return (EMPTY,) * (self.rows * self.columns), FIRST

    def moves(self, position):
        board, player = position
        found = []
        for column in range(self.columns):
            free = [row for row in range(self.rows) if board[self.at(row, column)] == EMPTY]
            if free:
                after = put(board, (self.at(max(free), column), player))
                result = (1 if player == FIRST else -1) if self.four(after, player) else None
                found.append(((after, other(player)), 0 if result is None and EMPTY not in after else result))
        return found

    def four(self, board, player):
        for row in range(self.rows):
            for column in range(self.columns):
                for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                    line = [self.at(row + n * down, column + n * right) for n in range(4)]
                    if None not in line and all(board[place] == player for place in line):
                        return True
        return False

    def code(self, position):
        total = 0
        for column in range(self.columns):
            men = [m for row in reversed(range(self.rows)) if (m := position[0][self.at(row, column)]) != EMPTY]
            bits = sum(1 << height for height, man in enumerate(men) if man == SECOND) + (1 << len(men))
            total += bits << column * (self.rows + 1)
        return total


class SlowGo(Board):
    """A position also says the point that ko forbids, and whether a pass was just made."""

    def first(self):
        return (EMPTY,) * (self.rows * self.columns), FIRST, None, False

    def group(self, board, place):
        found, todo = {place}, [place]
        while todo:
            for near in self.around(todo.pop(), ((0, 1), (1, 0), (0, -1), (-1, 0))):
                if board[near] == board[place] and near not in found:
                    found.add(near)
                    todo.append(near)
        return found

    def borders(self, board, group):
        return {board[n] for p in group for n in self.around(p, ((0, 1), (1, 0), (0, -1), (-1, 0))) if n not in group}

    def moves(self, position):
        board, player, ko, passed = position
        found = []
        for place in range(len(board)):
            if board[place] != EMPTY or place == ko:
                continue
            after = put(board, (place, player))
            taken = set()
            for near in self.around(place, ((0, 1), (1, 0), (0, -1), (-1, 0))):
                if after[near] == other(player):
                    group = self.group(after, near)
                    if EMPTY not in self.borders(after, group):
                        taken |= group
            after = put(after, *((each, EMPTY) for each in taken))
            own = self.group(after, place)
            if EMPTY not in self.borders(after, own):
                continue
            free = {n for p in own for n in self.around(p, ((0, 1), (1, 0), (0, -1), (-1, 0))) if after[n] == EMPTY}
            again = min(taken) if len(taken) == 1 and len(own) == 1 and free == taken else None
            found.append(((after, other(player), again, False), None))
        result = (self.score(board) > 0) - (self.score(board) < 0) if passed else None
        return [*found, ((board, other(player), None, True), result)]

    def score(self, board):
        total = 0
        for place, stone in enumerate(board):
            if stone == EMPTY:
                reached = self.borders(board, self.group(board, place)) - {EMPTY}
                stone = reached.pop() if len(reached) == 1 else EMPTY
            total += {FIRST: 1, SECOND: -1, EMPTY: 0}[stone]
        return total

    def code(self, position):
        board, player, ko, passed = position
        code = sum(1 << p + 16 * (stone == SECOND) for p, stone in enumerate(board) if stone != EMPTY)
        return code | (0 if ko is None else ko + 1) << 32 | passed << 37 | (player == SECOND) << 38


class SlowCheckers(Board):
    """Capital letters are kings. A position also says which man has to go on jumping."""

    def __init__(self, rows, columns, filled):
        super().__init__(rows, columns)
        self.filled = filled

    def dark(self, place):
        return sum(divmod(place, self.columns)) % 2 == 0

    def first(self):
        board = [EMPTY] * (self.rows * self.columns)
        for place in filter(self.dark, range(len(board))):
            row = place // self.columns
            board[place] = "o" if row < self.filled else "x" if row >= self.rows - self.filled else EMPTY
        return tuple(board), FIRST, None

    def reach(self, board, place):
        """Steps and jumps of the man here: (to, taken or None)."""
        man = board[place]
        row, column = divmod(place, self.columns)
        for down in {"x": (-1,), "o": (1,)}.get(man, (-1, 1)):
            for right in (-1, 1):
                near, far = self.at(row + down, column + right), self.at(row + 2 * down, column + 2 * right)
                if near is not None and board[near] == EMPTY:
                    yield near, None
                elif far is not None and board[near].upper() == other(man.upper()) and board[far] == EMPTY:
                    yield far, near

    def turns(self, board, player, going):
        own = [p for p, man in enumerate(board) if man.upper() == player and going in (None, p)]
        found = [(p, to, taken) for p in own for to, taken in self.reach(board, p)]
        jumps = [each for each in found if each[2] is not None]
        return jumps or ([] if going is not None else found)

    def moves(self, position):
        board, player, going = position
        found = []
        for place, to, taken in self.turns(board, player, going):
            man = board[place]
            crowned = man == man.lower() and to // self.columns == (0 if player == FIRST else self.rows - 1)
            after = put(board, (place, EMPTY), (to, man.upper() if crowned else man))
            if taken is not None:
                after = put(after, (taken, EMPTY))
                if not crowned and self.turns(after, player, to):
                    found.append(((after, player, to), None))
                    continue
            over = not self.turns(after, other(player), None)
            found.append(((after, other(player), None), (1 if player == FIRST else -1) if over else None))
        return found

    def code(self, position):
        board, player, going = position
        squares = list(filter(self.dark, range(len(board))))
        code = (player == SECOND) << 53 | (0 if going is None else squares.index(going) + 1) << 48
        for s, place in enumerate(squares):
            man = board[place]
            code |= ((man in "xX") | (man in "oO") << 16 | (man in "XO") << 32) << s
        return code


class SlowChess(Board):
    """Capital letters are X's men. A king that could be taken makes a move illegal."""

    def __init__(self, rows):
        super().__init__(len(rows), len(rows[0]))
        self.placed = tuple("".join(rows))

    def first(self):
        return self.placed, FIRST

    def reach(self, board, place):
        """Everywhere that the man here could go, whatever becomes of his king."""
        man, row, column = board[place], *divmod(place, self.columns)
        white = man.isupper()
        kind = man.upper()
        if kind == "P":
            down = -1 if white else 1
            ahead = self.at(row + down, column)
            if ahead is not None and board[ahead] == EMPTY:
                yield ahead
            for right in (-1, 1):
                to = self.at(row + down, column + right)
                if to is not None and board[to] != EMPTY and board[to].isupper() != white:
                    yield to
            return
        ways = [(d, r) for d in (-1, 0, 1) for r in (-1, 0, 1) if (d, r) != (0, 0)]
        if kind == "N":
            ways = [(d, r) for d in (-2, -1, 1, 2) for r in (-2, -1, 1, 2) if abs(d) != abs(r)]
        elif kind in "RB":
            ways = [(d, r) for d, r in ways if (d * r == 0) == (kind == "R")]
        for d, r in ways:
            for far in range(1, 2 if kind in "KN" else 9):
                to = self.at(row + far * d, column + far * r)
                if to is None or (board[to] != EMPTY and board[to].isupper() == white):
                    break
                yield to
                if board[to] != EMPTY:
                    break

    def attacked(self, board, player):
        """Can this player's king be taken?"""
        king = board.index("K" if player == FIRST else "k")
        theirs = [p for p, man in enumerate(board) if man != EMPTY and man.isupper() != (player == FIRST)]
        return any(king in self.reach(board, place) for place in theirs)

    def legal(self, board, player):
        for place, man in enumerate(board):
            if man == EMPTY or man.isupper() != (player == FIRST):
                continue
            for to in sorted(self.reach(board, place)):
                crowned = man in "Pp" and to // self.columns in (0, self.rows - 1)
                queen = "Q" if player == FIRST else "q"
                after = put(board, (place, EMPTY), (to, queen if crowned else man))
                if not self.attacked(after, player):
                    yield after

    def moves(self, position):
        board, player = position
        found = []
        for after in self.legal(board, player):
            result = None
            if not any(True for _ in self.legal(after, other(player))):
                result = (1 if player == FIRST else -1) if self.attacked(after, other(player)) else 0
            found.append(((after, other(player)), result))
        return found

    def code(self, position):
        board, player = position
        digits = [".KQRBNPkqrbnp".index(man) for man in board]
        return sum(d * 13**p for p, d in enumerate([*digits, int(player == SECOND)]))
