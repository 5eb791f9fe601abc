r"""One student neuron and any few teachers: every critical point, found by a systematic search.

For teachers with outgoing weights b_j and Gram matrix Q_ij = v_i·v_j the loss of a student (w, a) depends on ‖w‖² and
the w·v_j alone. So w is searched in the span of the teachers and one further direction. The search solves for critical
points of the loss with the best outgoing weight, by the Levenberg-Marquardt method from a grid of directions and norms.
It finds saddles and maxima as well as minima.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation
from understudy.networks import Teacher, TwoLayer
from understudy.points import Certificate, certify
from understudy.tasks import Population
from understudy.tasks.task import Task

MOST_COMPLETE = 4
"""Up to this many teachers two grids are compared. For more teachers, starts are random."""

_STEPS, _GRADIENT, _SAME = 80, 1e-12, 1e-6
_TRIVIAL = 1e-6
"""Outgoing weights and norms below this count as zero. Such points contribute nothing, and there are always many."""


@dataclass(frozen=True)
class NeuronPoint:
    """A critical point of one neuron.

    `norm`, `outgoing`: ‖w‖ and a. `correlations`: with each teacher. `outside`: the part of w outside the teachers'
    span, as a share of its norm. `certificate`: what kind of point it is.
    """

    norm: float
    outgoing: float
    correlations: tuple[float, ...]
    outside: float
    loss: float
    certificate: Certificate = field(repr=False)

    @property
    def kind(self) -> str:
        """The verdict of the certificate."""
        return self.certificate.kind


@dataclass(frozen=True)
class NeuronSearch:
    """All critical points that a search has found, least loss first, up to symmetries of the neuron.

    - `complete`: whether there is evidence that no point with a norm in `searched` is missing.
    - `reason`: this evidence, in words.
    - `starts`: number of starts.
    """

    points: tuple[NeuronPoint, ...]
    complete: bool
    reason: str
    starts: int
    searched: tuple[float, float]


def one_neuron_points(
    activation: str | Activation,
    outgoing: ArrayLike,
    gram: ArrayLike,
    *,
    largest_norm: float | None = None,
    starts: int = 2000,
) -> NeuronSearch:
    """Critical points of one neuron with w ≠ 0 and a ≠ 0, for teachers with these outgoing weights and Gram matrix.

    **Arguments**

    - `activation`: of teachers and student, smooth; `outgoing`: the b_j (k,); `gram`: v_i·v_j (k, k), whose diagonal
      holds the squared norms.
    - `largest_norm`: norms from a hundredth of this one up to it are searched. Default: four times the largest
      teacher's.
    - `starts`: number of random starts for more than four teachers.

    With up to four teachers the search is repeated on a grid that is twice as fine. If both find the same points,
    `complete` is true. This is a reason, not a proof.

    >>> found = one_neuron_points("erf", [1.0, 1.0], np.eye(2))
    >>> [(p.kind, round(p.norm, 6), round(p.outgoing, 6)) for p in found.points], found.complete
    ([('minimum', 0.57735, 2.0)], True)
    """
    sigma, b, vectors = activations.get(activation), np.asarray(outgoing, float), _vectors(gram)
    if b.shape != (len(vectors),) or not np.all(np.isfinite(b)):
        raise ValueError(f"outgoing has one finite number per teacher, shape ({len(vectors)},); received {b.shape}.")
    if sigma.smoothness == 0:
        raise ValueError(f"The search needs second derivatives; received {sigma.name}. Use a smooth activation.")
    largest = 4 * float(np.linalg.norm(vectors, axis=1).max()) if largest_norm is None else float(largest_norm)
    if not 0 < largest < math.inf:
        raise ValueError(f"largest_norm is a positive number; received {largest_norm}.")
    task = Population(Teacher(vectors, b, sigma), 1)
    range_ = (largest / 100, largest)
    if len(vectors) > MOST_COMPLETE:
        begin = np.concatenate([_along_teachers(task, range_), _random(task, range_, starts)])
        found = _search(task, begin, range_)
        reason = (
            f"{starts} random starts, and some along the teachers and their sum: with more than {MOST_COMPLETE} "
            "teachers points may be missing"
        )
        return NeuronSearch(_described(task, found), False, reason, len(begin), range_)
    coarse, fine = (_grid(task, range_, level) for level in (1, 2))
    first, second = _search(task, coarse, range_), _search(task, fine, range_)
    both = _merged(task, [*first, *second])
    same = len(first) == len(second) == len(both)
    count = len(coarse) + len(fine)
    reason = f"grids of {len(coarse)} and {len(fine)} starts found {'the same' if same else 'different'} points"
    return NeuronSearch(_described(task, both), same, reason, count, range_)


def _vectors(gram: ArrayLike) -> np.ndarray:
    """Vectors with this Gram matrix, with one more coordinate that is zero."""
    q = np.asarray(gram, float)
    if q.ndim != 2 or q.shape[0] != q.shape[1] or not q.size or not np.all(np.isfinite(q)):
        raise ValueError(f"gram is a square matrix of finite numbers; received shape {q.shape}.")
    if not np.allclose(q, q.T, rtol=1e-12, atol=1e-12 * np.abs(q).max()):
        raise ValueError("gram is the symmetric matrix of all v_i·v_j; received one that is not symmetric.")
    values, basis = np.linalg.eigh(q)
    if values[0] < -1e-10 * values[-1] or np.any(np.diag(q) <= 0):
        raise ValueError(f"gram must be positive semidefinite; received the eigenvalue {values[0]:.3g}.")
    kept = values > 1e-12 * values[-1]
    vectors = basis[:, kept] * np.sqrt(values[kept])
    return np.concatenate([vectors, np.zeros((len(q), 1))], axis=1)


def _grid(task: Population, norms: tuple[float, float], level: int) -> np.ndarray:
    """Directions on the faces of a cube, norms in geometric steps; the outside coordinate is not negative."""
    d = task.dim
    side = np.linspace(-1, 1, (4 if d > 3 else 6) * level + 1)
    cube = np.stack(np.meshgrid(*[side] * (d - 1), side[side >= 0], indexing="ij"), axis=-1).reshape(-1, d)
    directions = cube[np.abs(cube).max(axis=1) == 1]
    directions = np.unique(np.round(directions / np.linalg.norm(directions, axis=1)[:, None], 12), axis=0)
    radii = np.geomspace(*norms, 3 * level)
    return (radii[:, None, None] * directions[None]).reshape(-1, d)


def _along_teachers(task: Population, norms: tuple[float, float]) -> np.ndarray:
    v, b = np.asarray(task.teacher.incoming), np.asarray(task.teacher.outgoing)
    directions = np.concatenate([v, (b @ v)[None]])
    lengths = np.linalg.norm(directions, axis=1)
    directions = directions[lengths > 0] / lengths[lengths > 0, None]
    return (np.geomspace(*norms, 8)[:, None, None] * directions[None]).reshape(-1, task.dim)


def _random(task: Population, norms: tuple[float, float], count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(count, task.dim))
    directions[:, -1] = np.abs(directions[:, -1])
    low, high = np.log(norms)
    radii = np.exp(rng.uniform(low, high, size=count))
    return radii[:, None] * directions / np.linalg.norm(directions, axis=1)[:, None]


def _search(task: Population, begin: np.ndarray, norms: tuple[float, float]) -> list[np.ndarray]:
    """Distinct solutions of ∇L = 0 from these starts, as flat vectors."""
    vectors = np.concatenate([begin, np.zeros((len(begin), 1))], axis=1)
    reach = np.zeros((1, vectors.shape[1]))
    reach[0, 0] = norms[1]
    prepared = task.prepared(jnp.asarray(np.concatenate([vectors, reach])))
    ends, residuals = (np.asarray(x) for x in _solve(prepared, jnp.asarray(vectors)))
    length = np.linalg.norm(ends[:, :-1], axis=1)
    good = np.isfinite(residuals) & (residuals <= _GRADIENT * (1 + float(task.target_scale)))
    good &= (np.abs(ends[:, -1]) > _TRIVIAL) & (length > _TRIVIAL * norms[1]) & (length <= norms[1])
    return _merged(task, list(ends[good]))


@eqx.filter_jit
def _solve(task: Task, vectors: Float[Array, "starts P"]) -> tuple[Float[Array, "starts P"], Float[Array, " starts"]]:
    """The Levenberg-Marquardt method for ‖w‖∇φ = 0 from the w of each start, and the norm of ∇L at the ends.

    With the best outgoing weight the loss is L(w) = E f*² - q(w), and φ = log q. All critical points of φ have a ≠ 0.
    The set a = 0, on which L has many critical points, is where φ = -∞: starts are not drawn to it. The factor ‖w‖
    makes the equation independent of units.
    """

    def best_outgoing(v: Array) -> Array:
        found = task.evaluate(v.at[-1].set(0.0))  # the loss is quadratic in a
        return v.at[-1].set(-found.gradient[-1] / found.hessian[-1, -1])

    def equation(v: Array) -> tuple[Array, Array]:
        here = task.evaluate(v)
        q, cross = v[-1] ** 2 * here.hessian[-1, -1] / 2, here.hessian[:-1, -1]
        slope = -here.gradient[:-1] / q
        bend = -(here.hessian[:-1, :-1] - jnp.outer(cross, cross) / here.hessian[-1, -1]) / q - jnp.outer(slope, slope)
        norm = jnp.linalg.norm(v[:-1])
        return norm * slope, norm * bend + jnp.outer(slope, v[:-1]) / norm

    def step(carry: tuple[Array, Array], _: Any) -> tuple[tuple[Array, Array], None]:
        v, damping = carry
        g, h = equation(v)
        size = jnp.linalg.norm(v[:-1])
        move = -jnp.linalg.solve(h.T @ h + damping / size**2 * jnp.eye(len(g)), h.T @ g)
        new = best_outgoing(v.at[:-1].add(move))
        better = jnp.sum(equation(new)[0] ** 2) < jnp.sum(g**2)
        return (jnp.where(better, new, v), jnp.clip(jnp.where(better, damping / 8, damping * 4), 1e-20, 1e8)), None

    def solve(v: Array) -> tuple[Array, Array]:
        (end, _), _ = jax.lax.scan(step, (best_outgoing(v), jnp.asarray(1e-3)), None, length=_STEPS)
        return end, jnp.linalg.norm(task.value_and_gradient(end)[1])

    return jax.lax.map(solve, vectors, batch_size=64)


def _canonical(task: Population, v: np.ndarray) -> np.ndarray:
    """The representative of the point up to symmetries: sign (parity), scale (homogeneity), side of the span."""
    w, a = v[:-1].copy(), float(v[-1])
    w[-1] = abs(w[-1])
    sigma = task.activation
    if sigma.homogeneity is not None:
        norm = float(np.linalg.norm(w))
        w, a = w / norm, a * norm**sigma.homogeneity
    if sigma.parity is not None:
        along = np.asarray(task.teacher.incoming)[:, :-1] @ w[:-1]
        if along[np.argmax(np.abs(along))] < 0:
            w[:-1] *= -1
            a = -a if sigma.parity == "odd" else a
    return np.append(w, a)


def _merged(task: Population, points: list[np.ndarray]) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for point in (_canonical(task, p) for p in points):
        if not any(np.linalg.norm(point - other) <= _SAME * (1 + np.linalg.norm(other)) for other in found):
            found.append(point)
    return found


def _described(task: Population, points: list[np.ndarray]) -> tuple[NeuronPoint, ...]:
    v = np.asarray(task.teacher.incoming)
    described = []
    for point in points:
        w, a = point[:-1], float(point[-1])
        norm = float(np.linalg.norm(w))
        correlations = v @ w / norm / np.linalg.norm(v, axis=1)
        certificate = certify(task, TwoLayer(w[None], [a]))
        described.append(
            NeuronPoint(
                norm,
                a,
                tuple(float(u) for u in correlations),
                abs(float(w[-1])) / norm,
                float(certificate.loss),
                certificate,
            )
        )
    return tuple(sorted(described, key=lambda p: p.loss))
