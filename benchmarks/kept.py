"""Results of a long benchmark, one small JSON file per cell: a run that was killed goes on where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from understudy.compilation import cache_directory


class Kept:
    """A folder of cells by name.

    `version` is part of the path. Raise it when what is measured changes: older cells are then measured again.
    """

    def __init__(self, benchmark: str, version: int) -> None:
        self.folder = cache_directory() / "benchmarks" / f"{benchmark}-{version}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, name: str) -> dict[str, Any]:
        """The cell, or an empty dict."""
        file = self._file(name)
        return json.loads(file.read_text()) if file.is_file() else {}

    def write(self, name: str, cell: Mapping[str, Any]) -> None:
        """Store the cell; readers see the old file or the new one, never half of it."""
        file = self._file(name)
        partial = file.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(cell, indent=1))
        partial.replace(file)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"
