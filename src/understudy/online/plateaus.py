r"""Plateaus of a run: how long they last, when the run leaves them, and the certified critical points behind them.

A plateau is a slow stretch near a fixed point y* of the equations that has growing directions. The linearised equations
predict when a run leaves it. Where the run is slowest, its state is split into y_s + v, where v is the part along the
growing eigenvectors of the Jacobian J. Then y_s follows the equations, and v' = J(y_s) v. The run leaves on the
unstable manifold, to second order y_s + v + s with (2λ - J) s = ½F''[v, v], where λ is the largest growth rate. It has
left when the loss there has fallen by a tenth.

One exponential e^(λt) with the λ of the fixed point is not enough. For small η there are stable directions with rates
of order η². Along them a run stays far from the fixed point as long as the plateau lasts, and the growth is slower
there.

For η → 0 the fixed points of the noiseless equations are the critical points of the population loss, and an eigenvalue
-μ < 0 of its Hessian is the growth rate ημ/2. At finite η the fixed point is shifted by the η² term.
"""

from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.signal import find_peaks

from understudy.networks import Teacher, TwoLayer
from understudy.online.overlaps import Overlaps, unpack_rows, weights_of
from understudy.online.run import Online, OnlineResult
from understudy.points import Certificate, certify
from understudy.points.plateaus import nearest_critical
from understudy.tasks.population import Population

FALL = 0.1
"""A run has left a plateau when its loss has fallen by this share of what it was at its slowest."""


@dataclass(frozen=True)
class Plateau:
    """A stretch of slow motion, slowest at `time`. From `begin` to `end` the speed is within a factor of the slowest.

    - `loss`: at the slowest kept time; `overlaps`: there.
    - `fixed_point`: the fixed point of the equations that Newton's method finds from there, as a flat vector, or None;
      `fixed_loss`: its loss; `growth_rates`: real parts of the positive eigenvalues of its Jacobian, the largest first.
    - `predicted_leaving`, `measured_leaving`: when the loss is a tenth below `loss`, from the linearised equations
      and from the run; NaN where nothing grows, or the run does not get there.
    - `index`, `critical_loss`, `critical_rates`: of the nearest critical point of the population loss; growth rates are
      η|λ|/2 for each negative eigenvalue λ of its Hessian. `certificate`: its certificate; `critical`: the network.
    """

    begin: float
    end: float
    time: float
    loss: float
    overlaps: Overlaps = field(repr=False)
    fixed_point: np.ndarray | None = field(repr=False)
    fixed_loss: float
    growth_rates: tuple[float, ...]
    predicted_leaving: float
    measured_leaving: float
    critical: TwoLayer = field(repr=False)
    certificate: Certificate = field(repr=False)
    distance: float
    critical_rates: tuple[float, ...]

    @property
    def duration(self) -> float:
        """The duration of the plateau."""
        return self.end - self.begin

    @property
    def index(self) -> int:
        """Number of descending directions of the critical point behind it, in the span of students and teachers."""
        return self.certificate.index


def find_plateaus(result: OnlineResult, *, rise: float = 3.0) -> list[Plateau]:
    """The plateaus of a run, in order of time, from the times that were kept.

    A plateau is a local minimum of the speed ‖dy/dα‖ that is lower than the highest speeds before and after it by at
    least a factor `rise`. The end of a run is not a plateau, because nothing faster follows. Plateaus shorter than the
    spacing of the times are not found.
    """
    if len(result.times) < 3:
        return []
    online = result.online
    speeds = np.array([np.linalg.norm(online.slope(v, t)) for v, t in zip(result.vectors, result.times, strict=True)])
    slowest, _ = find_peaks(-np.log(np.maximum(speeds, 1e-300)), prominence=np.log(rise))
    return [_examine(result, speeds, int(i), rise) for i in slowest]


def _examine(result: OnlineResult, speeds: np.ndarray, i: int, rise: float) -> Plateau:
    online, times = result.online, result.times
    fast = speeds > rise * speeds[i]
    before, after = np.flatnonzero(fast[:i]), np.flatnonzero(fast[i:])
    begin = times[before[-1] + 1] if len(before) else times[0]
    end = times[i + after[0] - 1] if len(after) else times[-1]
    state, time = result.vectors[i], float(times[i])
    point = fixed_point(online, state, time)
    rates: tuple[float, ...] = ()
    fixed_loss = float("nan")
    if point is not None:
        fixed_loss = online.loss(point)
        values = np.linalg.eigvals(online.jacobian(point, time))
        threshold = 1e-9 * float(np.abs(values).max())
        rates = tuple(sorted((float(x) for x in values.real if x > threshold), reverse=True))
    task, network = as_network(online, state)
    vector = critical_behind(task, network)
    certificate = certify(task, vector)
    eta = float(online.rates(time).incoming)
    negative = certificate.eigenvalues[certificate.eigenvalues < -certificate.threshold]
    return Plateau(
        begin=float(begin),
        end=float(end),
        time=time,
        loss=float(result.loss[i]),
        overlaps=result.overlaps(i),
        fixed_point=point,
        fixed_loss=fixed_loss,
        growth_rates=rates,
        predicted_leaving=predict_leaving(online, state, time),
        measured_leaving=_measured(result, i, (1 - FALL) * float(result.loss[i])),
        critical=task.unflatten(jnp.asarray(vector)),
        certificate=certificate,
        distance=float(np.linalg.norm(vector - np.asarray(task.flatten(network)))),
        critical_rates=tuple(float(-eta * x / 2) for x in negative),
    )


