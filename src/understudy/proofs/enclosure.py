"""Loss, gradient and Hessian of a sum over pairs of neurons, in balls.

L = scale (r Σ_ii' a_i·a_i' G(w_i, w_i') - 2 Σ_ij a_i·b_j G(w_i, v_j) + Σ_jj' b_j·b_j' G(v_j, v_j')),

with scale = r = 1 for population losses. The parameters are (w_1, a_1), …, (w_n, a_n), without the a_i where they are
fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from understudy.proofs.balls import Ball, Matrix, ball, column, dot, dots, from_floats, matrix
from understudy.proofs.kernels import Pair
from understudy.proofs.named import kernel_of
from understudy.tasks.exact_form import ExactForm


class Evaluation(NamedTuple):
    """Enclosures at a point or over a box; `outside` is the Hessian's block on a direction that no neuron uses."""

    loss: Ball
    gradient: list[Ball]
    hessian: Matrix
    outside: Matrix


@dataclass(frozen=True)
class Enclosure:
    """The loss of an exact form whose teachers have the coordinates `teachers` (k, r) in an orthonormal basis.

    Parameters are in `units`: of incoming and of outgoing weights, as decimals. In units of their own size a problem is
    as well conditioned as it can be, whatever units it came in.
    """

    form: ExactForm
    teachers: Matrix
    units: tuple[str, str] = ("1", "1")

    @property
    def dim(self) -> int:
        """Number r of coordinates of an incoming vector."""
        return int(self.teachers.ncols())

    @property
    def outputs(self) -> int:
        """Trained outgoing weights per neuron."""
        return 0 if self.form.fixed_outgoing is not None else self.form.outgoing.shape[1]

    @property
    def inputs(self) -> int:
        """Trained incoming parameters per neuron."""
        return self.dim

    @property
    def size(self) -> int:
        """Number of parameters in these coordinates."""
        return self.form.width * (self.dim + self.outputs)

    def split(self, x: list[Ball]) -> tuple[list[Matrix], list[list[Ball]]]:
        """Incoming vectors (columns) and outgoing weights of the students."""
        step = self.dim + self.outputs
        scaled = [v * u for v, u in zip(x, self._scales(), strict=True)]
        rows = [scaled[i * step : (i + 1) * step] for i in range(self.form.width)]
        fixed = self.form.fixed_outgoing
        outgoing = [row[self.dim :] for row in rows] if fixed is None else [[ball(float(a)) for a in b] for b in fixed]
        return [column(row[: self.dim]) for row in rows], outgoing

    def _scales(self) -> list[Ball]:
        """The unit of each parameter."""
        incoming, outgoing = (ball(u) for u in self.units)
        return ([incoming] * self.dim + [outgoing] * self.outputs) * self.form.width

    def evaluate(self, x: list[Ball]) -> Evaluation:
        """Loss, gradient and Hessian at once, because they share the pairs; derivatives by the parameters in units."""
        incoming, outgoing = self.split(x)
        form, n = self.form, self.form.width
        kernel = kernel_of(form.loss, form.activation, form.activation)
        across = kernel_of(form.loss, form.activation, form.teacher_activation)
        teachers = [column(row) for row in self.teachers.tolist()]
        gram = _products(incoming, incoming)
        pairs = {(i, j): kernel.pair(incoming[i], incoming[j], gram[i, i], gram[i, j], gram[j, j])
                 for i in range(n) for j in range(i + 1, n)}  # fmt: skip
        own = [kernel.own(gram[i, i]) for i in range(n)]
        beside, squares = _products(incoming, teachers), [dot(v, v) for v in teachers]
        to_teachers = [[across.pair(w, v, gram[i, i], beside[i, j], squares[j]) for j, v in enumerate(teachers)]
                       for i, w in enumerate(incoming)]  # fmt: skip
        sums = _Sums(self, incoming, outgoing)
        repulsion = ball(form.repulsion)
        for i in range(n):
            sums.add_own(i, own[i], repulsion)
        for (i, j), pair in pairs.items():
            sums.add_students(i, j, pair, repulsion)
        teacher_outgoing = [[ball(float(b)) for b in row] for row in form.outgoing]
        for i in range(n):
            for j, v in enumerate(teachers):
                sums.add_teacher(i, v, [-b for b in teacher_outgoing[j]], to_teachers[i][j])
        scale = ball(1) / 2 if form.loss == "sphere" else ball(1)
        constant = self.constant if form.with_constant else ball(0)
        return sums.result(scale, constant, self._scales())

    @cached_property
    def constant(self) -> Ball:
        """E‖f*(x)‖², the part of the loss that no student changes."""
        form = self.form
        kernel = kernel_of(form.loss, form.teacher_activation, form.teacher_activation)
        teachers, b = [column(row) for row in self.teachers.tolist()], from_floats(form.outgoing)
        weights, gram = b * b.transpose(), _products(teachers, teachers)
        total = ball(0)
        for i, p in enumerate(teachers):
            total += weights[i, i] * kernel.own(gram[i, i]).value
            for j in range(i):
                total += 2 * weights[i, j] * kernel.pair(p, teachers[j], gram[i, i], gram[i, j], gram[j, j]).value
        return total


