"""Search for critical points of any index, from many starts at once.

A search has two phases. It first descends for some steps, because far from the minima almost every search ends at the
trivial saddles where neurons are off. Then it looks for a critical point in one of two ways:

- *Gauss-Newton on the gradient*: it minimises ½ gᵀ|H|^(-½) g, g = ∇L, by Levenberg-Marquardt steps. In the eigenbasis
  of the Hessian they are -w_i λ_i g_i / (w_i λ_i² + τ) with weights w_i = |λ_i|^(-½), fixed during a step.
- *Eigenvector following* to index m: it climbs along the m softest modes and descends along all others, with steps
  ∓g_i/(|λ_i| + τ) in the eigenbasis of the Hessian.

In both, τ keeps the step inside a trust region. Measured on erf with (k, n) = (4, 2) from 256 starts each: Gauss-Newton
without weights, after 10 steps of descent, converges in 84 % of the searches and finds every class; Newton's method
without an index in 59 %, but it misses a class; eigenvector following to index 1 or 2 in 30 % and 16 %, always to that
index. So 60 % of the searches take the first way, 10 % descend to a minimum, and the rest take the second. The weights
are for ill-conditioned losses: four softplus students of four teachers in the plane have curvatures from 1e-6 to 6. Of
64 searches there, 2 converged without weights in 300 steps, and 45 with them in up to 1,000.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from threadpoolctl import threadpool_limits

from understudy.dynamics.serial import alone
from understudy.tasks.task import Task

GAUSS_NEWTON = -1
"""The target of a search that minimises ‖∇L‖² and accepts every index."""

LONGEST_DESCENT = 60
"""Searches descend for up to this many steps first, log-uniformly distributed from 1 (and rarely for none)."""

MOST_STEPS, MOST_STEPS_TO_INDEX = 1000, 300
"""Steps after which a search by Gauss-Newton, or by eigenvector following, is given up. Those that converge take about
40, and some hundreds where the loss is ill-conditioned."""

CHUNK = 20
"""Steps between two looks at the searches."""

FAR, FAR_BY_QUADRATURE = 1e3, 20.0
"""A search whose parameters grow beyond this norm is on its way to infinity. Quadrature takes more and more nodes
there."""

_CRITICAL = 1e-11
"""Gradient norm, relative to the scale of the targets, at which a search has converged; Newton's method polishes it."""

_SEARCHING, _CONVERGED, _STUCK, _FAR, _NOT_FINITE, _SPENT = range(6)
_WORDS = {
    _CONVERGED: "converged",
    _STUCK: "stuck",
    _FAR: "to infinity",
    _NOT_FINITE: "not finite",
    _SPENT: "unfinished",
}


@dataclass(frozen=True)
class Plan:
    """What each search does: its start, how many steps it descends, and its target (an index, or `GAUSS_NEWTON`)."""

    starts: Float[np.ndarray, "m P"]
    descents: Int[np.ndarray, " m"]
    targets: Int[np.ndarray, " m"]

    def only(self, numbers: Sequence[int]) -> "Plan":
        """The plan of some of the searches."""
        return Plan(self.starts[numbers], self.descents[numbers], self.targets[numbers])


@dataclass(frozen=True)
class End:
    """Where a search ended, and how: `"converged"`, or a few words on why it did not."""

    vector: Float[np.ndarray, " P"]
    loss: float
    gradient_norm: float
    how: str
    steps: int


class Searches(NamedTuple):
    """The state that is carried from step to step, for every search."""

    vector: Float[Array, "lanes P"]
    radius: Float[Array, " lanes"]
    descent: Int[Array, " lanes"]
    target: Int[Array, " lanes"]
    status: Int[Array, " lanes"]
    steps: Int[Array, " lanes"]


def plan(task: Task, seed: int, numbers: Sequence[int], init_std: float, stream: int = 3) -> Plan:
    """Random searches. Search i of a seed (and of a stream of random numbers) is the same whatever the others are.

    Starts have standard deviations from init_std/3 to 2 init_std. 60 % of the searches are Gauss-Newton ones, 10 % go
    down to a minimum, and the others follow eigenvectors to an index of 1 (half of them), 2 (a quarter), ….
    """
    starts, descents, targets = [], [], []
    for i in numbers:
        rng = np.random.default_rng([stream, seed, i])
        std = init_std * float(np.exp(rng.uniform(np.log(1 / 3), np.log(2))))
        starts.append(np.asarray(task.starts([int(rng.integers(2**31))], "gaussian", std))[0])
        descents.append(int(np.exp(rng.uniform(np.log(0.7), np.log(LONGEST_DESCENT)))))
        way = rng.random()
        targets.append(GAUSS_NEWTON if way < 0.6 else 0 if way < 0.7 else int(rng.geometric(0.5)))
    return Plan(np.stack(starts), np.array(descents), np.array(targets))


