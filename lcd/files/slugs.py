"""Names of files."""

import re


def slug(name: object) -> str:
    """A name as a part of a file's: a dash for whatever is not a letter, a digit or one of `-_.`; never hidden."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in str(name))
    return re.sub(r"^\.", "-", plain)