class _Sums:
    """The loss and its derivatives, one pair after the other."""

    def __init__(self, enclosure: Enclosure, incoming: list[Matrix], outgoing: list[list[Ball]]):
        self.w, self.a = incoming, outgoing
        self.dim, self.outputs = enclosure.dim, enclosure.outputs
        n, size = len(incoming), enclosure.size
        self.loss = ball(0)
        self.gradient = [ball(0)] * size
        self.hessian = [[ball(0)] * size for _ in range(size)]
        self.outside = [[ball(0)] * n for _ in range(n)]

    def result(self, scale: Ball, constant: Ball, units: list[Ball]) -> Evaluation:
        size, n = len(self.gradient), len(self.outside)
        rows = zip(self.hessian, units, strict=True)
        hessian = matrix(size, size, (x * u * v for row, u in rows for x, v in zip(row, units, strict=True))) * scale
        outside = matrix(n, n, (x for row in self.outside for x in row)) * scale
        gradient = [g * u * scale for g, u in zip(self.gradient, units, strict=True)]
        return Evaluation((self.loss + constant) * scale, gradient, hessian, outside)

    def add_own(self, i: int, own: tuple[Ball, Ball, Ball], factor: Ball) -> None:
        """factor |a_i|² D(|w_i|²)."""
        value, slope, bend = own
        a, w = self.a[i], self.w[i]
        weight = factor * dots(a, a)
        self.loss += weight * value
        self._add_incoming(i, w * (2 * slope * weight))
        block = w * w.transpose() * (4 * bend * weight)
        for c in range(self.dim):
            block[c, c] += 2 * slope * weight
        self._add_block(self._at(i), self._at(i), block)
        self.outside[i][i] += 2 * slope * weight
        self._add_outgoing(i, [2 * factor * value * x for x in a])
        self._add_mixed(i, i, w * (4 * factor * slope), a)
        self._add_diagonal(i, i, 2 * factor * value)

    def add_students(self, i: int, j: int, pair: Pair, factor: Ball) -> None:
        """2 factor a_i·a_j G(w_i, w_j) for i < j."""
        weight = 2 * factor * dots(self.a[i], self.a[j])
        self.loss += weight * pair.value
        for one, other, view in ((i, j, pair), (j, i, pair.swapped())):
            self._add_first(one, view, self.w[other], weight)
            self._add_outgoing(one, [2 * factor * view.value * x for x in self.a[other]])
            slope = (self.w[one] * (2 * view.g11) + self.w[other] * view.g12) * (2 * factor)
            self._add_mixed(one, one, slope, self.a[other])
            self._add_mixed(one, other, slope, self.a[one])
        cross = pair.cross_block() * weight
        self._add_block(self._at(i), self._at(j), cross)
        self._add_block(self._at(j), self._at(i), cross.transpose())
        self.outside[i][j] += weight * pair.g12
        self.outside[j][i] += weight * pair.g12
        self._add_diagonal(i, j, 2 * factor * pair.value)
        self._add_diagonal(j, i, 2 * factor * pair.value)

    def add_teacher(self, i: int, v: Matrix, outgoing: list[Ball], pair: Pair) -> None:
        """2 a_i·o G(w_i, v) for a teacher; o are its outgoing weights with the opposite sign."""
        weight = 2 * dots(self.a[i], outgoing)
        self.loss += weight * pair.value
        self._add_first(i, pair, v, weight)
        self._add_outgoing(i, [2 * pair.value * x for x in outgoing])
        self._add_mixed(i, i, (self.w[i] * (2 * pair.g11) + v * pair.g12) * 2, outgoing)

    def _add_first(self, i: int, pair: Pair, other: Matrix, weight: Ball) -> None:
        """Add the contribution of a pair to the gradient and the Hessian with respect to its first vector."""
        self._add_incoming(i, self.w[i] * (2 * weight * pair.g11) + other * (weight * pair.g12))
        self._add_block(self._at(i), self._at(i), pair.own_block() * weight)
        self.outside[i][i] += 2 * weight * pair.g11

    def _at(self, i: int) -> int:
        return i * (self.dim + self.outputs)

    def _add_incoming(self, i: int, vector: Matrix) -> None:
        for c, x in enumerate(vector.entries(), self._at(i)):
            self.gradient[c] += x

    def _add_outgoing(self, i: int, values: list[Ball]) -> None:
        if self.outputs:
            for c, x in enumerate(values, self._at(i) + self.dim):
                self.gradient[c] += x

    def _add_block(self, row: int, col: int, block: Matrix) -> None:
        for r, line in enumerate(block.tolist(), row):
            target = self.hessian[r]
            for c, x in enumerate(line, col):
                target[c] += x

    def _add_mixed(self, i: int, j: int, slope: Matrix, outgoing: list[Ball]) -> None:
        """∂²L/∂w_i∂a_j += slope ⊗ outgoing, and its transpose."""
        if self.outputs:
            block = slope * matrix(1, len(outgoing), outgoing)
            self._add_block(self._at(i), self._at(j) + self.dim, block)
            self._add_block(self._at(j) + self.dim, self._at(i), block.transpose())

    def _add_diagonal(self, i: int, j: int, value: Ball) -> None:
        for c in range(self.outputs):
            self.hessian[self._at(i) + self.dim + c][self._at(j) + self.dim + c] += value


def _products(left: list[Matrix], right: list[Matrix]) -> Matrix:
    """All inner products."""
    rows = matrix(len(left), left[0].nrows(), (x for v in left for x in v.entries()))
    columns = matrix(len(right), right[0].nrows(), (x for v in right for x in v.entries()))
    return rows * columns.transpose()
