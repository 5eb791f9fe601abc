r"""Destinations at infinity: pairs of neurons whose outgoing weights grow with opposite signs.

Two neurons (w + δ/2, A/2 + M) and (w - δ/2, A/2 - M) with M → ∞, δ → 0 and Mδ → b, finite, compute in the limit

A σ(w·x) + (b·x) σ'(w·x):

the neuron with the sum of both outgoing weights, and a *tangent* of it. The limit is not a network of the same kind,
but a point of an ordinary problem: the smaller network with one more vector b. If b = 0, it is the smaller network
itself. Near it the loss is L_∞ + C/M². (Odd orders vanish, because exchanging the two neurons maps M → -M, δ → -δ.) M
is half of the difference of two weights and moves by dM/dt = -½ ∂L/∂M = C/M³, so that M ~ t^¼.
"""

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import Activation
from understudy.dynamics.divergence import Divergence
from understudy.dynamics.flow import Trajectory
from understudy.networks import TwoLayer
from understudy.points.certificate import Certificate, certify
from understudy.points.plateaus import nearest_critical
from understudy.tasks.task import Task

_GROWS = 0.02
"""Growth of a weight in the last kept decade of time, relative to the largest, from which it counts as growing."""


class Tangent(eqx.Module):
    """A two-layer network of one output with tangents: f(x) = Σ a_i σ(w_i·x) + Σ_j (b_j·x) σ'(w_j·x), j in `of`."""

    network: TwoLayer
    slopes: Float[Array, "t d"]
    of: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, x: Float[Array, "*samples d"], activation: Activation) -> Float[Array, "*samples"]:
        """The output for inputs x."""
        slope = activation.derivatives(x @ self.network.incoming[jnp.asarray(self.of)].T, 1)[1]
        return self.network(x, activation) + jnp.sum((x @ self.slopes.T) * slope, axis=-1)


@dataclass(frozen=True)
class Escape:
    """How a run goes to infinity.

    - `pairs`: neurons whose outgoing weights grow with opposite signs while their incoming vectors approach each other;
      `lengthening`: neurons whose incoming vectors grow.
    - `exponent`: the growing weights M follow M ~ (t - t_0)^exponent in the last kept decade (theory: ¼ for pairs).
    - `smaller`: the network with each pair joined; `tangents`: |b| of each pair now.
    - `limit`, `limit_loss`, `limit_certificate`: the critical point of the smaller network with tangents that the run
      approaches, where it could be found.
    - `words`: a summary in one sentence.
    """

    pairs: tuple[tuple[int, int], ...]
    lengthening: tuple[int, ...]
    exponent: float
    smaller: TwoLayer | None = field(repr=False)
    tangents: tuple[float, ...]
    limit: Tangent | None = field(repr=False)
    limit_loss: float
    limit_certificate: Certificate | None = field(repr=False)
    words: str


def describe_escape(task: Task, trajectory: Trajectory, divergence: Divergence) -> Escape:
    """Which neurons pair up, at what rate, and toward which point of a smaller network with tangents.

    This is known for two-layer networks with one output. For other networks only the rate is returned.
    """
    here = task.neurons(trajectory.vector)
    if here is None or here.trained_outputs != 1:
        return Escape((), (), divergence.exponent, None, (), None, float("nan"), None, divergence.describe())
    early = np.flatnonzero(trajectory.times <= trajectory.time / 10)
    before = task.neurons(trajectory.snapshots[early[-1]]) if len(early) else here
    assert before is not None
    w, a, w0, a0 = here.incoming, here.outgoing[:, 0], before.incoming, before.outgoing[:, 0]
    growing = [i for i in range(len(a)) if abs(a[i]) - abs(a0[i]) > _GROWS * np.abs(a).max()]
    pairs = _pairs(w, a, growing)
    norms, norms0 = np.linalg.norm(w, axis=1), np.linalg.norm(w0, axis=1)
    lengthening = tuple(int(i) for i in np.flatnonzero(norms - norms0 > _GROWS * norms.max()))
    exponent = divergence.exponent
    if pairs:
        i, j = pairs[0]
        first, second = (trajectory.snapshots[:, here.layout[neuron, here.dim]] for neuron in (i, j))
        exponent = growth_exponent(trajectory.times, np.abs(first - second), exponent)
    smaller, limit = (None, None) if not pairs else _joined(w, a, pairs)
    tangents: tuple[float, ...] = ()
    found: tuple[Tangent | None, float, Certificate | None] = (None, float("nan"), None)
    if limit is not None:
        tangents = tuple(float(x) for x in np.linalg.norm(np.asarray(limit.slopes), axis=1))
        problem = task.prepared(jnp.asarray(trajectory.vector)).for_network(limit)
        if problem is not None:
            found = _limit(problem, limit)
    words = _words(pairs, lengthening, exponent, tangents, found[1], found[2], trajectory.loss)
    return Escape(pairs, lengthening, exponent, smaller, tangents, *found, words)


