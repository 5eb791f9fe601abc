"""The directory that a reproduction writes to: results, their arrays and figures, one folder per paper.

::

    out/<paper>/<claim>-<scale>.json    the result
    out/<paper>/<claim>-<scale>.npz     arrays for its figure, where it has any
    out/<paper>/figures/<claim>-<scale>.png and .svg
    out/<paper>/cells/<code>/           parts of long computations, as they are finished, by the code that made them
    out/<paper>/index.html              the page
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.files import write_atomically, write_json
from understudy.papers.claim import Claim, Scale
from understudy.papers.measurement import UNMEASURED
from understudy.papers.result import BadRecordError, Result, fingerprint


@dataclass(frozen=True)
class Workspace:
    """Reads and writes the results of one paper below ``out``."""

    out: Path
    paper: str

    @property
    def folder(self) -> Path:
        """Where this paper's files are."""
        return self.out / self.paper

    @property
    def page(self) -> Path:
        """The paper's page."""
        return self.folder / "index.html"

    @property
    def cells(self) -> Path:
        """Where claims keep parts of long computations."""
        return self.folder / "cells"

    def figure(self, claim: Claim, scale: Scale, suffix: str) -> Path:
        """The claim's figure; ``suffix`` is ``.png`` or ``.svg``."""
        return self.folder / "figures" / f"{claim.id}-{scale}{suffix}"

    def save(self, claim: Claim, result: Result, data: Mapping[str, Any]) -> None:
        """Keep a result. The arrays are written first: once the result is there, it is whole."""
        arrays = self._file(claim, result.scale, ".npz")
        if data:
            write_atomically(arrays, _pack(claim, data))
        else:
            arrays.unlink(missing_ok=True)
        stored = {**result.to_json(), "fingerprint": fingerprint(claim, result.scale), "has_data": bool(data)}
        write_json(self._file(claim, result.scale, ".json"), stored)

    def load(self, claim: Claim, scale: Scale) -> tuple[Result, dict[str, Any]] | None:
        """The stored result and its arrays; None unless whole, of these settings and of this code."""
        path = self._file(claim, scale, ".json")
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["fingerprint"] != fingerprint(claim, scale):
                return None
            return Result.from_json(stored, str(path)), self._load_data(claim, scale) if stored["has_data"] else {}
        except (OSError, ValueError, KeyError, TypeError):  # absent, cut short or of another kind: it is measured again
            return None

    def seconds(self, claim: Claim, scale: Scale) -> float | None:
        """How long the claim took when it was last measured here, with any version."""
        path = self._file(claim, scale, ".json")
        try:
            result = Result.from_json(json.loads(path.read_text(encoding="utf-8")), str(path))
        except (OSError, ValueError):
            return None
        return None if result.status in UNMEASURED else result.seconds

    def _file(self, claim: Claim, scale: Scale, suffix: str) -> Path:
        return self.folder / f"{claim.id}-{scale}{suffix}"

    def _load_data(self, claim: Claim, scale: Scale) -> dict[str, Any]:
        import numpy as np

        with np.load(self._file(claim, scale, ".npz"), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}


def _pack(claim: Claim, data: Mapping[str, Any]) -> bytes:
    import numpy as np

    arrays = {name: np.asarray(values) for name, values in data.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise BadRecordError(
                f"claim {claim.paper}/{claim.id}: data[{name!r}] is not an array of numbers, booleans or text "
                f"(received {type(data[name]).__name__}); give one array for each thing drawn"
            )
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # NumPy's stub has allow_pickle in the way
    return buffer.getvalue()
