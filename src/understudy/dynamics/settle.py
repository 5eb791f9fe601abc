"""Settling in a minimum of a loss with kinks: an active-set Newton method that ends on the kinks.

A minimum of a regularised ReLU network generically has hidden pre-activations z that are exactly zero: from below the
attraction pulls them up, from above they would raise the loss. No gradient vanishes there, and first-order methods only
hover around the minimum. But the loss is L(θ) = G(θ, s) at s = sign z, with G smooth (|z| replaced by s·z), and θ is
stationary if ∇_θ G(θ, s) = 0 for some s with s = sign z where z ≠ 0 and s ∈ [-1, 1] where z = 0 (Clarke's
subdifferential). Newton's method solves these equations and z_pinned = 0 for θ and the free slopes s together.

The method first smooths the loss: |z| is replaced by √(z² + ε²), and ε is lowered in steps while Newton's method (with
absolute eigenvalues and a line search) follows the minimum. At the end the slopes z/√(z² + ε²) show which z are pinned:
those whose slope is not ±1.

Then let d be a step with J d = -z (J is the Jacobian of the pinned z), and let H be the Hessian of G. On the null space
of J the Newton step uses the absolute eigenvalues of H (so that it descends) and leaves out its zero modes. The rest,
∇G + H d, lies in the range of Jᵀ, = -Jᵀμ, and changes the slopes by μ/f with f = ∂L/∂|z|. A slope beyond ±1, or a
concave kink (f < 0), releases its z to that side. If the loss rises along a step because the step crosses a kink, the
first z that it crosses is pinned.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.dynamics.trust_region import absolute_newton, newton
from understudy.tasks.task import Task

EPS = np.finfo(float).eps


@dataclass(frozen=True)
class Settled:
    """The point at which a run settled.

    - `residual`: ‖∇_θ G(θ, s)‖ with the best slopes s found, each within [-1, 1]: the distance from zero to the
      subdifferential is at most this. Without kinks it is the gradient norm.
    - `slack`: the largest |z| among the pinned, which should be zero to rounding.
    - `gates`: s for every hidden pre-activation; `pinned`: which of them are zero.
    - `least_curvature`: least eigenvalue of the Hessian along directions that keep the pinned ones at zero.
    """

    vector: np.ndarray
    loss: float
    residual: float
    gates: np.ndarray
    pinned: np.ndarray
    least_curvature: float
    iterations: int
    slack: float = 0.0


@eqx.filter_jit
def _smooth(task: Task, vector: Array) -> tuple[Array, Array, Array]:
    return task.evaluate(vector)


@eqx.filter_jit
def _smooth_loss(task: Task, vector: Array) -> Array:
    return task.value(vector)


@eqx.filter_jit
def _loss_and_hidden(task: Task, vector: Array) -> tuple[Array, Array]:
    return task.value(vector), task.hidden_values(vector)


@eqx.filter_jit
def _gated(task: Task, vector: Array, gates: Array) -> tuple[Array, Array, Array, Array]:
    """Gradient and Hessian of G, the force on each kink, and the Jacobian of the z."""
    zero = jnp.zeros_like(gates)
    slope = jax.grad(task.gated_value)
    force = jax.grad(task.gated_value, argnums=2)(vector, gates, zero)
    hessian = jax.jacfwd(lambda v: slope(v, gates, zero))(vector)
    jacobian = jax.jacfwd(lambda v: task.gated_hidden(v, gates))(vector)
    return slope(vector, gates, zero), hessian, force, jacobian


@eqx.filter_jit
def gated_gradient(task: Task, vector: Float[Array, " P"], gates: Float[Array, " H"]) -> Float[Array, " P"]:
    """∇_θ G(θ, s)."""
    return jax.grad(task.gated_value)(vector, gates, jnp.zeros_like(gates))


@eqx.filter_jit
def _smoothed_loss(task: Task, vector: Array, width: Array) -> Array:
    return task.smoothed_value(vector, width)


@eqx.filter_jit
def _smoothed(task: Task, vector: Array, width: Array) -> tuple[Array, Array, Array]:
    slope = jax.value_and_grad(task.smoothed_value)
    loss, gradient = slope(vector, width)
    return loss, gradient, jax.jacfwd(lambda v: slope(v, width)[1])(vector)


def settle(
    task: Task, vector: Float[Array, " P"], *, iterations: int = 60, widest: float = 1e-2, narrowest: float = 1e-6
) -> Settled:
    """Go from a point near a minimum to the minimum, which may lie on kinks.

    `widest`, `narrowest`: the smoothing ε begins and ends at these fractions of the root mean square of the z. Wide
    smoothing may lead to a neighbouring minimum that is higher than the start. Then settling is repeated with less.
    """
    point = np.asarray(vector)
    if not task.kinked:
        return _settle_smooth(task, point, iterations)
    loss, hidden = (np.asarray(x) for x in _loss_and_hidden(task, jnp.asarray(point)))
    size = max(float(np.sqrt(np.mean(hidden**2))), 1e-12)
    best: Settled | None = None
    while True:
        shares = 10.0 ** np.arange(np.log10(widest), np.log10(narrowest) - 0.5, -1)
        ended = _settle_kinked(task, point, shares * size, iterations)
        if best is None or ended.loss < best.loss:
            best = ended
        if best.loss <= float(loss) * (1 + 1e-13) or widest < 10 * narrowest:
            return best
        widest /= 100


def _settle_kinked(task: Task, point: np.ndarray, widths: np.ndarray, iterations: int) -> Settled:
    """Follow the minimum through the smoothing `widths`, then move onto the kinks."""
    for width in widths:
        point = _follow_smoothed(task, point, float(width))
    return settle_from(task, point, float(width), iterations=iterations)


def settle_from(task: Task, vector: Float[Array, " P"] | np.ndarray, width: float, *, iterations: int = 60) -> Settled:
    """Go from a minimum of the loss smoothed at ε = `width` to the kinks next to it, by Newton's method alone.

    A second run leaves out dead neurons.
    """
    point = np.asarray(vector)
    ended = _ActiveSet(task, point, width).run(iterations)
    # Dead neurons have no slopes to solve for. They are set to zero and left out if this does not change the loss.
    parameters, hidden = task.dead(jnp.asarray(ended.vector))
    if not parameters.any():
        return ended
    without = _ActiveSet(task, np.where(parameters, 0.0, ended.vector), width)
    without.moving = ~parameters
    without.pinned = ended.pinned & ~hidden
    without.gates = np.where(hidden, 0.0, ended.gates)
    cleaned = without.run(iterations)
    good = cleaned.loss <= ended.loss + 1e-12 * abs(ended.loss) and cleaned.residual + cleaned.slack <= max(
        ended.residual + ended.slack, 1e-12
    )
    return cleaned if good else ended


def _follow_smoothed(task: Task, point: np.ndarray, width: float) -> np.ndarray:
    """Newton's method at one smoothing ε, until the steps are far below ε or nothing more is gained."""
    epsilon = jnp.asarray(width)

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        loss, gradient, hessian = _smoothed(task, jnp.asarray(x), epsilon)
        return float(loss), np.asarray(gradient), np.asarray(hessian)

    def only_loss(x: np.ndarray) -> float:
        return float(_smoothed_loss(task, jnp.asarray(x), epsilon))

    return newton(evaluate, only_loss, point, iterations=60, step=1e-3 * width)[0]


