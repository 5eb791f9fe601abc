"""Which ends of searches are the same critical point up to symmetry, and the certificate of each class.

Isolated points are compared by loss and by the whole spectrum of the Hessian, which all symmetric copies share
(neurons of homogeneous activations are rescaled to a common form first). Points with more zero modes than continuous
symmetries explain are degenerate, or they lie in a family of critical points (networks with a dead or a duplicated
neuron, for example). A family has one loss, and its pieces can differ in index. Its minima are one class, and its
saddles another, at which descents start. The point of least index that was found represents it, and among several the
one with fewest zero modes."""

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.landscape.graph import CriticalPoint
from understudy.points import Certificate, certify
from understudy.tasks.symmetries import Symmetries
from understudy.tasks.task import Task

_LOSS = 1e-8
"""Losses that differ by less, relative to the loss or to 1e-4 of the target's scale, can belong to one class."""

_SPECTRUM = 1e-6
"""Eigenvalues that differ by less, relative to the largest, are equal."""

_ZERO = 1e-8
"""Eigenvalues below this share of the largest may be zero. Searches are polished until those of a degenerate point are
(see `search`), and regular minima of four softplus neurons have 3e-7 of the largest."""

_FLOOR = 1e-4
"""Curvatures are compared with the largest one, or with this share of the target's scale if that is larger: where all
of them vanish (a dead ReLU neuron in one dimension), the largest is a rounding error."""

_LEAST = 1e-9
"""Weights below this share of their natural size count as zero for orbits: at the origin every weight is rounding."""

_ROUGHLY = 1e-3
"""How exactly a degenerate point is known, relative to its size: Newton's method slows down there."""

_ALONG = 1e-2
"""Length of the step along a zero mode, relative to the point, after which Newton's method looks for the family
again."""

PIECES, _APART = 4, 1e-3
"""Saddles of index 1 of one family that are followed down, at most; their spectra differ by this share of the largest
eigenvalue. Different pieces of a family can lead to different minima."""

CRITICAL = ("minimum", "strict saddle", "non-strict saddle", "undecided")
"""Verdicts on critical points."""


@dataclass
class Class:
    """A critical point up to symmetry: a representative, its certificate, and how often it was found.

    `pieces`: eigenvalues and vectors of certified saddles of index 1 in the class, one unless it is a family.
    """

    vector: np.ndarray
    eigenvalues: np.ndarray
    certificate: Certificate
    label: str
    symmetric: int
    family: int
    flat: bool
    indices: set[int] = field(default_factory=set)
    found: int = 0
    reached: int = 0
    pieces: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    @property
    def loss(self) -> float:
        """The loss of the representative."""
        return float(self.certificate.loss)

    @property
    def minimum(self) -> bool:
        """Whether the representative is a minimum."""
        return self.certificate.kind == "minimum"

    @property
    def order(self) -> tuple[float, int]:
        """Classes are sorted by loss, then by index."""
        return self.loss, int(self.certificate.index)


class Classes:
    """The classes found so far. `add` certifies a point only if it is not known."""

    def __init__(self, task: Task):
        self.task = task
        self.floor = _FLOOR * task.target_scale
        self.classes: list[Class] = []

    def add(self, point: np.ndarray) -> Class | None:
        """The class of a point; None if the certificate says that it is not critical."""
        vector = np.asarray(_balanced(self.task, jnp.asarray(point)))
        values, loss = spectrum(self.task, vector)
        symmetric = symmetric_dimension(self.task, vector)
        flat = self._zeros(values) > symmetric
        alike = [c for c in self.classes if self._alike(c, loss, values, flat)]
        minimum, certificate = flat and self._index(values) == 0, None
        if minimum and not any(c.minimum for c in alike):
            certificate = certify(self.task, vector)
            minimum = certificate.kind == "minimum"
        home = next((c for c in alike if not flat or c.minimum == minimum), None)
        if home is not None and not (flat and self._rank(values, minimum) < self._rank(home.eigenvalues, minimum)):
            if flat:
                home.indices |= {self._index(values)}
                self._keep_piece(home, vector, values, certificate)
            return home
        certificate = certify(self.task, vector) if certificate is None else certificate
        if certificate.kind not in CRITICAL:
            return home
        family = family_dimension(self.task, vector, symmetric) if flat else 0
        label = self.task.structure(vector).label
        new = Class(vector, values, certificate, label, symmetric, family, flat, {int(certificate.index)})
        if home is None:
            self.classes.append(new)
            self._keep_piece(new, vector, values, certificate)
            return new
        new.indices |= home.indices
        new.found, new.reached, new.pieces = home.found, home.reached, home.pieces
        vars(home).update(vars(new))
        self._keep_piece(home, vector, values, certificate)
        return home

    def _keep_piece(self, home: Class, vector: np.ndarray, values: np.ndarray, known: Certificate | None) -> None:
        """Keep a saddle of index 1 that is not like those of the class that are known."""
        if self._index(values) != 1 or len(home.pieces) >= PIECES:
            return
        size = self._size(values)
        if any(np.abs(other - values).max() <= _APART * size for other, _ in home.pieces):
            return
        certificate = certify(self.task, vector) if known is None else known
        if certificate.kind == "strict saddle" and certificate.index == 1:
            home.pieces.append((values, vector))

    def _alike(self, known: Class, loss: float, values: np.ndarray, flat: bool) -> bool:
        floor = 1e-4 * self.task.target_scale
        if abs(known.loss - loss) > _LOSS * max(abs(known.loss), abs(loss), floor) or known.flat != flat:
            return False
        if flat:
            return True
        return bool(np.abs(known.eigenvalues - values).max(initial=0.0) <= _SPECTRUM * self._size(values))

    def _size(self, values: np.ndarray) -> float:
        return float(np.abs(values).max(initial=max(self.floor, 1e-300)))

    def _zeros(self, values: np.ndarray) -> int:
        return int(np.sum(np.abs(values) <= _ZERO * self._size(values)))

    def _index(self, values: np.ndarray) -> int:
        return int(np.sum(values < -_ZERO * self._size(values)))

    def _rank(self, values: np.ndarray, minimum: bool) -> tuple[int, int]:
        """Of a family, the point with the least rank represents it; among its saddles those of index 0 come last."""
        index = self._index(values)
        return (index if index or minimum else len(values) + 1), self._zeros(values)

    def points(self) -> list[CriticalPoint]:
        """The classes in the order of their losses."""
        symmetries = self.task.symmetries()
        self.classes.sort(key=lambda c: c.order)
        return [_point(i, self.task, c, symmetries) for i, c in enumerate(self.classes)]