def as_network(online: Online, vector: np.ndarray) -> tuple[Population, TwoLayer]:
    """A population task and a network with these order parameters in as few dimensions as they need, n + k."""
    problem = online.problem
    q, r, a = (part[0] for part in unpack_rows(problem, np.asarray(vector)[None]))
    dim = problem.width + problem.teachers
    w, v = weights_of(problem, Overlaps(q, r, a), dim)
    b = np.asarray(problem.teacher_outgoing).reshape(-1, *problem.outputs)
    outgoing = "trained" if problem.fixed_outgoing is None else a
    task = Population(Teacher(v, b, problem.teacher), problem.width, activation=problem.student, outgoing=outgoing)
    return task, TwoLayer(w, a)


def critical_behind(task: Population, network: TwoLayer) -> np.ndarray:
    """The critical point of any kind that Newton's method finds from a network, as a flat vector.

    Where several students coincide, the loss is often quartic in their differences, and Newton's method is slow. So
    students that end within a hundredth of each other are replaced by their mean, and the point is refined again. The
    more symmetric point is returned if its gradient is as small.
    """
    vector, residual = nearest_critical(task, task.flatten(network))
    found = task.unflatten(jnp.asarray(vector))
    again, rest = nearest_critical(task, task.flatten(_together(found)))
    return vector if rest > max(10 * residual, 1e-12) else again


def _together(network: TwoLayer) -> TwoLayer:
    """The network with each student replaced by the mean of those that are within a hundredth of it."""
    w, a = np.asarray(network.incoming), np.asarray(network.outgoing)
    features = np.concatenate([w, a.reshape(len(w), -1)], axis=1)
    distance = np.linalg.norm(features[:, None] - features[None, :], axis=-1)
    near = distance <= 0.01 * np.linalg.norm(features, axis=1)[:, None]
    share = near / near.sum(axis=1, keepdims=True)
    incoming = share @ w
    incoming[np.abs(incoming) <= 1e-14 * np.abs(w).max()] = 0.0
    return TwoLayer(incoming, np.tensordot(share, a, axes=1))


def fixed_point(online: Online, start: np.ndarray, time: float = 0.0, *, steps: int = 60) -> np.ndarray | None:
    """A fixed point of the equations at the rates of this time, by Newton's method from a state, or None.

    Steps solve a least-squares problem and are at most a tenth of the state's size. A point is accepted if its speed is
    below 1e-10 of η times its size, and if there are weights with its overlaps (to 1e-6).
    """
    point = np.array(start)
    size = max(1.0, float(np.linalg.norm(point)))
    goal = 1e-10 * size * max(float(online.rates(time).incoming), 1e-300)
    for _ in range(steps):
        speed = online.slope(point, time)
        if not np.all(np.isfinite(speed)):
            return None
        if np.linalg.norm(speed) <= goal:
            return point if _realisable(online, point) else None
        jacobian = online.jacobian(point, time)
        if not np.all(np.isfinite(jacobian)):
            return None
        step = -np.linalg.lstsq(jacobian, speed, rcond=1e-11)[0]
        point = point + step * min(1.0, 0.1 * size / max(float(np.linalg.norm(step)), 1e-300))
    return None


def _realisable(online: Online, vector: np.ndarray) -> bool:
    q, r, a = (part[0] for part in unpack_rows(online.problem, vector[None]))
    gram = Overlaps(q, r, a).gram(online.problem)
    return bool(np.linalg.eigvalsh(gram)[0] > -1e-6 * max(1.0, float(np.abs(gram).max())))


def predict_leaving(online: Online, state: np.ndarray, time: float) -> float:
    """When the loss of a run at `state` at `time` will have fallen by a tenth, from the linearised equations.

    NaN if no direction grows there, or if it takes more than twenty e-foldings.
    """
    values, right = np.linalg.eig(online.jacobian(state, time))
    growing = values.real > 1e-9 * np.abs(values).max()
    if not np.any(growing):
        return float("nan")
    leading = float(values.real.max())
    # The part of the state that grows: the growing part of the speed, divided by the growth rates.
    speed = np.linalg.solve(right, online.slope(state, time).astype(complex))
    grown = (right[:, growing] @ (speed[growing] / values[growing])).real
    size = len(state)

    def together(later: float, both: np.ndarray) -> np.ndarray:
        return np.concatenate(online.slope_and_change(both[:size], both[size:], time + later))

    level = (1 - FALL) * online.loss(state)

    def left(later: float, both: np.ndarray) -> float:
        base, moved = both[:size], both[size:]
        moment = time + later
        bend = online.slope(base + moved, moment) - 2 * online.slope(base, moment) + online.slope(base - moved, moment)
        curved = np.linalg.solve(2 * leading * np.eye(size) - online.jacobian(base, moment), bend / 2)
        return online.loss(base + moved + curved) - level

    left.terminal, left.direction = True, -1  # type: ignore[attr-defined]
    found = solve_ivp(
        together,
        (0.0, 20 / leading),
        np.concatenate([state - grown, grown]),
        method="LSODA",
        events=left,
        rtol=1e-8,
        atol=1e-12,
        max_step=0.25 / leading,
    )
    return time + float(found.t_events[0][0]) if len(found.t_events[0]) else float("nan")


def _measured(result: OnlineResult, i: int, level: float) -> float:
    """When the run's loss crosses a level after the i-th time, interpolated between kept times in its logarithm."""
    below = np.flatnonzero(result.loss[i:] <= level)
    if not len(below) or below[0] == 0:
        return float("nan")
    j = i + int(below[0])
    logs = np.log(np.maximum(result.loss[j - 1 : j + 1], 1e-300))
    share = (logs[0] - np.log(level)) / (logs[0] - logs[1])
    return float(result.times[j - 1] + share * (result.times[j] - result.times[j - 1]))
