"""Every order in which several hands' operations on one file system can be mixed.

A hand is a plain function that is given a disk. To take a hand one operation further it is called anew with the results
that it has had so far, up to the operation that comes next, which is then made; so that code which knows nothing of all
this can be stopped between any two operations, for ever or for as long as others need. What a hand knows is what it was
answered: two states with the same files and the same answers are one, and are looked at once.
"""

from lcd.files.ledger import Disk

FOLDER = None
"""What a folder holds, as a file's content."""


class Paused(BaseException):
    """A hand has made the operation that it was to make; also code that catches every error is left by it."""


class Files:
    """A file system in memory: path → content, each operation done as one."""

    def __init__(self, held=()):
        self.held = dict(held)

    def key(self):
        """What two equal ones share."""
        return frozenset(self.held.items())

    def read(self, path):
        return self.held.get(str(path))

    def names(self, folder):
        start = f"{folder}/"
        return sorted({path[len(start) :].partition("/")[0] for path in self.held if path.startswith(start)})

    def make(self, folder):
        for each in (folder, *folder.parents):
            self.held.setdefault(str(each), FOLDER)

    def create(self, path, content):
        if str(path) in self.held:
            return False
        self.replace(path, content)
        return True

    def replace(self, path, content):
        if str(path.parent) not in self.held:
            raise FileNotFoundError(str(path))
        self.held[str(path)] = content

    def append(self, path, content):
        if str(path) not in self.held:
            raise FileNotFoundError(str(path))
        self.held[str(path)] += content

    def copy(self, source, target, link):
        if str(source) in self.held and str(target.parent) in self.held:
            self.held[str(target)] = self.held[str(source)]

    def rename(self, source, target):
        if str(source) not in self.held or str(target.parent) not in self.held:
            return False
        assert self.held[str(source)] is not FOLDER or str(target) not in self.held, f"{target} is there"
        start = f"{source}/"
        for path in [path for path in self.held if path == str(source) or path.startswith(start)]:
            self.held[str(target) + path[len(str(source)) :]] = self.held.pop(path)
        return True

    def unlink(self, path):
        if not self.names(path):
            self.held.pop(str(path), None)

    def is_folder(self, path):
        return str(path) in self.held and self.held[str(path)] is FOLDER


class PausedDisk(Disk):
    """The disk of one hand: what it was answered before, then a pause in which the next operation is told.

    Args:
        answers: what the hand was answered.
    """

    def __init__(self, answers):
        self.answers = iter(answers)

    def _do(self, name, *arguments):
        try:
            answer = next(self.answers)
        except StopIteration:
            raise Paused(name, arguments) from None
        if isinstance(answer, FileNotFoundError):
            raise answer
        return answer

    def read(self, path):
        return self._do("read", path)

    def names(self, folder):
        return self._do("names", folder)

    def is_folder(self, path):
        return self._do("is_folder", path)

    def make(self, folder):
        return self._do("make", folder)

    def create(self, path, content):
        return self._do("create", path, content)

    def replace(self, path, content):
        return self._do("replace", path, content)

    def append(self, path, content):
        return self._do("append", path, content)

    def rename(self, source, target):
        return self._do("rename", source, target)

    def copy(self, source, target, link):
        return self._do("copy", source, target, link)

    def remove(self, path):
        """One after the other, as a folder is removed."""
        for name in self.names(path):
            self.remove(path / name)
        self._do("unlink", path)

    def remove_empty(self, folder):
        self._do("unlink", folder)


class Alone(PausedDisk):
    """The disk of a hand that is never paused."""

    def __init__(self, files):
        self.files = files

    def _do(self, name, *arguments):
        return getattr(self.files, name)(*arguments)


class Hand:
    """A function of a disk, as the tree of all that it may be answered."""

    AT_ONCE = ("make", "is_folder")
    """Operations that are made with the one before: nobody's answer depends on when they are."""
    OVER = None

    def __init__(self, function):
        self.function = function
        self.answers, self.places, self.after = [()], {}, {}

    def next_operation(self, place):
        """What comes after the answers that led to a place; None where the function is at its end."""
        if place not in self.after:
            try:
                self.function(PausedDisk(self.answers[place]))
                self.after[place] = self.OVER
            except Paused as paused:
                self.after[place] = paused.args
        return self.after[place]

    def advanced(self, files, place):
        """One operation further.

        Returns:
            The files after it, and the place that its answer leads to.
        """
        files, operation = type(files)(files.held), self.next_operation(place)
        while True:
            name, arguments = operation
            try:
                answer = getattr(files, name)(*arguments)
            except FileNotFoundError as error:
                answer = error
            plain = (place, repr(answer))
            if plain not in self.places:
                self.places[plain] = len(self.answers)
                self.answers.append((*self.answers[place], answer))
            place = self.places[plain]
            operation = self.next_operation(place)
            if operation is self.OVER or operation[0] not in self.AT_ONCE:
                return files, place


def explored(functions, files, look, most_switches=None):
    """Look at every state that some hands can bring a file system to.

    Args:
        functions: what the hands do, each a function of a disk.
        files: the file system at the beginning.
        look: called with the files of every state, once for each content; raises where something is wrong.
        most_switches: of hands that could go on; None: any number.

    Returns:
        How many states there are, and how many contents of the file system.
    """
    hands = [Hand(function) for function in functions]
    waiting, seen, contents = [(files, (0,) * len(hands), None, 0)], set(), set()
    while waiting:
        files, places, running, switches = waiting.pop()
        content = files.key()
        state = (content, places) if most_switches is None else (content, places, running, switches)
        if state in seen:
            continue
        seen.add(state)
        if content not in contents:
            contents.add(content)
            look(files)
        going = [index for index, hand in enumerate(hands) if hand.next_operation(places[index]) is not Hand.OVER]
        for index in going:
            switched = switches + (running in going and running != index)
            if most_switches is None or switched <= most_switches:
                after, place = hands[index].advanced(files, places[index])
                waiting.append((after, (*places[:index], place, *places[index + 1 :]), index, switched))
    return len(seen), len(contents)
