"""Names of tasks as names of files."""

import pytest

from lcd.files.slugs import slug


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("procgen/heist", "procgen-heist"),
        ("hardness/discrete:delay=0.5", "hardness-discrete-delay-0.5"),
        ("../..", "-.-.."),
        (".hidden", "-hidden"),
    ],
)
def test_a_name_stays_within_its_folder_and_is_seen(name, plain):
    assert slug(name) == plain
