"""Runs as a table: a row for each distinct point, as text, as HTML, and as a data frame."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from understudy.networks import TwoLayer
from understudy.results.runs import Runs
from understudy.tables import html_table, text_table

if TYPE_CHECKING:
    import pandas as pd

HELD_OUT = "held out: mean cost on rows that were not trained on, of the run with the least loss."
LEGEND = "least λ: least Hessian eigenvalue; |∇L|: largest gradient norm; time: median flow time."

LEFT = (0, 1)
"""Columns of words; the others are numbers."""

LEVEL = 1e-13
"""Losses this near to their lower bound, relative to the target, are at it: sums of a few hundred terms are rounded."""

BIASED_ROWS = 5
OPEN = ("diverging", "undecided", "unconverged")
RECOVERED = 1e-20
"""A loss below which a student has recovered its teacher."""


@dataclass(frozen=True)
class Line:
    """Runs that ended in one point, up to symmetry; `first` is the position of the run that stands for them."""

    kind: str
    label: str
    count: int
    loss: float
    predicted_loss: float | None
    least_eigenvalue: float
    gradient_norm: float
    flow_time: float
    flat_dimension: int
    first: int
    rows: tuple[int, ...]
    held_out_loss: float | None = None

    @property
    def verdict(self) -> str:
        """The kind, and the dimension of a flat set of minima."""
        return self.kind + (f" ({self.flat_dimension}-d)" if self.flat_dimension else "")


def summarise_runs(runs: Runs) -> list[Line]:
    """Group runs by the point they ended in, up to symmetry, most frequent first."""
    lines = []
    for group in runs.groups():
        members = [runs[i] for i in group.members]
        certificates = [run.certificate for run in members]
        lines.append(
            Line(
                kind=group.kind,
                label=group.label,
                count=group.count,
                loss=float(group.loss),
                predicted_loss=members[0].structure.predicted_loss,
                least_eigenvalue=float(min(c.least_eigenvalue for c in certificates)),
                gradient_norm=float(max(c.gradient_norm for c in certificates)),
                flow_time=float(np.median([run.flow_time for run in members])),
                flat_dimension=int(certificates[0].flat_dimension),
                first=group.members[0],
                rows=tuple(group.members),
                held_out_loss=min(members, key=lambda run: run.loss).held_out_loss,
            )
        )
    return lines


def columns(lines: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the table."""
    theory = any(line.predicted_loss is not None for line in lines)
    held_out = any(line.held_out_loss is not None for line in lines)
    more = [*(["held out"] if held_out else []), *(["- theory"] if theory else [])]
    heads = ["verdict", "label", "runs", "loss", *more, "least λ", "|∇L|", "time"]
    rows = []
    for line in lines:
        gap = "" if line.predicted_loss is None else f"{line.loss - line.predicted_loss:.0e}"
        rows.append(
            [
                line.verdict,
                line.label,
                str(line.count),
                f"{round(line.loss, 9) + 0.0:.9f}",  # rounding below zero is zero
                *(["" if line.held_out_loss is None else f"{line.held_out_loss:.6g}"] if held_out else []),
                *([gap] if theory else []),
                f"{line.least_eigenvalue:.1e}",
                f"{line.gradient_norm:.0e}",
                f"{line.flow_time:.0e}",
            ]
        )
    return heads, rows


def tell_recovery(runs: Runs) -> str | None:
    """How many runs recover the teacher, and how many others have the least possible loss to rounding; None if none.

    The losses are those of `refined_loss`: next to the teacher they have many more digits than sums of order one.
    """
    if runs.task is None:
        return None
    least = runs.task.lower_bound
    perfect = [run for run in runs if run.certificate.kind == "minimum"]
    perfect = [run for run in perfect if run.loss <= least + LEVEL * runs.task.target_scale]
    if not perfect:
        return None
    below = sum(run.loss - least < RECOVERED and run.loss >= least for run in perfect)
    words = f"{below} of {len(runs)} runs recover the teacher: loss below {RECOVERED:.0e}."
    others = len(perfect) - below
    return words + (f" {others} more reach the least possible loss, to rounding." if others else "")


def tell_biases(runs: Runs) -> list[str]:
    """The bias of each neuron and the offset, of the run that stands for each of the first rows."""
    told = []
    for line in runs.lines[:BIASED_ROWS]:
        network = runs[line.first].parameters
        if isinstance(network, TwoLayer) and network.bias is not None:
            words = _four_places(network.bias)
            last = _four_places(0.0 if network.offset is None else network.offset)
            told.append(
                f"Biases of {line.verdict} {line.label} (seed {runs.seeds[line.first]}): {words}; offset {last}."
            )
    return told


def tell_reasons(runs: Runs) -> list[str]:
    """Why the verdict on a row is open or the run diverges: the first piece of evidence, once per such verdict."""
    told: dict[str, str] = {}
    for line in runs.lines:
        if line.kind in OPEN and line.kind not in told:
            reason = next(iter(runs[line.first].certificate.evidence), "no reason is stored")
            told[line.kind] = f"Why {line.kind} (seed {runs.seeds[line.first]}): {reason}."
    return list(told.values())


def _four_places(numbers: ArrayLike) -> str:
    """The numbers with four places each; -1e-17 is 0.0000.

    >>> _four_places([0.5, -1e-17])
    '0.5000, 0.0000'
    """
    return ", ".join(f"{round(float(number), 4) + 0.0:.4f}" for number in np.atleast_1d(np.asarray(numbers)))


def as_text(runs: Runs) -> str:
    """The table in plain characters."""
    return f"{_title(runs)}\n{text_table(*columns(runs.lines), LEFT)}"


def as_html(runs: Runs) -> str:
    """The table for notebooks."""
    table = html_table(*columns(runs.lines), LEFT)
    return f"<p>{html.escape(_title(runs))}</p>{table}<p><small>{html.escape(LEGEND)}</small></p>"


def as_dataframe(records: Sequence[Mapping[str, Any]], index: str | None = None) -> pd.DataFrame:
    """Records as a data frame; raises `ImportError` with what to install."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "to_dataframe needs pandas, which is not installed: `pip install pandas`. Without it, use to_dataset(), or "
            "[run.summary() for run in runs]."
        ) from error
    frame = pd.DataFrame.from_records(list(records))
    return frame if index is None else frame.set_index(index)


def _title(runs: Runs) -> str:
    count = f"{len(runs)} run{'s' * (len(runs) != 1)}"
    about = dict(runs.about)
    of = f" of {about.pop('task')}" if "task" in about else ""
    return f"{count}{of}" + (": " if about else "") + ", ".join(f"{name} {value}" for name, value in about.items())
