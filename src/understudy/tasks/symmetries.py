"""The discrete symmetries of two-layer students: how many copies a point has, and which copy is closest to another."""

import math
from dataclasses import dataclass

import numpy as np

from understudy.networks import Teacher
from understudy.tasks.neurons import Neurons

_SAME = 1e-6
"""Rows that differ by less, relative to the largest entry, are the same row: polished points are exact to about
1e-10."""

_LONGEST_CYCLE = 500
"""Symmetries that are back at the point only after more steps are not used to make it symmetric: they are products of
many cycles, and keep almost nothing."""

MOST = 50_000
"""The largest number of symmetries of a teacher that are listed (8! = 40,320)."""


@dataclass(frozen=True)
class Symmetries:
    """The maps from a student to equivalent ones. Each map permutes or flips neurons, or rotates the input space.

    - `layout` (n, q): positions of each neuron's trained weights in the flat vector, the `dim` incoming ones first.
    - `flip` (q,): signs by which the weights of one neuron can be multiplied without changing the function, by the
      parity of the activation; None if there is no such symmetry.
    - `kinds` (n,): neurons with equal numbers can be exchanged (those with different fixed outgoing weights cannot).
    - `turns` (g, dim, dim): orthogonal maps Q of the inputs that keep the teacher's function, acting as w → w Q. None
      if there are more than `MOST`.
    - `beyond` (m, dim): an orthonormal basis of the directions that no teacher uses. For m ≥ 2 all their rotations are
      symmetries, which `turns` leaves out.
    """

    layout: np.ndarray
    dim: int
    flip: np.ndarray | None
    kinds: np.ndarray
    turns: np.ndarray | None
    beyond: np.ndarray

    def orbit(self, vector: np.ndarray, tolerance: float = _SAME) -> int | None:
        """The number of distinct images of this point under the symmetries; None if they cannot be counted.

        Rows that differ by less than `tolerance`, relative to the largest weight, count as equal.

        By the orbit-stabiliser theorem it is the number of symmetries divided by the number of those that keep the
        point. Rotations beyond the teachers' span are not counted: a family of rotated points counts once.
        """
        rows = np.asarray(vector, float)[self.layout]
        size = max(float(np.abs(rows).max(initial=0.0)), 1e-300)
        outside = np.abs(rows[:, : self.dim] @ self.beyond.T).max(initial=0.0)
        if self.turns is None or (len(self.beyond) >= 2 and outside > tolerance * size):
            return None
        own = self._same(rows[None], rows, tolerance * size)[0]
        blocks = own.sum(axis=1)
        keeps = 0
        for turns in np.array_split(self.turns, max(1, len(self.turns) // 2000)):
            moved = np.repeat(rows[None], len(turns), axis=0)
            moved[:, :, : self.dim] = rows[None, :, : self.dim] @ turns
            keeps += int(np.sum(np.all(self._same(moved, rows, tolerance * size).sum(axis=1) == blocks, axis=1)))
        still = self._unmoved_by_flips(rows, tolerance * size)
        stabiliser = math.prod(math.factorial(int(blocks[i])) for i in _first_of_each(own)) * 2 ** int(still.sum())
        return self._student_maps * len(self.turns) // (keeps * stabiliser)

    def closest(self, vector: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The image of `vector` under permutations and flips of its neurons that is closest to `target`."""
        from scipy.optimize import linear_sum_assignment

        rows, goal = (np.asarray(v, float)[self.layout] for v in (vector, target))
        flips = [np.ones(rows.shape[1])] if self.flip is None else [np.ones(rows.shape[1]), self.flip]
        costs = np.stack([np.sum((goal[:, None] - (rows * f)[None]) ** 2, axis=-1) for f in flips])
        least = np.where(self.kinds[:, None] == self.kinds[None, :], costs.min(axis=0), 1e12)
        into, taken = linear_sum_assignment(least)
        image = np.array(vector, float)
        for i, j in zip(into, taken, strict=True):
            image[self.layout[i]] = rows[j] * flips[int(np.argmin(costs[:, i, j]))]
        return image

    def image(self, vector: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A random image of a point."""
        return self._draw(rng).apply(self, np.array(vector, float))

    def symmetric(self, vector: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The mean of a point over the cyclic group of a random symmetry: a point that this symmetry keeps.

        The gradient at such a point is symmetric too, so a search stays among symmetric points. They have fewer
        dimensions, in which symmetric critical points are easier to find (Palais' principle of symmetric criticality).
        """
        drawn, start = self._draw(rng), np.array(vector, float)
        images, nearby = [start], _SAME * np.abs(start).max()
        while np.abs((moved := drawn.apply(self, images[-1])) - start).max() > nearby:
            images.append(moved)
            if len(images) > _LONGEST_CYCLE:
                return start
        # A power of the symmetry keeps more points than the symmetry itself.
        step = math.gcd(int(rng.integers(1, max(2, len(images)))), len(images))
        return np.mean(images[::step], axis=0)

    def _draw(self, rng: np.random.Generator) -> "_Map":
        turn = None if self.turns is None else self.turns[rng.integers(len(self.turns))]
        order = np.arange(len(self.layout))
        for kind in np.unique(self.kinds):
            members = np.flatnonzero(self.kinds == kind)
            order[members] = rng.permutation(members)
        flipped = None if self.flip is None else rng.integers(2, size=len(order)) == 1
        return _Map(turn, order, flipped)

    @property
    def _student_maps(self) -> int:
        sizes = np.unique(self.kinds, return_counts=True)[1]
        return math.prod(math.factorial(int(c)) for c in sizes) * (1 if self.flip is None else 2 ** len(self.kinds))

    def _same(self, moved: np.ndarray, rows: np.ndarray, tolerance: float) -> np.ndarray:
        """(g, n, n): whether row i of each image is row j of the point, up to a flip."""
        gaps = np.abs(moved[:, :, None] - rows[None, None]).max(axis=-1)
        if self.flip is not None:
            gaps = np.minimum(gaps, np.abs((moved * self.flip)[:, :, None] - rows[None, None]).max(axis=-1))
        return (gaps <= tolerance) & (self.kinds[:, None] == self.kinds[None, :])[None]

    def _unmoved_by_flips(self, rows: np.ndarray, tolerance: float) -> np.ndarray:
        if self.flip is None:
            return np.zeros(len(rows), bool)
        return np.abs(rows * self.flip - rows).max(axis=1) <= tolerance


@dataclass(frozen=True)
class _Map:
    """One symmetry: a map of the inputs, then a new order of the neurons, then flips of some of them."""

    turn: np.ndarray | None
    order: np.ndarray
    flipped: np.ndarray | None

    def apply(self, of: Symmetries, vector: np.ndarray) -> np.ndarray:
        rows = vector[of.layout]
        if self.turn is not None:
            rows[:, : of.dim] = rows[:, : of.dim] @ self.turn
        rows = rows[self.order]
        if of.flip is not None and self.flipped is not None:
            rows = np.where(self.flipped[:, None], rows * of.flip, rows)
        moved = vector.copy()
        moved[of.layout] = rows
        return moved


def of_students(neurons: Neurons) -> Symmetries:
    """Permutations and flips of the neurons of any two-layer network."""
    trained, parity, dim = neurons.trained_outputs, neurons.parity, neurons.dim
    kinds, flip = np.zeros(neurons.width, int), None
    if not trained:
        kinds = np.unique(neurons.outgoing, axis=0, return_inverse=True)[1].reshape(-1)
    if parity == "even" or (parity == "odd" and trained):
        flip = np.concatenate([-np.ones(dim), np.full(trained, 1.0 if parity == "even" else -1.0)])
    return Symmetries(neurons.layout, dim, flip, kinds, np.eye(dim)[None], np.zeros((0, dim)))


def _first_of_each(same: np.ndarray) -> list[int]:
    """One member of each block of an equivalence relation."""
    return [i for i in range(len(same)) if not np.any(same[i, :i])]


def turns_of(vectors: np.ndarray, tags: np.ndarray, signs: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray]:
    """Orthogonal maps that permute the rows of `vectors` (up to signs) and keep their tags; and the directions beyond.

    - `tags` (k, t): numbers that belong to each vector, such as outgoing weight and bias.
    - `signs` (t,): signs by which the tags change if a vector is replaced by its negative; None if it cannot be.
    """
    gram = vectors @ vectors.T
    scale = max(float(np.abs(gram).max(initial=0.0)), 1e-300)
    size = _SAME * max(1.0, float(np.abs(tags).max(initial=0.0)))
    inner = (gram / scale).tolist()
    found: list[tuple[tuple[int, int], ...]] = []

    def images(j: int) -> list[tuple[int, int]]:
        """Vectors, with signs, that have the norm and the tags of vector j."""
        signed = [(1, tags[j])] if signs is None else [(1, tags[j]), (-1, tags[j] * signs)]
        return [
            (p, s)
            for p in range(len(vectors))
            for s, tag in signed
            if np.abs(tag - tags[p]).max(initial=0.0) <= size and abs(inner[p][p] - inner[j][j]) <= _SAME
        ]

    def extend(chosen: tuple[tuple[int, int], ...]) -> None:
        j = len(chosen)
        if j == len(vectors):
            found.append(chosen)
            return
        for p, s in candidates[j]:
            fits = all(p != q and abs(s * t * inner[p][q] - inner[j][i]) <= _SAME for i, (q, t) in enumerate(chosen))
            if fits and len(found) <= MOST:
                extend((*chosen, (p, s)))

    candidates = [images(j) for j in range(len(vectors))]
    if _least_number(inner, candidates) <= MOST:
        extend(())
    else:
        found = [()] * (MOST + 1)
    _, singular, basis = np.linalg.svd(vectors)
    rank = int(np.sum(singular > 1e-9 * singular.max(initial=0.0)))
    beyond = basis[rank:]
    if len(found) > MOST:
        return None, beyond
    orders = np.array([[p for p, _ in f] for f in found])
    turned = vectors[orders] * np.array([[s for _, s in f] for f in found])[:, :, None]
    turns = np.linalg.pinv(vectors)[None] @ turned + (beyond.T @ beyond)[None]
    if len(beyond) == 1:
        turns = np.concatenate([turns, turns @ (np.eye(len(basis)) - 2 * beyond.T @ beyond)])
    return turns, beyond


def _least_number(inner: list[list[float]], candidates: list[list[tuple[int, int]]]) -> int:
    """A lower bound on the number of maps: vectors orthogonal to all others can be exchanged freely."""
    alone = [j for j, row in enumerate(inner) if all(abs(x) <= _SAME for i, x in enumerate(row) if i != j)]
    groups = {tuple(c for c in candidates[j] if c[0] in alone) for j in alone}
    return math.prod(math.factorial(len({p for p, _ in group})) for group in groups)


def turns_of_teacher(teacher: Teacher, mean: np.ndarray | None = None) -> tuple[np.ndarray | None, np.ndarray]:
    """`turns_of` for the neurons of a teacher, which may carry signs by parity; the mean of the inputs must stay."""
    k = teacher.width
    vectors = np.asarray(teacher.incoming, float)
    outgoing = np.asarray(teacher.outgoing, float).reshape(k, -1)
    bias = np.zeros(k) if teacher.bias is None else np.asarray(teacher.bias, float)
    tags = np.concatenate([outgoing, bias[:, None], np.zeros((k, 1))], axis=1)
    if mean is not None:
        vectors = np.concatenate([vectors, np.asarray(mean, float)[None]])
        tags = np.concatenate([tags, np.eye(1, tags.shape[1], tags.shape[1] - 1)])
    parity = teacher.activation.parity
    of_outgoing = {"odd": -1.0, "even": 1.0}.get(parity or "")
    # The last tag marks the mean, which has a sign of its own: its negative would be another mean.
    signs = None if of_outgoing is None else np.array([*[of_outgoing] * outgoing.shape[1], -1.0, -1.0])
    return turns_of(vectors, tags, signs)