def _settle_smooth(task: Task, point: np.ndarray, iterations: int) -> Settled:
    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        loss, gradient, hessian = _smooth(task, jnp.asarray(x))
        return float(loss), np.asarray(gradient), np.asarray(hessian)

    def only_loss(x: np.ndarray) -> float:
        return float(_smooth_loss(task, jnp.asarray(x)))

    point, loss, norm, least, count = newton(evaluate, only_loss, point, iterations=4 * iterations, step=0.0)
    none = np.zeros(0)
    return Settled(point, loss, norm, none, none.astype(bool), least, count)


class _ActiveSet:
    """The state of the method: point, loss, z, which of them are pinned, and their slopes."""

    def __init__(self, task: Task, point: np.ndarray, width: float):
        self.task, self.point = task, point
        self.moving = np.ones(len(point), bool)
        loss, hidden = _loss_and_hidden(task, jnp.asarray(point))
        self.loss, self.hidden = float(loss), np.asarray(hidden)
        slopes = self.hidden / np.sqrt(self.hidden**2 + width**2)
        self.pinned = np.abs(slopes) < 1 - 1e-4  # |z| < 70 ε
        self.gates = np.where(self.pinned, slopes, np.sign(self.hidden))

    def run(self, iterations: int) -> Settled:
        best: Settled | None = None
        stalled = 0
        for count in range(1, iterations + 1):
            state = self._step(count)
            if best is None or state.residual + state.slack < 0.9 * (best.residual + best.slack):
                best, stalled = state, 0
            else:
                stalled += 1
            if stalled >= 8 or best.residual + best.slack <= 50 * EPS * (1 + abs(self.loss)):
                break
        assert best is not None
        return best

    def _record(self, held: np.ndarray, slopes: np.ndarray, count: int) -> Settled:
        gates = self.gates.copy()
        gates[held] = np.clip(slopes, -1, 1)
        gradient = gated_gradient(self.task, jnp.asarray(self.point), jnp.asarray(gates))
        norm = float(jnp.linalg.norm(gradient))
        slack = float(np.abs(self.hidden[held]).max(initial=0.0))
        return Settled(self.point.copy(), self.loss, norm, gates, self.pinned.copy(), 0.0, count, slack)

    def _step(self, count: int) -> Settled:
        gradient, hessian, force, jacobian = (
            np.asarray(x) for x in _gated(self.task, jnp.asarray(self.point), jnp.asarray(self.gates))
        )
        gradient, hessian = gradient[self.moving], hessian[np.ix_(self.moving, self.moving)]
        rows = jacobian[np.ix_(self.pinned, self.moving)]
        left, singular, right = np.linalg.svd(rows, full_matrices=True)
        rank = int(np.sum(singular > 1e-10 * singular.max(initial=1e-300))) if len(rows) else 0
        inverse = right[:rank].T @ (left[:, :rank].T / singular[:rank, None])
        null = right[rank:].T
        held = np.flatnonzero(self.pinned)
        # The slopes that fit the gradient best here, before moving: they define the residual.
        state = self._record(held, self._slopes(held, gradient, inverse, force), count)
        back = -inverse @ self.hidden[held]
        values, vectors = np.linalg.eigh(null.T @ ((hessian + hessian.T) / 2) @ null)
        move = null @ absolute_newton(values, vectors, null.T @ (gradient + hessian @ back))
        slopes = self._slopes(held, gradient + hessian @ (back + move), inverse, force)
        self._advance(self._whole(back), self._whole(move))
        self.gates[held] = slopes
        self._release(held, force, all_of_them=count <= 3)
        return replace(state, least_curvature=float(values[0]) if len(values) else np.inf)

    def _whole(self, part: np.ndarray) -> np.ndarray:
        vector = np.zeros(len(self.point))
        vector[self.moving] = part
        return vector

    def _slopes(self, held: np.ndarray, gradient: np.ndarray, inverse: np.ndarray, force: np.ndarray) -> np.ndarray:
        """The slopes of the pinned for which g + Jᵀ(f∘change) is least: s - J⁺ᵀg / f."""
        pull = force[held]
        weak = np.abs(pull) <= 1e-14 * np.abs(force).max(initial=1e-300)
        return self.gates[held] - np.where(weak, 0.0, (inverse.T @ gradient) / np.where(weak, 1.0, pull))

    def _release(self, held: np.ndarray, force: np.ndarray, all_of_them: bool) -> None:
        """Release concave kinks and slopes beyond ±1 (all, or the one furthest beyond), each to its side."""
        concave = force[held] < -1e-12 * np.abs(force).max(initial=1e-300)
        outside = np.abs(self.gates[held]) > 1 + 1e-9
        # With f > 0 a slope above 1 releases to the positive side (the loss falls there), below -1 to the negative.
        leaving = held[concave | outside]
        if len(leaving) and not all_of_them:
            leaving = leaving[[np.argmax(np.abs(self.gates[leaving]))]]
        for j in leaving:
            self.pinned[j] = False
            self.gates[j] = np.sign(self.gates[j]) if self.gates[j] else 1.0

    def _advance(self, back: np.ndarray, move: np.ndarray) -> None:
        """Move without raising the loss. If a kink makes it rise, stop there and pin it."""
        allowed = abs(self.loss) * 1e-13
        share, free = 1.0, ~self.pinned
        for _ in range(30):
            trial = self.point + back + share * move
            loss, hidden = (np.asarray(x) for x in _loss_and_hidden(self.task, jnp.asarray(trial)))
            crossed = free & (np.sign(hidden) != self.gates) & (self.gates != 0)
            if np.isfinite(loss) and float(loss) <= self.loss + allowed:
                break
            if crossed.any():
                change = np.where(crossed, np.abs(self.hidden) / (np.abs(self.hidden - hidden) + 1e-300), np.inf)
                first = int(np.argmin(change))
                share *= float(min(change[first], 1.0))
                trial = self.point + back + share * move
                loss, hidden = (np.asarray(x) for x in _loss_and_hidden(self.task, jnp.asarray(trial)))
                self.pinned[first], self.gates[first] = True, 0.0
                crossed[:] = False
                if np.isfinite(loss) and float(loss) <= self.loss + 1e-6 * abs(self.loss):
                    break
            share *= 0.5
        self.point, self.loss, self.hidden = trial, float(loss), hidden
        free = ~self.pinned
        self.gates[free] = np.where(hidden[free] != 0, np.sign(hidden[free]), self.gates[free])