def search(task: Task, given: Plan, *, lanes: int | None = None) -> Iterator[tuple[int, End]]:
    """Run the searches of a plan, `lanes` at a time. Yield (number of the search, its end) as they end."""
    count = len(given.starts)
    width = lanes_for(task.size) if lanes is None else lanes
    waiting, owner = list(range(count))[::-1], [-1] * width
    now = {
        "vector": np.repeat(given.starts[:1], width, axis=0),
        "radius": np.zeros(width),
        "descent": np.zeros(width, int),
        "target": np.zeros(width, int),
        "status": np.full(width, _STUCK),
        "steps": np.zeros(width, int),
    }
    limits = jnp.asarray([_CRITICAL * max(task.target_scale, 1e-300), farthest(task)])

    def load(lane: int) -> None:
        owner[lane] = waiting.pop() if waiting else -1
        if (i := owner[lane]) >= 0:
            now["vector"][lane], now["descent"][lane] = given.starts[i], given.descents[i]
            now["target"][lane], now["status"][lane] = given.targets[i], _SEARCHING
            now["radius"][lane], now["steps"][lane] = 0.3, 0

    with threadpool_limits(limits=1, user_api="blas"):
        for lane in range(width):
            load(lane)
        while any(o >= 0 for o in owner):
            prepared = task.prepared(jnp.asarray(now["vector"]))
            moved = alone(_advance, prepared, Searches(**now), limits)  # type: ignore[arg-type]
            now = {name: np.array(x) for name, x in moved._asdict().items()}
            ready = [i for i, o in enumerate(owner) if o >= 0 and now["status"][i] != _SEARCHING]
            if ready:
                ends = _polish_all(task, now["vector"])
                for lane in ready:
                    yield owner[lane], _end(now, ends, lane)
                    load(lane)


def farthest(task: Task) -> float:
    """The norm of the parameters beyond which a search is on its way to infinity."""
    return FAR if task.closed_form else FAR_BY_QUADRATURE


def lanes_for(size: int) -> int:
    """How many searches are advanced together."""
    return 64 if size <= 24 else 32 if size <= 64 else 8


def _end(now: dict[str, np.ndarray], polished: tuple[np.ndarray, ...], lane: int) -> End:
    status, steps = int(now["status"][lane]), int(now["steps"][lane])
    vector, loss, norm = (x[lane] for x in polished)
    if status != _CONVERGED or not np.isfinite(norm):
        vector = now["vector"][lane]
    return End(vector.copy(), float(loss), float(norm), _WORDS[status], steps)


@eqx.filter_jit
def _advance(task: Task, searches: Searches, limits: Array) -> Searches:
    """Advance every search by up to `CHUNK` steps, fewer if half of them have ended."""
    one = jax.vmap(_step, in_axes=(None, 0, None))
    enough = jnp.sum(searches.status == _SEARCHING) // 2

    def condition(carry: tuple[Array, Searches]) -> Array:
        return (carry[0] < CHUNK) & (jnp.sum(carry[1].status == _SEARCHING) > enough)

    def body(carry: tuple[Array, Searches]) -> tuple[Array, Searches]:
        return carry[0] + 1, one(task, carry[1], limits)

    return jax.lax.while_loop(condition, body, (jnp.asarray(0), searches))[1]


def _step(task: Task, s: Searches, limits: Array) -> Searches:
    """One attempted step of one search; `limits`: the gradient norm to stop at, and the norm that is too far."""
    local, origin = task.chart(s.vector)
    loss, gradient, hessian = local.evaluate(origin)
    finite = jnp.isfinite(loss) & jnp.all(jnp.isfinite(gradient)) & jnp.all(jnp.isfinite(hessian))
    hessian = jnp.where(finite, hessian, jnp.eye(origin.shape[0]))
    values, vectors = jnp.linalg.eigh(hessian)
    along = vectors.T @ jnp.where(finite, gradient, 0.0)
    target = jnp.where(s.descent > 0, 0, s.target)
    gauss_newton = target == GAUSS_NEWTON
    weights = _weights(values)
    move = vectors @ _in_trust_region(values, along, weights, target, s.radius)
    slope = local.value_and_gradient(origin + move)[1]
    linear = gradient + hessian @ move
    # Gauss-Newton must lower the weighted gradient as predicted; the other way has no merit function, only a model.
    before, after, predicted = (jnp.sum(weights * (vectors.T @ x) ** 2) for x in (gradient, slope, linear))
    gain = (before - after) / jnp.maximum(before - predicted, 1e-300)
    error = jnp.linalg.norm(slope - linear) / jnp.maximum(jnp.linalg.norm(hessian @ move), 1e-300)
    good = jnp.where(gauss_newton, gain > 1e-3, error < 1.0) & jnp.all(jnp.isfinite(slope))
    better = jnp.where(gauss_newton, gain > 0.75, error < 0.2)
    worse = jnp.where(gauss_newton, gain < 0.25, error > 0.5)
    length = jnp.linalg.norm(move)
    radius = jnp.select([~good, worse, better], [length / 4, length / 2, jnp.maximum(s.radius, 2 * length)], s.radius)
    norm = jnp.linalg.norm(gradient)
    status = jnp.select(
        [
            ~finite,
            (norm <= limits[0]) & (s.descent <= 0),
            jnp.linalg.norm(s.vector) > limits[1],
            radius < 1e-10,
            s.steps >= jnp.where(s.target == GAUSS_NEWTON, MOST_STEPS, MOST_STEPS_TO_INDEX),
        ],
        [_NOT_FINITE, _CONVERGED, _FAR, _STUCK, _SPENT],
        _SEARCHING,
    )
    running = s.status == _SEARCHING
    moves = running & (status == _SEARCHING)
    return Searches(
        vector=jnp.where(moves & good, local.point(origin + move), s.vector),
        radius=jnp.where(running, jnp.minimum(radius, 1.0), s.radius),
        descent=s.descent - moves,
        target=s.target,
        status=jnp.where(running, status, s.status),
        steps=s.steps + moves,
    )