def _point(number: int, task: Task, known: Class, symmetries: Symmetries | None) -> CriticalPoint:
    c = known.certificate
    degenerate = c.zeros > known.family + known.symmetric
    tolerance = {"tolerance": _ROUGHLY} if degenerate else {}
    return CriticalPoint(
        number=number,
        loss=float(c.loss),
        index=int(c.index),
        kind=c.kind,
        label=known.label,
        parameters=task.unflatten(jnp.asarray(known.vector)),
        orbit=None if symmetries is None else symmetries.orbit(_without_rounding(task, known.vector), **tolerance),
        family=known.family,
        degenerate=degenerate,
        indices=tuple(sorted(known.indices)),
        found=known.found,
        reached=known.reached,
        certificate=c,
    )


def _without_rounding(task: Task, vector: np.ndarray) -> np.ndarray:
    lengths = task.natural_lengths(vector)
    return vector if lengths is None else np.where(np.abs(vector) <= _LEAST * lengths, 0.0, vector)


def spectrum(task: Task, vector: Any) -> tuple[np.ndarray, float]:
    """Eigenvalues of the Hessian in the chart of a point, and the loss."""
    values, _, loss = _spectrum(task.prepared(jnp.asarray(vector)), jnp.asarray(vector))
    return np.asarray(values), float(loss)


@eqx.filter_jit
def _spectrum(task: Task, vector: Array) -> tuple[Array, Array, Array]:
    local, origin = task.chart(vector)
    loss, _, hessian = local.evaluate(origin)
    values, vectors = jnp.linalg.eigh(hessian)
    return values, vectors, loss


@eqx.filter_jit
def _balanced(task: Task, vector: Array) -> Array:
    return task.balanced(vector)


@eqx.filter_jit
def _tangents(task: Task, vector: Array) -> Array:
    return task.symmetry_tangents(vector)


def symmetric_dimension(task: Task, vector: Any) -> int:
    """Dimension of the set that continuous symmetries make of a point, in its parameter space."""
    tangents = np.asarray(_tangents(task, jnp.asarray(vector)))
    if not len(tangents) or not np.any(tangents):
        return 0
    coordinates = task.chart(jnp.asarray(vector))[1]
    return max(0, int(np.linalg.matrix_rank(tangents, tol=1e-8)) - (task.size - len(coordinates)))


def family_dimension(task: Task, vector: Any, symmetric: int) -> int:
    """Number of zero modes along which the critical point continues, without continuous symmetries.

    After a step along each zero mode, Newton's method is run without the modes that are still zero. In a family it
    stays there, with the same loss. From next to a degenerate, isolated point it goes back.
    """
    start = jnp.asarray(vector)
    prepared = task.prepared(start)
    values, modes, loss = (np.asarray(x) for x in _spectrum(prepared, start))
    zero = np.abs(values) <= _ZERO * np.abs(values).max(initial=max(_FLOOR * task.target_scale, 1e-300))
    step = _ALONG * max(float(np.linalg.norm(vector)), 0.1)
    gone, norms, losses = (np.asarray(x) for x in _continue(prepared, start, jnp.asarray(modes.T), step))
    scale = max(task.target_scale, 1e-300)
    stays = (gone > 0.5 * step) & (norms <= 1e-9 * scale) & (np.abs(losses - loss) <= 1e-9 * scale)
    return max(0, int(np.sum(stays & zero)) - symmetric)


@eqx.filter_jit
def _continue(task: Task, vector: Array, modes: Array, step: float) -> tuple[Array, Array, Array]:
    """Distance from the point along each mode, gradient norm and loss, after a step along it and Newton's method."""
    local, origin = task.chart(vector)

    def newton(q: Array) -> Array:
        _, gradient, hessian = local.evaluate(q)
        values, basis = jnp.linalg.eigh(hessian)
        usable = jnp.abs(values) > _ZERO * jnp.maximum(jnp.max(jnp.abs(values)), 1e-300)
        return q - basis @ jnp.where(usable, (basis.T @ gradient) / jnp.where(usable, values, 1.0), 0.0)

    def one(mode: Array) -> tuple[Array, Array, Array]:
        q = jax.lax.fori_loop(0, 30, lambda _, q: newton(q), origin + step * mode)
        loss, gradient = local.value_and_gradient(q)
        return (q - origin) @ mode, jnp.linalg.norm(gradient), loss

    return jax.lax.map(one, modes)
