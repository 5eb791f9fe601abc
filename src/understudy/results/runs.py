"""The results of `fit`: one `Run` per seed, and `Runs`, a sequence of them that prints as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from understudy.dynamics.trajectory import Trajectory
from understudy.points import Certificate, Group, Structure, group_runs
from understudy.tasks.task import Task

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from understudy.results.table import Line

FIT = "fit"
"""The kind of stored runs, in their configuration and in the names of their files."""


@dataclass(frozen=True)
class Run:
    """One seed: where it ended, what that point is, and how the flow got there.

    `parameters` are those of the task, in its full dimension. `trajectory` is the record of the flow, in flat vectors
    of `flow_task`. This is the task in which the flow was followed, reduced to the span of teachers and students if
    that is smaller. It is None for a stored run whose task is not known; see `understudy.open`. Near a teacher that is
    recovered, `loss` comes from the way to it and not from sums of order one; see `refined_loss`. `held_out_loss`
    is the mean cost on data that were not trained on, for fits to data that hold some out.
    """

    seed: int
    parameters: Any
    loss: float
    certificate: Certificate
    structure: Structure
    trajectory: Trajectory = field(repr=False)
    flow_task: Any = field(repr=False)
    held_out_loss: float | None = None

    @property
    def flow_time(self) -> float:
        """The flow time at which the run ended, or at which Newton's method took over."""
        return self.trajectory.time

    def summary(self) -> dict[str, Any]:
        """The run in a few plain numbers, as `understudy fit --json` prints it."""
        c = self.certificate
        return {
            "seed": self.seed,
            "loss": float(self.loss),
            **({} if self.held_out_loss is None else {"held_out_loss": float(self.held_out_loss)}),
            "gradient_norm": float(c.gradient_norm),
            "least_eigenvalue": float(c.least_eigenvalue),
            "index": int(c.index),
            "kind": c.kind,
            "label": self.structure.label,
            "flow_time": float(self.flow_time),
        }


class Runs(Sequence[Run]):
    """The results of several seeds. They print as a table with a row for each distinct point.

    **Attributes**

    - `task`: what was fitted; None for stored runs whose task is not known.
    - `times`: the snapshot times of the flow.
    - `configuration`: the description the runs were computed from (JSON types), if there is one.
    - `about`: the task in a few numbers and words.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        task: Task | None = None,
        times: np.ndarray | None = None,
        configuration: Mapping[str, Any] | None = None,
        about: Mapping[str, Any] | None = None,
    ):
        self._runs = list(runs)
        self.task = task
        longest = max((run.trajectory.times for run in self._runs), key=len, default=np.zeros(0))
        self.times = np.asarray(longest if times is None else times, float)
        self.configuration = None if configuration is None else dict(configuration)
        known = about if about is not None else {} if task is None else {"task": type(task).__name__, **task.about()}
        self.about = dict(known)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Runs(self._runs[index], self.task, self.times, self.configuration, self.about)
        return self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __repr__(self) -> str:
        from understudy.results.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from understudy.results.table import as_html

        return as_html(self)

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return [run.seed for run in self._runs]

    def groups(self) -> list[Group]:
        """The distinct points reached, most frequent first."""
        return group_runs(self._runs)

    @cached_property
    def lines(self) -> list[Line]:
        """The rows of the printed table, one for each distinct point."""
        from understudy.results.table import summarise_runs

        return summarise_runs(self)

    def to_dataset(self) -> xr.Dataset:
        """All that the runs hold, one row per seed; see `understudy.results.to_dataset`."""
        from understudy.results.dataset import to_dataset

        return to_dataset(self)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per seed with the numbers of `Run.summary`, indexed by seed. Needs pandas."""
        from understudy.results.table import as_dataframe

        return as_dataframe([run.summary() for run in self._runs], index="seed")

    def save(self, path: str | Path) -> Path:
        """Write all runs to one file, atomically; `understudy.open(path)` reads it, and so does plain xarray.

        The file name ends in `.nc`, which is added if it is missing.
        """
        from understudy.store import write_result

        return write_result(path, self.configuration or {"kind": FIT}, self.to_dataset())