def _weights(values: Array) -> Array:
    """|λ|^(-½) relative to the largest curvature. Curvatures below 1e-9 of it weigh as much as that."""
    sizes = jnp.abs(values)
    return (sizes / jnp.maximum(jnp.max(sizes), 1e-300) + 1e-9) ** -0.5


def _in_trust_region(values: Array, along: Array, weights: Array, target: Array, radius: Array) -> Array:
    """The step in the eigenbasis, with the least τ for which it is not longer than the radius.

    Curvatures below 1e-11 of the largest are noise, or belong to symmetries; there is no step along them.
    """
    sizes, gauss_newton = jnp.abs(values), target == GAUSS_NEWTON
    largest = jnp.maximum(jnp.max(sizes), 1e-300)
    usable = sizes > 1e-11 * largest
    uphill = jnp.arange(values.shape[0]) < target

    def step(shift: Array) -> Array:
        newton = jnp.where(uphill, along, -along) / (sizes + shift)
        smooth = -weights * values * along / (weights * values**2 + shift)
        return jnp.where(usable, jnp.where(gauss_newton, smooth, newton), 0.0)

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = jnp.sqrt(low * high)
        long = jnp.linalg.norm(step(middle)) > radius
        return jnp.where(long, middle, low), jnp.where(long, high, middle)

    highest = 1e6 * jnp.max(weights) * (largest + largest**2 + jnp.linalg.norm(along) * (1 + largest) / radius)
    shift = jax.lax.fori_loop(0, 60, halve, (1e-18 * largest, highest))[1]
    fits = jnp.linalg.norm(step(jnp.zeros(()))) <= radius
    return step(jnp.where(fits, 0.0, shift))


def _polish_all(task: Task, vectors: np.ndarray) -> tuple[np.ndarray, ...]:
    prepared = task.prepared(jnp.asarray(vectors))
    return tuple(np.asarray(x) for x in alone(_polish, prepared, jnp.asarray(vectors)))


@eqx.filter_jit
def _polish(task: Task, vectors: Array) -> tuple[Array, Array, Array]:
    """Twelve Newton steps, each kept if the gradient gets smaller; the points, losses and gradient norms.

    At a regular point two are enough. At a degenerate one they reduce the soft eigenvalues: for x⁴, each step
    multiplies the distance by 2/3 and the eigenvalue by 4/9.
    """

    def newton(vector: Array) -> Array:
        local, origin = task.chart(vector)
        _, gradient, hessian = local.evaluate(origin)
        values, basis = jnp.linalg.eigh(jnp.where(jnp.isfinite(hessian), hessian, 0.0))
        usable = jnp.abs(values) > 1e-9 * jnp.maximum(jnp.max(jnp.abs(values)), 1e-300)
        move = -basis @ jnp.where(usable, (basis.T @ gradient) / jnp.where(usable, values, 1.0), 0.0)
        after = local.value_and_gradient(origin + move)[1]
        better = jnp.linalg.norm(after) < jnp.linalg.norm(gradient)
        return jnp.where(better, local.point(origin + move), vector)

    def finish(vector: Array) -> tuple[Array, Array, Array]:
        vector = jax.lax.fori_loop(0, 12, lambda _, v: newton(v), vector)
        local, origin = task.chart(vector)
        loss, gradient = local.value_and_gradient(origin)
        return vector, loss, jnp.linalg.norm(gradient)

    return jax.vmap(finish)(vectors)
