"""Shared by all descriptions of fits: how the flow is followed, and how runs are computed and become rows."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from understudy import activations
from understudy.dynamics.trajectory import FlowOptions
from understudy.experiments.description import OutOfTimeError, array_fields, array_variables
from understudy.gaussian.own import is_own
from understudy.results import Run, Runs
from understudy.results.dataset import NEEDED

if TYPE_CHECKING:
    import xarray as xr

    from understudy.fitting import FitProgress
    from understudy.tasks.task import Task

INIT_STD = 0.1
"""Default standard deviation of the initial weights."""


def name_of_activation(text: str) -> str:
    """The name under which an activation is stored: formulas and functions of modules in one form, others as given."""
    found = activations.get(text)
    return found.name if is_own(found) else text


@dataclass(frozen=True, eq=False, kw_only=True)
class FlowFit:
    """A frozen description of gradient flows that all have the same task and differ in their seed.

    A subclass is a frozen dataclass that defines `task`, `headline`, `sizes` and `advice`.
    """

    kind: ClassVar[str] = "fit"
    needed: ClassVar[frozenset[str]] = NEEDED
    most_together: ClassVar[int] = 100

    activation: str = "erf"
    bias: str | None = None
    init: str | None = None
    init_std: float | None = None
    tolerance: float = 1e-6
    max_time: float | None = None
    times: tuple[float, ...] | None = None
    begin: str | None = None
    proof: bool = False
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)

    def task(self) -> "Task":
        """The task that is described."""
        raise NotImplementedError

    def headline(self) -> str:
        """The task in a few words, for the first line on the screen."""
        raise NotImplementedError

    def sizes(self) -> str:
        """The sizes that decide how much memory is needed, in words."""
        raise NotImplementedError

    def advice(self, seeds: int) -> dict[str, float]:
        """The numbers that a fit keeps in memory, grouped by the advice that would reduce them."""
        raise NotImplementedError

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_bias(self) -> None:
        if self.bias not in (None, "none", "trained"):
            raise ValueError(f"bias is 'none' or 'trained'; received {self.bias!r}.")
        self._set(bias="trained" if self.bias == "trained" else None)

    def _check_init(self, default: str = "gaussian") -> None:
        """Fill in how runs start; refuse `init_std` where it has no effect."""
        init = default if self.init is None else self.init
        if init not in ("gaussian", "glorot"):
            raise ValueError(f"init is 'gaussian' or 'glorot'; received {self.init!r}.")
        if init == "glorot":
            if self.init_std is not None:
                raise ValueError(
                    "Glorot's start has standard deviations of its own; "
                    f"received init='glorot' and init_std={self.init_std}. Leave init_std out."
                )
            self._set(init=init, init_std=None)
            return
        std = INIT_STD if self.init_std is None else float(self.init_std)
        if not 0 < std < math.inf:
            raise ValueError(f"init_std must be a positive number; received {self.init_std}.")
        self._set(init=init, init_std=std)

    def _check_flow(self) -> None:
        if not 1e-13 <= self.tolerance <= 1e-1:
            raise ValueError(f"tolerance must lie between 1e-13 and 0.1; received {self.tolerance}.")
        if self.max_time is not None and not 0 < self.max_time < math.inf:
            raise ValueError(f"max_time must be a positive number; received {self.max_time}.")
        if self.times is not None:
            self._set(times=tuple(float(t) for t in self.times))
        self.options()  # refuses times that are not increasing

    def configuration(self) -> dict[str, Any]:
        """The description in JSON types. Unused fields are left out, so that new fields do not change keys."""
        told: dict[str, Any] = {"kind": self.kind}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name != "arrays" and value is not None and value is not False:
                told[f.name] = list(value) if isinstance(value, tuple) else value
        return told | array_fields(self.arrays)

    @classmethod
    def of(cls, configuration: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> Self:
        """The description with this configuration; `arrays` are those that it names."""
        known = {f.name for f in fields(cls)} - {"arrays"}
        told: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in configuration.items()
            if name in known
        }
        made = cls(**told, arrays=arrays or {})
        if made.configuration() != dict(configuration):
            raise ValueError(f"This version cannot read the description of this fit: {dict(configuration)}.")
        return made

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.configuration() == other.configuration()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.activation, self.init_std, tuple(self.arrays)))

    def options(self) -> FlowOptions:
        """Tolerances and snapshots of the flow."""
        chosen: dict[str, Any] = {"rtol": self.tolerance, "atol": self.tolerance}
        if self.max_time is not None:
            chosen["max_time"] = self.max_time
        if self.times is not None:
            chosen["snapshots"] = self.times
        return FlowOptions(**chosen)

    def start_options(self) -> dict[str, Any]:
        """The arguments of `fit_each` that say how starts are drawn."""
        return {"init": self.init, "init_std": INIT_STD if self.init_std is None else self.init_std}

    def finish(self, run: Run) -> Run:
        """A finished run, with what only this description can add, such as the loss on held-out data."""
        return run

    def follow(
        self,
        seeds: list[int],
        *,
        watch: "Callable[[FitProgress], None] | None" = None,
        seconds: float | None = None,
        starts: Any = None,
        jobs: int | None = None,
    ) -> Iterator[Run]:
        """Compute these seeds and yield runs as they finish; raise `OutOfTimeError` after `seconds`.

        `starts`: a batch of parameters to begin with, for a description with `begin`. `jobs`: see `understudy.fit`.
        """
        from understudy.fitting import fit_each

        begun = time.monotonic()

        def observe(progress: "FitProgress") -> None:
            if watch is not None:
                watch(progress)
            if seconds is not None and time.monotonic() - begun > seconds:
                raise OutOfTimeError

        if (starts is None) != (self.begin is None):
            raise ValueError("Runs that continue others begin at their ends: give starts together with begin.")
        chosen = self.start_options() if starts is None else {"init": starts}
        chosen |= {"options": self.options(), "watch": observe, "jobs": jobs, "proof": self.proof}
        for _, run in fit_each(self.task(), seeds, **chosen):
            yield self.finish(run)

    def to_runs(self, runs: list[Run]) -> Runs:
        """Runs of this description, as an object that knows its task."""
        return Runs(runs, self.task(), self.options().times, self.configuration())

    def to_rows(self, runs: list[Run]) -> "xr.Dataset":
        """Runs of this description as rows, with the arrays that were given."""
        return self.to_runs(runs).to_dataset().assign(array_variables(self.arrays))

    def rows(self, seeds: list[int], *, seconds: float | None = None) -> "xr.Dataset | None":
        """Compute these seeds in this process, one row each. After `seconds`, return the finished ones, or None if
        there are none."""
        finished: list[Run] = []
        try:
            for run in self.follow(seeds, seconds=seconds, jobs=1):
                finished.append(run)
        except OutOfTimeError:
            pass
        return self.to_rows(sorted(finished, key=lambda run: run.seed)) if finished else None