def escape_by_scale(trajectory: Trajectory) -> Escape | None:
    """The escape of a run whose neurons change their scale forever, if that ended it; see `dynamics.lengthening`."""
    far = trajectory.lengthening
    if far is None:
        return None
    exponent, limit = 1 / 4 if far.growing else 1 / 3, far.limit_loss * trajectory.unit
    return Escape((), far.growing, exponent, None, (), None, limit, None, far.describe(trajectory.unit))


def growth_exponent(times: np.ndarray, sizes: np.ndarray, otherwise: float) -> float:
    """p of M ~ (t - t_0)^p from the last decade, whatever the origin of time t_0.

    M^(1/p) is then linear in t. So p is the number for which the mean slopes of M^(1/p) over the two halves (in log t)
    of the last decade agree. The plain slope of log M against log t is far below p until M is much larger than at the
    start.
    """
    from scipy.optimize import brentq  # slow to import, and rarely needed

    chosen = np.flatnonzero(times >= times[-1] / 10.001)
    if len(chosen) < 3:
        return otherwise
    first, last = int(chosen[0]), int(chosen[-1])
    middle = int(chosen[np.argmin(np.abs(np.log(times[chosen]) - np.log(times[first] * times[last]) / 2))])
    t, m = times[[first, middle, last]], sizes[[first, middle, last]]
    if not (m[0] < m[1] < m[2]):
        return otherwise

    def gap(p: float) -> float:
        x = (m / m[2]) ** (1 / p)
        return float((x[2] - x[1]) / (t[2] - t[1]) - (x[1] - x[0]) / (t[1] - t[0])) * float(t[2])

    low, high = 0.03, 3.0
    return float(brentq(gap, low, high)) if gap(low) * gap(high) < 0 else otherwise


def _pairs(w: np.ndarray, a: np.ndarray, growing: list[int]) -> tuple[tuple[int, int], ...]:
    """Growing neurons of opposite signs, nearest incoming vectors first."""
    options = sorted(
        (float(np.linalg.norm(w[i] - w[j])), i, j) for i in growing for j in growing if i < j and a[i] * a[j] < 0
    )
    used: set[int] = set()
    pairs = []
    for gap, i, j in options:
        if not {i, j} & used and gap < 0.5 * max(np.linalg.norm(w[i]), np.linalg.norm(w[j])):
            used |= {i, j}
            pairs.append((i, j))
    return tuple(pairs)


def _joined(w: np.ndarray, a: np.ndarray, pairs: tuple[tuple[int, int], ...]) -> tuple[TwoLayer, Tangent]:
    """Each pair as one neuron at its midpoint, with the tangent b = ½(a_i - a_j)(w_i - w_j)."""
    partner = {i: j for i, j in pairs}
    absorbed = {j for _, j in pairs}
    rows: list[np.ndarray] = []
    weights, slopes, of = [], [], []
    for i in range(len(a)):
        if i in absorbed:
            continue
        if i in partner:
            j = partner[i]
            of.append(len(rows))
            slopes.append((a[i] - a[j]) / 2 * (w[i] - w[j]))
            rows.append((w[i] + w[j]) / 2)
            weights.append(a[i] + a[j])
        else:
            rows.append(w[i])
            weights.append(a[i])
    smaller = TwoLayer(np.stack(rows), np.array(weights))
    return smaller, Tangent(smaller, jnp.asarray(np.stack(slopes)), tuple(of))


def _limit(problem: Task, start: Tangent) -> tuple[Tangent | None, float, Certificate | None]:
    """The critical point of the smaller network with tangents that is next to the end of the run."""
    vector = problem.flatten(start)
    end, residual = nearest_critical(problem, vector, steps=150)
    near = np.linalg.norm(end - np.asarray(vector)) < 0.2 * (1 + np.linalg.norm(np.asarray(vector)))
    if residual > 1e-12 or not near:
        return None, float("nan"), None
    certificate = certify(problem, end)
    return problem.unflatten(jnp.asarray(end)), certificate.loss, certificate


def _words(
    pairs: tuple[tuple[int, int], ...],
    lengthening: tuple[int, ...],
    exponent: float,
    tangents: tuple[float, ...],
    limit_loss: float,
    certificate: Any,
    loss: float,
) -> str:
    if not pairs:
        which = f"incoming vectors of neurons {list(lengthening)} grow" if lengthening else "parameters grow"
        return f"{which} like t^{exponent:.2f} while the loss falls to {loss:.7g}"
    told = ", ".join(f"{i} and {j} (|b| = {b:.2g})" for (i, j), b in zip(pairs, tangents, strict=True))
    toward = "a limit that was not found"
    if certificate is not None:
        toward = f"a {certificate.kind} of the network with each pair joined and its tangent, loss {limit_loss:.7g}"
    return (
        f"outgoing weights of neurons {told} grow like ±t^{exponent:.2f}, the loss falls to {loss:.7g}, toward {toward}"
    )
