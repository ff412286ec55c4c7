"""What a command's config asks for, done: the command line's way and Python's."""

from dataclasses import asdict
from typing import Any

from lcd.config.own_code import names_code, search_working_directory
from lcd.config.settings import check_choices
from lcd.envs.registry import code_names, naming
from lcd.process import children


def carry_out(config: Any, target: str) -> Any:
    """Do what a config asks for, with the code that it names and no other.

    Args:
        config: of a command, as `lcd.config.compose.compose` makes it.
        target: `module:function` that takes it.

    Returns:
        What the function gives.
    """
    if names_code(config):
        search_working_directory()
    # What else is read, of a study say, is data: nothing in it may be imported.
    with naming(code_names(asdict(config))):
        check_choices(config)
        return children.resolve(target)(config)
