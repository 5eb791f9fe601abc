r"""The Hessian at the point of n-1 copies and one average, block by block. Even n = 10⁴ takes only milliseconds.

Permuting the m = n-1 copies together with the teachers they copy, and permuting the ℓ = k-n+1 averaged teachers,
changes neither the point nor the loss, so the Hessian commutes with S_m × S_ℓ. Schur's lemma splits its n(d+1)
eigenvalues into those of a few small matrices:

| subspace | matrix | times |
|---|---|---|
| both invariant | 7 × 7 | 1 |
| copies differ, averaged teachers invariant | 6 × 6 | m - 1 |
| averaged teachers differ, copies invariant | 2 × 2 | ℓ - 1 |
| both differ | 1 × 1 | (m - 1)(ℓ - 1) |
| symmetric exchanges among copies | 1 × 1 | m(m - 3)/2 |
| antisymmetric exchanges among copies | 1 × 1 | (m - 1)(m - 2)/2 |
| outside the teachers' span, copies invariant | 2 × 2 | d - k |
| outside the teachers' span, copies differ | 1 × 1 | (m - 1)(d - k) |

Every entry is a sum of the second partials of six interactions (see `tasks.pairs` for the blocks they form).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy import activations
from understudy.activations import Activation
from understudy.gaussian import (
    Covariance,
    Partials,
    SelfPartials,
    has_closed_form,
    pair_partials,
    partials,
    self_partials,
)
from understudy.gaussian.quadrature import nodes_needed
from understudy.theory.one_neuron import one_neuron

Number: TypeAlias = float | Array


@dataclass(frozen=True)
class Block:
    """One small symmetric matrix whose eigenvalues each occur `multiplicity` times in the Hessian."""

    name: str
    multiplicity: int
    matrix: np.ndarray = field(repr=False)
    eigenvalues: np.ndarray


@dataclass(frozen=True)
class BlockSpectrum:
    """All eigenvalues of the Hessian at the (n-1)-copy-1-average point, as blocks."""

    students: int
    teachers: int
    dim: int
    blocks: tuple[Block, ...]

    @property
    def least(self) -> float:
        """The least eigenvalue."""
        return min(float(block.eigenvalues[0]) for block in self.blocks)

    @property
    def size(self) -> int:
        """Number of eigenvalues, n(d + 1)."""
        return sum(block.multiplicity * len(block.eigenvalues) for block in self.blocks)

    def eigenvalues(self) -> np.ndarray:
        """Every eigenvalue as often as it occurs, ascending; n(d + 1) numbers."""
        return np.sort(np.concatenate([np.repeat(b.eigenvalues, b.multiplicity) for b in self.blocks]))


@dataclass(frozen=True)
class _Point:
    """The point and the pairs that occur in it."""

    copies: int  # m
    averaged: int  # ℓ
    outgoing: float  # A, of the average
    step: float  # s, its component along each averaged teacher
    copy: SelfPartials
    average: SelfPartials
    apart: Partials  # two unit vectors at a right angle: copies with each other and with other teachers
    twin: Partials  # a copy and its teacher
    across: Partials  # a copy (or its teacher) and the average, at a right angle
    member: Partials  # the average and one of its teachers


def symmetric_spectrum(
    activation: str | Activation, students: int, teachers: int, *, dim: int | None = None
) -> BlockSpectrum:
    """The spectrum of the Hessian at the (n-1)-copy-1-average point of the unit-orthonormal teacher.

    **Arguments**

    - `students`: n ≥ 1; `teachers`: k ≥ n; `dim`: input dimension d ≥ k. Default: k + 1, as in the paper.
    - `activation`: any. Except for erf the point need not be critical, but the spectrum is still that of the Hessian.

    Small eigenvalues are accurate even next to large ones, see `graded_eigenvalues`.

    >>> spectrum = symmetric_spectrum("erf", students=1000, teachers=2000)
    >>> spectrum.least > 0, spectrum.size == 1000 * 2002
    (True, True)

    **Reference**: Simsek et al. 2023, Theorem 5.5 and Figure 6.
    """
    n, k = int(students), int(teachers)
    d = k + 1 if dim is None else int(dim)
    if not 1 <= n <= k <= d:
        raise ValueError(f"This needs 1 ≤ students ≤ teachers ≤ dim; received students={n}, teachers={k}, dim={d}.")
    point = _point(activations.get(activation), n - 1, k - n + 1)
    blocks = []
    for name, multiplicity, matrix in _blocks(_coefficients(point), point.copies, point.averaged, d - k):
        if multiplicity > 0 and len(matrix):
            blocks.append(Block(name, multiplicity, matrix, graded_eigenvalues(matrix)))
    return BlockSpectrum(n, k, d, tuple(blocks))


def _point(activation: Activation, copies: int, averaged: int) -> _Point:
    best = one_neuron(activation, averaged)
    r, step = best.norm, best.norm * best.correlation
    first, second = np.array([1.0, 1.0, 1.0, r]), np.array([1.0, 1.0, r, 1.0])
    u = np.array([0.0, 1.0, 0.0, best.correlation])
    if has_closed_form(activation, activation):
        c = Covariance.from_correlation(jnp.asarray(first), jnp.asarray(second), jnp.asarray(u))
        pairs = pair_partials(activation, activation, c)
    else:
        pairs = partials(activation, first, second, u).partials
    own = self_partials(activation, jnp.asarray([1.0, r**2]), nodes_needed(activation.steepness * max(r, 1.0)))
    copy, average = (jax.tree.map(lambda x, i=i: float(x[i]), own) for i in range(2))
    apart, twin, across, member = (jax.tree.map(lambda x, i=i: float(x[i]), pairs) for i in range(4))
    return _Point(copies, averaged, best.outgoing, step, copy, average, apart, twin, across, member)


@dataclass(frozen=True)
class _Coefficients:
    """Coefficients of the Hessian's blocks; e_i is a copy, 1_B the sum of the averaged teachers, w = s 1_B.

    - copy with itself: `own` I + `own_twin` e_i e_iᵀ + `own_mixed` (e_i 1_Bᵀ + 1_B e_iᵀ) + `own_sum` 1_B 1_Bᵀ
      + `own_group` I_B;
    - average with itself: `average` I + `average_sum` 1_B 1_Bᵀ + `average_group` I_B;
    - incoming with own outgoing weight: `twin` e_i + `pull` 1_B for a copy, `radial` 1_B for the average.

    Copies and their own teachers act on any third neuron with opposite weights, 2a_i and -2a_i, so these terms cancel.
    """

    outgoing: Number
    step: Number
    apart: Partials
    across: Partials
    copy_square: Number
    average_square: Number
    own: Number
    own_twin: Number
    own_mixed: Number
    own_sum: Number
    own_group: Number
    average: Number
    average_sum: Number
    average_group: Number
    twin: Number
    pull: Number
    radial: Number


def _coefficients(p: _Point) -> _Coefficients:
    l, a, s = p.averaged, p.outgoing, p.step
    g, h, twin, member = p.apart, p.across, p.twin, p.member
    return _Coefficients(
        outgoing=a,
        step=s,
        apart=g,
        across=h,
        copy_square=p.copy.value,
        average_square=p.average.value,
        own=2 * p.copy.q + 4 * a * h.q11 - 4 * twin.q11 - 4 * l * g.q11,
        own_twin=4 * p.copy.qq
        + 8 * a * h.q11q11
        - 2 * (4 * twin.q11q11 + 4 * twin.q11q12 + twin.q12q12)
        - 8 * l * g.q11q11,
        own_mixed=4 * a * h.q11q12 * s - 4 * g.q11q12,
        own_sum=2 * a * h.q12q12 * s**2,
        own_group=-2 * g.q12q12,
        average=2 * a**2 * p.average.q - 4 * a * l * member.q11,
        average_sum=4 * a**2 * p.average.qq * s**2 - 8 * a * l * member.q11q11 * s**2 - 8 * a * member.q11q12 * s,
        average_group=-2 * a * member.q12q12,
        twin=4 * p.copy.q + 4 * a * h.q11 - 2 * (2 * twin.q11 + twin.q12) - 4 * l * g.q11,
        pull=2 * (a * h.q12 * s - g.q12),
        radial=4 * a * p.average.q * s - 4 * l * member.q11 * s - 2 * member.q12,
    )


def _blocks(c: _Coefficients, m: int, l: int, outside: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """(name, multiplicity, symmetric matrix) of every block."""
    slope, bend = 2 * c.apart.q12, 2 * c.apart.q12q12
    yield "both invariant", 1, _both_invariant(c, m, l)
    yield "copies differ", m - 1, _copies_differ(c, m, l)
    yield "averaged teachers differ", l - 1, _pair_of(c.own + c.own_group, c.average + c.average_group, c, m)
    both = (m - 1) * (l - 1) if m else 0
    yield "both differ", both, np.array([[c.own + c.own_group - slope]])
    yield "symmetric exchanges", m * (m - 3) // 2 if m > 2 else 0, np.array([[c.own - slope + bend]])
    yield "antisymmetric exchanges", (m - 1) * (m - 2) // 2 if m else 0, np.array([[c.own - slope - bend]])
    yield "outside, invariant", outside, _pair_of(c.own, c.average, c, m)
    yield "outside, copies differ", (m - 1) * outside if m else 0, np.array([[c.own - slope]])


def _pair_of(copy: Number, average: Number, c: _Coefficients, m: int) -> np.ndarray:
    """All copies moved by the same amount, and the average, in a direction orthogonal to all other neurons."""
    mixed = 2 * c.outgoing * c.across.q12
    rows = [[copy + 2 * c.apart.q12 * (m - 1), mixed], [mixed * m, average]]
    return _symmetric(np.array(rows), np.array([m, 1.0]))


def _both_invariant(c: _Coefficients, m: int, l: int) -> np.ndarray:
    """X_i = d e_i + o Σ_{j≠i} e_j + b 1_B for copies, y = p 1_M + q 1_B for the average, outgoing weights x and z."""
    a, s, g, h = c.outgoing, c.step, c.apart, c.across
    others = m - 1
    matrix = np.zeros((7, 7))
    for column in range(7):
        d, o, b, p, q, x, z = np.eye(7)[column]
        matrix[:, column] = (
            c.own * d
            + c.own_twin * d
            + c.own_mixed * l * b
            + 2 * others * (g.q12 * o + g.q12q12 * d + 2 * g.q11q12 * o)
            + 2 * a * (h.q12 * p + h.q12q12 * s * l * q + 2 * h.q11q12 * p)
            + (c.twin + 4 * others * g.q11) * x
            + 4 * h.q11 * z,
            c.own * o
            + 2 * (g.q12 * (d + (m - 2) * o) + g.q12q12 * o + 2 * g.q12q22 * d)
            + 2 * a * h.q12 * p
            + 2 * g.q12 * x,
            (c.own + c.own_group + c.own_sum * l) * b
            + c.own_mixed * d
            + 2 * g.q12 * others * b
            + 2 * a * (h.q12 * q + h.q12q12 * s * p + 2 * h.q12q22 * s**2 * l * q)
            + c.pull * x
            + 2 * h.q12 * s * z,
            c.average * p
            + 2 * a * (h.q12 * (d + others * o) + h.q12q12 * s * l * b + 2 * h.q11q12 * d)
            + 2 * a * h.q12 * x,
            (c.average + c.average_group + c.average_sum * l) * q
            + 2 * a * m * (h.q12 * b + h.q12q12 * s * d + 2 * h.q12q22 * s**2 * l * b)
            + 4 * a * m * h.q22 * s * x
            + c.radial * z,
            (c.twin + 4 * others * g.q11) * d
            + c.pull * l * b
            + 2 * others * g.q12 * o
            + 4 * a * h.q22 * s * l * q
            + 2 * a * h.q12 * p
            + 2 * (c.copy_square + others * g.value) * x
            + 2 * h.value * z,
            m * (4 * h.q11 * d + 2 * h.q12 * s * l * b)
            + c.radial * l * q
            + 2 * h.value * m * x
            + 2 * c.average_square * z,
        )
    return _symmetric(matrix, np.array([m, m * others, m * l, m, l, m, 1.0]))


def _copies_differ(c: _Coefficients, m: int, l: int) -> np.ndarray:
    """For t with Σt = 0: X_i = d t_i e_i + Σ_{j≠i} (v t_i + w t_j) e_j + b t_i 1_B, y = p t, outgoing weights x t_i.

    v and w enter as v ± w, which are orthogonal; with two copies v + w moves nothing.
    """
    a, s, g, h = c.outgoing, c.step, c.apart, c.across
    matrix = np.zeros((6, 6))
    for column in range(6):
        d, even, odd, b, p, x = np.eye(6)[column]
        v, w = even + odd, even - odd
        inward = (m - 1) * w - v  # Σ_{j≠i} e_i·X_j
        row = c.own * v + 2 * (g.q12q12 * w - g.q12 * v)
        col = (
            c.own * w
            + 2 * (g.q12 * (d - v + (m - 2) * w) + g.q12q12 * v + 2 * g.q12q22 * d)
            + 2 * a * h.q12 * p
            + 2 * g.q12 * x
        )
        matrix[:, column] = (
            (c.own + c.own_twin) * d
            + c.own_mixed * l * b
            + 2 * (g.q12 * inward - g.q12q12 * d + 2 * g.q11q12 * inward)
            + 2 * a * (h.q12 + 2 * h.q11q12) * p
            + (c.twin - 4 * g.q11) * x,
            (row + col) / 2,
            (row - col) / 2,
            (c.own + c.own_group + c.own_sum * l - 2 * g.q12) * b
            + c.own_mixed * d
            + 2 * a * h.q12q12 * s * p
            + c.pull * x,
            c.average * p
            + 2 * a * (h.q12 * (d + inward) + h.q12q12 * s * l * b + 2 * h.q11q12 * d)
            + 2 * a * h.q12 * x,
            (c.twin - 4 * g.q11) * d
            + c.pull * l * b
            + 2 * g.q12 * inward
            + 2 * a * h.q12 * p
            + 2 * (c.copy_square - g.value) * x,
        )
    return _symmetric(matrix, np.array([1.0, 2 * (m - 2), 2 * m, l, 1.0, 1.0]))


def _symmetric(matrix: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """The matrix of the Hessian in the normalised basis, from its action on a basis with squared lengths `gram`."""
    kept = gram > 0
    root = np.sqrt(gram[kept])
    return matrix[np.ix_(kept, kept)] * root[:, None] / root[None, :]


def graded_eigenvalues(matrix: np.ndarray) -> np.ndarray:
    """Eigenvalues of a small symmetric matrix, ascending, accurate even where they differ by many orders of magnitude.

    Cyclic Jacobi rotations stop when every off-diagonal entry is below rounding relative to the geometric mean of its
    two diagonal entries. For positive definite matrices the relative error of each eigenvalue is then rounding times
    the condition number of the matrix scaled to unit diagonal (Demmel and Veselić 1992). LAPACK's error is relative to
    the largest eigenvalue.

    >>> graded_eigenvalues(np.array([[1e16, 1e6], [1e6, 1.0]])).round(12).tolist()
    [0.9999, 1e+16]
    """
    a = np.array((matrix + matrix.T) / 2)
    size = len(a)
    for _ in range(60):
        moved = False
        for i in range(size):
            for j in range(i + 1, size):
                bound = np.finfo(float).eps * math.sqrt(abs(a[i, i] * a[j, j]))
                if abs(a[i, j]) <= bound or a[i, j] == 0:
                    continue
                moved = True
                ratio = (a[j, j] - a[i, i]) / (2 * a[i, j])
                t = math.copysign(1.0, ratio) / (abs(ratio) + math.hypot(1.0, ratio))
                cosine = 1 / math.hypot(1.0, t)
                sine = t * cosine
                diagonal = a[i, i] - t * a[i, j], a[j, j] + t * a[i, j]
                rows = cosine * a[i] - sine * a[j], sine * a[i] + cosine * a[j]
                a[i], a[j] = rows
                a[:, i], a[:, j] = rows
                a[i, i], a[j, j] = diagonal
                a[i, j] = a[j, i] = 0.0
        if not moved:
            break
    return np.sort(np.diag(a))
