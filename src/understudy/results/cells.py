"""Several fits side by side: the cells of a grid, and the points that their runs reached."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from understudy.results.runs import Runs
from understudy.results.table import as_dataframe
from understudy.tables import html_table, text_table

if TYPE_CHECKING:
    import pandas as pd

AXES = ("activation", "teacher", "student", "dim", "outgoing", "bias", "init", "init_std")
"""The settings in which the cells of a grid differ."""

_HEADS = ("activation", "k", "n", "d", "where the runs end", "best loss", "|∇L|")
_LEFT = (0, 4)


class Cells(Sequence[Runs]):
    """The fits of a store, one `Runs` per description. They print as a table with a line for each point reached."""

    def __init__(self, cells: Sequence[Runs]):
        self._cells = list(cells)

    @overload
    def __getitem__(self, index: int) -> Runs: ...
    @overload
    def __getitem__(self, index: slice) -> Cells: ...
    def __getitem__(self, index: Any) -> Any:
        return Cells(self._cells[index]) if isinstance(index, slice) else self._cells[index]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Runs]:
        return iter(self._cells)

    def summaries(self) -> list[dict[str, Any]]:
        """A summary of every cell; see `summarise_cell`."""
        return [summarise_cell(cell) for cell in self._cells]

    def _table(self) -> list[list[str]]:
        rows = []
        for cell in self.summaries():
            points = cell["points"] or [{"count": 0, "label": "no runs", "kind": "minimum"}]
            for i, point in enumerate(points):
                told = ["" if i or cell[name] is None else cell[name] for name in AXES[:4]]
                loss = "" if i or cell["best_loss"] is None else f"{cell['best_loss']:.9f}"
                gradient = "" if i else f"≤ {cell['largest_gradient_norm']:.0e}"
                rows.append([*map(str, told), describe_point(point), loss, gradient])
        return rows

    def __repr__(self) -> str:
        return f"{len(self)} fits\n{text_table(_HEADS, self._table(), _LEFT)}"

    def _repr_html_(self) -> str:
        return f"<p>{len(self)} fits</p>{html_table(_HEADS, self._table(), _LEFT)}"

    def to_dataframe(self) -> pd.DataFrame:
        """One row per seed of every fit: what was fitted, then the numbers of `Run.summary`. Needs pandas."""
        return as_dataframe(
            [
                {**{k: v for k, v in (cell.configuration or {}).items() if k != "kind"}, **run.summary()}
                for cell in self._cells
                for run in cell
            ]
        )


def summarise_cell(runs: Runs) -> dict[str, Any]:
    """A cell in JSON types: what was fitted, how often each point was reached, the best loss, the largest gradient."""
    told = runs.configuration or {}
    losses = [float(run.loss) for run in runs if not math.isnan(run.loss)]
    return {
        **{name: told.get(name) for name in AXES},
        "runs": len(runs),
        "points": [
            {"kind": x.kind, "label": x.label, "count": x.count, "loss": x.loss, "theory": x.predicted_loss}
            for x in runs.lines
        ],
        "best_loss": min(losses, default=None),
        "largest_gradient_norm": max((float(run.certificate.gradient_norm) for run in runs), default=None),
    }


def describe_point(point: dict[str, Any]) -> str:
    """How often a point was reached and what it is: `3 1-copy-1-average`, with the verdict unless it is a minimum."""
    name = str(point["label"]) or "(no label)"
    return f"{point['count']} {name}" + ("" if point["kind"] == "minimum" else f" ({point['kind']})")
