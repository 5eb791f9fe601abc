"""Options of the flow, and the trajectory that results."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from understudy.dynamics.lengthening import Lengthening

Ending = Literal["polished", "settled", "stationary", "time limit", "step limit", "not finite", "lengthening"]
"""Why a run ended: Newton took over; Newton settled on kinks of the loss; the gradient is at rounding with no justified
jump; limits; numbers overflowed; neurons that change their scale forever were recognised."""

MARKS = 80
"""Quarters of a decade of time, from 10⁻² on, in which the norm of the parameters is kept."""


@dataclass(frozen=True)
class FlowOptions:
    """Tolerances and limits of the gradient flow, in natural units (those of the task itself, if it is ordinary).

    - `rtol`, `atol`: tolerances on the local error of a step, relative and absolute.
    - `stop`: gradient norm at which a run counts as stationary if no jump to Newton's method was justified before.
    - `pause`: gradient norm at which the first jump is tried. It is tried again whenever the norm is thirty times
      smaller.
    - `max_time`, `max_steps`: limits of one run.
    - `snapshots`: times at which parameters are kept, or the number of log-spaced times between 10⁻² and `max_time`.
    - `polish`: whether to change to Newton's method where that is justified.
    """

    rtol: float = 1e-6
    atol: float = 1e-6
    stop: float = 1e-13
    pause: float = 1e-4
    max_time: float = 1e12
    max_steps: int = 20_000
    snapshots: int | Sequence[float] | np.ndarray = 113
    polish: bool = True

    def __post_init__(self) -> None:
        for name in ("rtol", "atol", "max_time", "max_steps"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive; received {getattr(self, name)!r}.")
        if np.any(np.isnan(self.times)) or np.any(np.diff(self.times) <= 0) or np.any(self.times < 0):
            raise ValueError(f"Snapshot times are increasing and not negative; received {self.snapshots!r}.")

    @cached_property
    def times(self) -> np.ndarray:
        """The snapshot times."""
        if isinstance(self.snapshots, (int, np.integer)):
            count = max(int(self.snapshots), 0)
            return np.geomspace(min(1e-2, 1e-2 * self.max_time), self.max_time, count) if count else np.zeros(0)
        return np.asarray(self.snapshots, float)


@dataclass(frozen=True)
class Trajectory:
    """One run of the flow: where and why it ended, and the points that were kept along the way.

    `times`, `snapshots`: the snapshot times that the run reached, and the parameters at these times. `jump` describes
    the jump that ended the flow, if there was one. `time` is its departure time, `flow_end` the last point of the flow
    itself. `norms`: pairs (t, ‖θ(t)‖), one or none in each quarter of a decade of time.

    Times and norms are in natural units; see `understudy.tasks.units`. For ordinary problems these are the units of the
    task. `lengthening`: which neurons change their scale forever, if that ended the run; see
    `dynamics.lengthening`. `unit`: the unit of the loss; `speed`: the gradient norm in natural units, NaN where
    both are the same.
    """

    vector: np.ndarray
    loss: float
    gradient_norm: float
    ending: Ending
    time: float
    steps: int
    rejected: int
    times: np.ndarray = field(repr=False)
    snapshots: np.ndarray = field(repr=False)
    flow_end: np.ndarray = field(repr=False)
    jump: dict[str, float] | None = None
    factorisations: int = 0
    norms: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)), repr=False)
    speed: float = float("nan")
    unit: float = 1.0
    lengthening: Lengthening | None = field(default=None, repr=False)

    def in_units(self, lengths: np.ndarray, unit: float, gradient_norm: float) -> "Trajectory":
        """The trajectory of a rescaled task with its points, loss and gradient norm in the units of the task itself."""
        return replace(
            self,
            vector=self.vector * lengths,
            loss=self.loss * unit,
            gradient_norm=gradient_norm,
            snapshots=self.snapshots * lengths,
            flow_end=self.flow_end * lengths,
            speed=self.gradient_norm,
            unit=unit,
        )
