"""A tracker that mirrors a run's curve as lines of JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcd.pipelines.publish.track import Tracker


@dataclass(frozen=True)
class LinesSettings:
    """Settings: `tracker=lines tracker.folder=/tmp/mirror`.

    Attributes:
        folder: where the files are written, one a run.
    """

    folder: str = "mirror"


class Lines(Tracker):
    """Mirrors each run's curve as lines of JSON in a file."""

    def __init__(
        self, run_dir: Path, run_config: Mapping[str, Any], status: Mapping[str, Any], settings: LinesSettings
    ) -> None:
        super().__init__(run_dir, run_config, status)
        folder = Path(settings.folder)
        folder.mkdir(parents=True, exist_ok=True)
        # A run that is continued is told from its beginning again.
        self.file = folder / f"{run_dir.name}.jsonl"
        self.file.write_text("")

    def log_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows that a checkpoint holds."""
        with self.file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(dict(row), default=str) + "\n" for row in rows)
