"""Continue a stored fit from where it ended, with a tighter tolerance or for a longer time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from understudy.experiments.description import key_of
from understudy.experiments.flow_fit import FlowFit
from understudy.experiments.opening import open_fit
from understudy.results.runs import FIT


def continue_fit(
    place: Path, seeds: Sequence[int] | None = None, **changes: Any
) -> tuple[FlowFit, dict[int, Any], list[int]]:
    """The fit that begins where a stored one ended, the ends by seed, and the seeds to continue.

    **Arguments**

    - `place`: the file of a fit, or a directory with one.
    - `seeds`: which seeds to continue. Default: all that are stored.
    - `changes`: `tolerance`, `max_time` and `times` of the continuation. Default: as before.
    """
    before, runs = open_fit(_file_in(place))
    task = before.task()
    ends = {run.seed: task.flatten(run.parameters) for run in runs}
    chosen = list(ends if seeds is None else seeds)
    if missing := [seed for seed in chosen if seed not in ends]:
        raise ValueError(
            f"{place} has the seeds {_short(ends)}; received {_short(missing)}, which it has not. Leave the seeds out "
            "to continue all."
        )
    return replace(before, begin=key_of(before), **changes), ends, chosen  # type: ignore[type-var]


def _file_in(place: Path) -> Path:
    if not place.exists():
        raise ValueError(f"There is no stored fit at {place}. Give a file or a directory that fit --out has written.")
    if not place.is_dir():
        return place
    files = sorted(place.glob(f"{FIT}-*.nc"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files[:5]) or "none"
        raise ValueError(f"{place} holds {len(files)} fits ({names}); name the file of one of them.")
    return files[0]


def _short(seeds: Iterable[int]) -> str:
    """The first few of many seeds."""
    first = [str(seed) for seed in islice(seeds, 11)]
    return ", ".join(first[:10]) + (", …" if len(first) > 10 else "")
