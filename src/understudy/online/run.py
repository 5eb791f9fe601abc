"""`Online`: the equations of one-pass SGD for a task, integrated in time."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp

from understudy.gaussian.fourfold import is_exact, nodes_for
from understudy.networks import TwoLayer
from understudy.online import equations, simulation
from understudy.online.equations import Rates
from understudy.online.overlaps import Overlaps, overlaps_of, pack, random_overlaps, unpack_rows
from understudy.tasks.order_problem import OrderProblem
from understudy.tasks.task import Task

Ending = Literal["complete", "diverged"]
Schedule = Callable[[float], float]
_LARGEST = 1e6
"""A run diverges if its order parameters grow past this many times their first size (or 1)."""


@dataclass(frozen=True)
class Online:
    r"""One-pass SGD of a two-layer student at learning rate η/d, d → ∞: the order-parameter equations.

    One step on a fresh sample x ~ N(0, I_d) is w ← w - (η/d) ∇_w ½‖f(x) - y‖² with y = f*(x) + noise × N(0, I). Time is
    α = steps/d. The overlaps then follow ordinary differential equations (see `understudy.online.equations`). For η → 0
    these are the gradient flow of the task at the flow time ηα/2.

    **Arguments**

    - `task`: a `Population` task with isotropic inputs, outgoing weights trained or fixed.
    - `learning_rate`: η ≥ 0, or a schedule: a function of α.
    - `noise`: standard deviation of the label noise.
    - `weight_decay`: λ. It adds (λ/2)‖θ‖² to the cost of a sample, where θ are all trained weights.
    - `outgoing_ratio`: the learning rate of outgoing weights is outgoing_ratio × η/d, so that they move as fast as the
      overlaps.
    - `nodes`: nodes per line for averages over four Gaussians; only smooth activations without closed form use it.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2), width=2, outgoing=1.0)
    >>> online = us.Online(task, learning_rate=0.1)
    >>> result = online.run(online.start(seed=0), times=[0.0, 10.0])
    >>> bool(result.loss[1] < result.loss[0])
    True

    **Reference**: Saad and Solla 1995, PRE 52, 4225; Riegler and Biehl 1995; Goldt et al. 2019 (NeurIPS).
    """

    task: Task
    learning_rate: float | Schedule
    noise: float = 0.0
    weight_decay: float = 0.0
    outgoing_ratio: float = 1.0
    nodes: int | None = None
    problem: OrderProblem = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", self.task.order_problem())
        if not callable(self.learning_rate):
            _check_not_negative("learning_rate", self.learning_rate)
        for name in ("noise", "weight_decay", "outgoing_ratio"):
            _check_not_negative(name, getattr(self, name))
        if self.nodes is not None and not 8 <= self.nodes <= 128:
            raise ValueError(f"nodes must lie between 8 and 128; received {self.nodes!r}.")
        nodes_for(self.problem.student, self.problem.teacher, self.nodes)

    def rates(self, time: float) -> Rates:
        """The rates at a time α."""
        eta = self.learning_rate(time) if callable(self.learning_rate) else self.learning_rate
        eta = float(eta)
        if not (math.isfinite(eta) and eta >= 0):
            raise ValueError(
                f"A schedule must return finite learning rates of at least 0; received {eta} at α = {time:g}."
            )
        numbers = (eta, self.outgoing_ratio * eta, self.noise, self.weight_decay)
        return Rates(*(np.float64(x) for x in numbers))

    def start(self, seed: int = 0, *, dim: int = 1000, norm: float = 0.5) -> Overlaps:
        """A random start: weights of norm about `norm` in dimension `dim`; see `random_overlaps`."""
        return random_overlaps(self.problem, seed, dim=dim, norm=norm)

    def slope(self, vector: np.ndarray, time: float = 0.0) -> np.ndarray:
        """The right-hand side at a flat vector of order parameters."""
        return np.asarray(equations.slope(self.problem, vector, self.rates(time), self.resolution(vector)))

    def loss(self, vector: np.ndarray) -> float:
        """E‖f - f*‖² at a flat vector of order parameters."""
        return float(equations.loss(self.problem, vector, self.resolution(vector)))

    def losses(self, vectors: np.ndarray) -> np.ndarray:
        """`loss` of many states (times, P)."""
        if not len(vectors):
            return np.zeros(0)
        finest = max((self.resolution(row) for row in vectors), key=lambda resolution: resolution.scale)
        return np.asarray(equations.losses(self.problem, vectors, finest))

    def jacobian(self, vector: np.ndarray, time: float = 0.0) -> np.ndarray:
        """The derivative of `slope`."""
        return np.asarray(equations.jacobian(self.problem, vector, self.rates(time), self.resolution(vector)))

    def slope_and_change(self, vector: np.ndarray, tangent: np.ndarray, time: float) -> tuple[np.ndarray, np.ndarray]:
        """The right-hand side, and its derivative along a tangent."""
        found = equations.slope_and_change(self.problem, vector, tangent, self.rates(time), self.resolution(vector))
        return np.asarray(found[0]), np.asarray(found[1])

    def flatten(self, start: TwoLayer | Overlaps) -> np.ndarray:
        """Order parameters as one flat vector, checked."""
        o = overlaps_of(self.problem, start)
        trained = self.problem.fixed_outgoing is None
        return pack(np.asarray(o.student), np.asarray(o.teacher), np.asarray(o.outgoing), trained)

    def resolution(self, vector: np.ndarray, nodes: int | None = None) -> equations.Resolution:
        """The accuracy of averages at this state."""
        wanted = nodes_for(self.problem.student, self.problem.teacher, self.nodes if nodes is None else nodes)
        return equations.resolution_for(self.problem, np.asarray(vector), wanted)

    def run(
        self,
        start: TwoLayer | Overlaps,
        times: Sequence[float] | np.ndarray,
        *,
        rtol: float = 1e-9,
        atol: float = 1e-11,
    ) -> "OnlineResult":
        """Integrate the equations from a network or its overlaps, and keep the order parameters at `times`.

        The method is adaptive, and implicit where that is faster (SciPy's LSODA). A run whose order parameters grow
        without limit ends early: `result.ending` is `"diverged"`, and `result.times` has the times before that.
        """
        wanted = _checked_times(times)
        first = self.flatten(start)
        limit = _LARGEST * max(1.0, float(np.abs(first).max()))

        def slope(time: float, vector: np.ndarray) -> np.ndarray:
            if not np.all(np.abs(vector) <= 10 * limit):
                return np.zeros_like(vector)  # beyond the event below, any finite number is right
            return self.slope(vector, time)

        def room(time: float, vector: np.ndarray) -> float:
            return limit - float(np.abs(vector).max())

        room.terminal = True  # type: ignore[attr-defined]
        end = max(float(wanted[-1]), 1e-12)
        found = solve_ivp(slope, (0.0, end), first, method="LSODA", t_eval=wanted, rtol=rtol, atol=atol, events=room)
        rows, reached = found.y.T, found.t
        q, r, a = unpack_rows(self.problem, rows)
        losses = self.losses(rows)
        ending: Ending = "complete"
        message = ""
        if found.status != 0:
            where = float(found.t_events[0][0]) if found.status == 1 else float(reached[-1] if len(reached) else 0.0)
            ending = "diverged"
            message = (
                f"The order parameters diverge at α = {where:.4g}: the learning rate "
                f"{float(self.rates(where).incoming):g} is beyond stability for this task and start. Lower "
                "learning_rate."
            )
        return OnlineResult(self, reached, losses, q, r, a, rows, ending, message, self._error(rows))

    def _error(self, rows: np.ndarray) -> float:
        """The relative error of the fourfold averages: their change with 1.5 times as many nodes, at a few states."""
        if is_exact(self.problem.student, self.problem.teacher) or not len(rows):
            return 0.0
        coarse = nodes_for(self.problem.student, self.problem.teacher, self.nodes)
        worst = 0.0
        for row in rows[np.unique(np.linspace(0, len(rows) - 1, 3).astype(int))]:
            values = [
                np.asarray(equations.moments(self.problem, row, self.resolution(row, nodes)))
                for nodes in (coarse, 3 * coarse // 2)
            ]
            size = float(np.abs(values[1]).max())
            worst = max(worst, float(np.abs(values[0] - values[1]).max()) / size if size else 0.0)
        return worst

    def simulate(
        self,
        start: TwoLayer | Overlaps,
        times: Sequence[float] | np.ndarray,
        *,
        dim: int,
        seeds: int | Sequence[int] = 1,
    ) -> simulation.Simulation:
        """Simulate one-pass SGD in dimension `dim`, once per seed, from weights with the overlaps of `start`."""
        o = overlaps_of(self.problem, start)
        return simulation.simulate(self, o, _checked_times(times), dim, seeds)


@dataclass(frozen=True)
class OnlineResult:
    """A run of the equations.

    - `times`: the α that were reached; `loss`: E‖f - f*‖² at each, without the label noise.
    - `student_overlaps` Q (times, n, n), `teacher_overlaps` R (times, n, k), `outgoing` a (times, n).
    - `ending`: `"complete"` or `"diverged"`; `message`: what happened and what to do, empty if complete.
    - `average_error`: relative error of the averages over four Gaussians; 0 where they are exact to rounding.
    - `online`: the equations; `vectors`: the states as they were integrated.
    """

    online: Online
    times: np.ndarray
    loss: np.ndarray
    student_overlaps: np.ndarray
    teacher_overlaps: np.ndarray
    outgoing: np.ndarray
    vectors: np.ndarray = field(repr=False)
    ending: Ending
    message: str
    average_error: float

    def overlaps(self, index: int = -1) -> Overlaps:
        """The order parameters at one of the times, for example as the start of another run."""
        return Overlaps(self.student_overlaps[index], self.teacher_overlaps[index], self.outgoing[index])


def _check_not_negative(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise TypeError(f"{name} is a number; received {value!r}.")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and not negative; received {value!r}.")


def _checked_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    wanted = np.asarray(times, float)
    if wanted.ndim != 1 or len(wanted) == 0 or not np.all(np.isfinite(wanted)):
        raise ValueError(f"times must be a list of at least one finite time α; received {times!r}.")
    if wanted[0] < 0 or np.any(np.diff(wanted) <= 0):
        raise ValueError(f"times must increase and not be negative; received {wanted.tolist()}.")
    return wanted
