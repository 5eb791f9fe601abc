"""Checks: each compares one number of ours with one of the paper's, and records whether they agree.

The functions of this module make checks by comparing. NaN never passes, and a comparison of no values is an error.
"""

import math
from dataclasses import dataclass
from typing import Any

from understudy.papers.values import Json, jsonable, text

LONGEST_LISTED = 8  # longer arrays are summarised in the ledger; whole arrays belong in Measurement.data


@dataclass(frozen=True)
class Check:
    """One comparison: the paper's value, ours, how far apart they may be, and whether they agree."""

    name: str
    paper: Json
    measured: Json
    tolerance: Json
    ok: bool


def close(name: str, paper: Any, measured: Any, tolerance: float, *, relative: bool = False) -> Check:
    """Whether \\|measured - paper\\| ≤ tolerance, or ≤ tolerance · \\|paper\\| when ``relative``.

    Arrays of equal shapes are compared entry by entry, and so is an array with one number of the paper's.

    >>> close("slope", 0.0150, 0.0152, 5e-4).ok
    True
    """
    import numpy as np

    _require_name(name)
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"check {name!r}: a tolerance is a finite number ≥ 0; received {tolerance!r}")
    wanted, found = _numbers(name, "paper", paper), _numbers(name, "measured", measured)
    if wanted.ndim and wanted.shape != found.shape:
        raise ValueError(
            f"check {name!r}: paper has shape {wanted.shape} and measured {found.shape}; "
            "give equal shapes, or one number for the paper"
        )
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, which fails the check
        deviation = np.abs(found - wanted)
        ok = bool(np.all(deviation <= (tolerance * np.abs(wanted) if relative else tolerance)))
        if relative:
            deviation = np.where(deviation == 0, 0.0, deviation / np.maximum(np.abs(wanted), np.finfo(float).tiny))
    kept: Json = float(tolerance)
    if relative:
        kept = f"{tolerance:g} relative"
    if found.size <= LONGEST_LISTED:
        return Check(name, jsonable(paper), jsonable(measured), kept, ok)
    largest = float(np.max(deviation))
    of_paper = f"{wanted.size} values" if wanted.ndim else jsonable(paper)
    return Check(
        name,
        of_paper,
        f"{found.size} values, largest {'relative ' if relative else ''}deviation {largest:.3g}",
        kept,
        ok,
    )


def equal(name: str, paper: Any, measured: Any) -> Check:
    """Whether two counts, labels or lists of them are the same, exactly."""
    _require_name(name)
    wanted, found = jsonable(paper), jsonable(measured)
    if wanted is None or found is None:
        raise ValueError(f"check {name!r}: nothing to compare; received {paper!r} and {measured!r}")
    return Check(name, wanted, found, "exact", wanted == found and "nan" not in (wanted, found))


def at_most(name: str, measured: Any, *, bound: float) -> Check:
    """Whether every measured number is ≤ `bound`. Of an array, the largest number is kept."""
    import numpy as np

    found = _numbers(name, "measured", measured)
    largest = float(np.max(found))  # NaN if any is
    return Check(_require_name(name), f"≤ {text(bound)}", jsonable(largest), None, bool(largest <= bound))


def at_least(name: str, measured: Any, *, bound: float) -> Check:
    """Whether every measured number is ≥ `bound`. Of an array, the least number is kept."""
    import numpy as np

    found = _numbers(name, "measured", measured)
    least = float(np.min(found))
    return Check(_require_name(name), f"≥ {text(bound)}", jsonable(least), None, bool(least >= bound))


def between(name: str, measured: Any, *, low: float, high: float) -> Check:
    """Whether every measured number lies in [`low`, `high`]. Of an array, the range is kept."""
    import numpy as np

    if not low <= high:
        raise ValueError(f"check {name!r}: an interval needs low ≤ high; received low={low!r}, high={high!r}")
    found = _numbers(name, "measured", measured)
    least, largest = float(np.min(found)), float(np.max(found))
    kept = least if found.size == 1 else f"{text(least)} … {text(largest)}"
    ok = bool(low <= least and largest <= high)
    return Check(_require_name(name), f"in [{text(low)}, {text(high)}]", jsonable(kept), None, ok)


def holds(name: str, outcome: Any, evidence: Any) -> Check:
    """Whether a statement holds that is not a number, with the evidence: a number, a text, or a dict of them.

    ``outcome`` must have been computed: a boolean of Python, NumPy or JAX.
    """
    if hasattr(outcome, "tolist") and not isinstance(outcome, bool):
        outcome = outcome.tolist()
    if not isinstance(outcome, bool):
        raise TypeError(f"check {name!r}: the outcome must be one boolean; received {outcome!r}")
    kept = jsonable(evidence)
    if kept in (None, "", [], {}):
        raise ValueError(
            f"check {name!r}: give the evidence, a number or text that was computed; received {evidence!r}"
        )
    return Check(_require_name(name), "holds", kept, None, outcome)


def _require_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"a check needs a name that says what is compared; received {name!r}")
    return name


def _numbers(name: str, side: str, values: Any) -> Any:
    """The values as an array of real numbers, at least one."""
    import numpy as np

    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"check {name!r}: {side} must be real numbers; received {values!r}")
    if array.size == 0:
        raise ValueError(f"check {name!r}: {side} is empty, and a check over nothing would pass; give some values")
    return array.astype(float)
