"""Loss, gradient and Hessian with biases, in balls.

L = Σ o_x·o_y G(x, y) over all pairs of neurons x, y with outgoing weights o (the students' a_i, the teachers' -b_j).
The offset of the output is a neuron that is constantly 1: its weight is c_0 - c_0*. In the coordinates (p, m) of a
neuron and with E_ij as in `biased_kernels`,

    ∂_p = E_20 p + E_11 q,  ∂_m = E_10,  ∂_pp = E_20 I + E_40 ppᵀ + E_31 (pqᵀ + qpᵀ) + E_22 qqᵀ,
    ∂_pm = E_30 p + E_21 q,  ∂_mm = E_20;
    ∂_pq = E_11 I + E_31 ppᵀ + E_22 (pqᵀ + qpᵀ) + E_13 qqᵀ,  ∂_pm' = E_21 p + E_12 q,  ∂_mm' = E_11.

The parameters are (w_1, c_1, a_1), …, (w_n, c_n, a_n), c_0, without those that are not trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from understudy.proofs.balls import Ball, Matrix, ball, column, dot, dots, identity, matrix
from understudy.proofs.biased_kernels import BiasedKernel, Expectations, Gram, swap
from understudy.proofs.enclosure import Evaluation
from understudy.proofs.named import biased_kernel_of
from understudy.tasks.exact_form import ExactForm

ONE = "one"
"""The activation of the neuron whose outgoing weight is the offset."""


class Neuron(NamedTuple):
    """A neuron with its coordinates, its outgoing weights, and the positions of its parameters (None: not trained)."""

    activation: str
    p: Matrix
    m: Ball
    outgoing: list[Ball]
    incoming_at: int | None
    outgoing_at: int | None


@dataclass(frozen=True)
class BiasedEnclosure:
    """The loss of an exact form with biases; see `Enclosure`. `means` are the teachers' biases for inputs of mean zero.

    Biases have the unit of incoming weights, the offset that of outgoing weights.
    """

    form: ExactForm
    teachers: Matrix
    means: list[Ball]
    units: tuple[str, str] = ("1", "1")

    @property
    def dim(self) -> int:
        """Number r of coordinates of an incoming vector."""
        return int(self.teachers.ncols())

    @property
    def inputs(self) -> int:
        """Trained incoming parameters per neuron, with its bias."""
        return self.dim + self.form.trains_bias

    @property
    def outputs(self) -> int:
        """Trained outgoing weights per neuron."""
        return 0 if self.form.fixed_outgoing is not None else self.form.outgoing.shape[1]

    @property
    def offsets(self) -> int:
        """Trained offsets."""
        return self.form.outgoing.shape[1] if self.form.trains_bias else 0

    @property
    def size(self) -> int:
        """Number of parameters in these coordinates."""
        return self.form.width * (self.inputs + self.outputs) + self.offsets

    def scales(self) -> list[Ball]:
        """The unit of each parameter."""
        incoming, outgoing = (ball(u) for u in self.units)
        return ([incoming] * self.inputs + [outgoing] * self.outputs) * self.form.width + [outgoing] * self.offsets

    def split(self, x: list[Ball]) -> tuple[list[Matrix], list[list[Ball]]]:
        """Incoming vectors (columns) and outgoing weights of the students."""
        students = self._students(x)
        return [s.p for s in students], [s.outgoing for s in students]

    def _students(self, x: list[Ball]) -> list[Neuron]:
        form, step = self.form, self.inputs + self.outputs
        scaled = [v * u for v, u in zip(x, self.scales(), strict=True)]
        found = []
        for i in range(form.width):
            row = scaled[i * step : (i + 1) * step]
            fixed = ball(0) if form.fixed_bias is None else ball(float(form.fixed_bias[i]))
            outgoing = row[self.inputs :] if self.outputs else [ball(float(a)) for a in form.fixed_outgoing[i]]  # type: ignore[index]
            found.append(
                Neuron(
                    form.activation, column(row[: self.dim]), row[self.dim] if form.trains_bias else fixed, outgoing,
                    i * step, i * step + self.inputs if self.outputs else None,
                )
            )  # fmt: skip
        return found

    @cached_property
    def _teachers(self) -> list[Neuron]:
        rows = [column(row) for row in self.teachers.tolist()]
        weights = [[-ball(float(b)) for b in row] for row in self.form.outgoing]
        return [
            Neuron(self.form.teacher_activation, v, m, b, None, None)
            for v, m, b in zip(rows, self.means, weights, strict=True)
        ]

    def _offset(self, x: list[Ball]) -> Neuron:
        """The offset c_0 - c_0*, as a neuron."""
        form, count = self.form, self.form.outgoing.shape[1]
        at = self.size - self.offsets if self.offsets else None
        given = [v * ball(self.units[1]) for v in x[self.size - self.offsets :]] or [ball(0)] * count
        wanted = [0.0] * count if form.teacher_offset is None else form.teacher_offset
        weights = [v - ball(float(t)) for v, t in zip(given, wanted, strict=True)]
        return Neuron(ONE, column([ball(0)] * self.dim), ball(0), weights, None, at)

    def evaluate(self, x: list[Ball]) -> Evaluation:
        """Loss, gradient and Hessian at once. Derivatives are with respect to the parameters in their units."""
        students, offset = self._students(x), self._offset(x)
        sums = _Sums(self, len(students))
        others = [*self._teachers, offset]
        for i, student in enumerate(students):
            own = _kernel(student, student).own(dot(student.p, student.p), student.m)
            sums.add_own(i, student, own)
            for j, other in enumerate(students[i + 1 :], i + 1):
                sums.add_pair(student, other, _pair(student, other), (i, j))
            for other in others:
                sums.add_pair(student, other, _pair(student, other), (i, None))
        for teacher in self._teachers:
            sums.add_pair(offset, teacher, _pair(offset, teacher), (None, None))
        sums.add_offset(offset)
        return sums.result(self.constant, self.scales())

    @cached_property
    def constant(self) -> Ball:
        """The teachers' energy without their offset, which no student changes."""
        total = ball(0)
        for i, p in enumerate(self._teachers):
            total += dots(p.outgoing, p.outgoing) * _kernel(p, p).own(dot(p.p, p.p), p.m)[0, 0]
            for q in self._teachers[:i]:
                total += 2 * dots(p.outgoing, q.outgoing) * _pair(p, q)[0, 0]
        return total


def _kernel(first: Neuron, second: Neuron) -> BiasedKernel:
    return biased_kernel_of(first.activation, second.activation)


def _pair(first: Neuron, second: Neuron) -> Expectations:
    """E_ij of two neurons. With the constant neuron only those with j = 0 exist."""
    if first.activation == ONE:
        return swap(_pair(second, first))
    if second.activation == ONE:
        alone = _kernel(first, first).single(dot(first.p, first.p), first.m)
        return {(i, j): alone[i] if j == 0 else ball(0) for i in range(5) for j in range(5 - i)}
    q11, q12, q22 = dot(first.p, first.p), dot(first.p, second.p), dot(second.p, second.p)
    area = q11 * q22 - q12 * q12
    if q11 > 0:  # from the vectors: the difference loses digits where they are nearly parallel
        beside = second.p - first.p * (q12 / q11)
        area = q11 * dot(beside, beside)
    return _kernel(first, second).pair(Gram(q11, q12, q22, first.m, second.m, area))


class _Sums:
    """The loss and its derivatives, one pair after the other."""

    def __init__(self, enclosure: BiasedEnclosure, width: int):
        self.dim, self.biased, self.count = enclosure.dim, enclosure.form.trains_bias, enclosure.form.outgoing.shape[1]
        size = enclosure.size
        self.loss = ball(0)
        self.gradient = [ball(0)] * size
        self.hessian = [[ball(0)] * size for _ in range(size)]
        self.outside = [[ball(0)] * width for _ in range(width)]

    def result(self, constant: Ball, units: list[Ball]) -> Evaluation:
        size, n = len(self.gradient), len(self.outside)
        rows = zip(self.hessian, units, strict=True)
        hessian = matrix(size, size, (x * u * v for row, u in rows for x, v in zip(row, units, strict=True)))
        outside = matrix(n, n, (x for row in self.outside for x in row))
        gradient = [g * u for g, u in zip(self.gradient, units, strict=True)]
        return Evaluation(self.loss + constant, gradient, hessian, outside)

    def add_own(self, i: int, x: Neuron, d: Expectations) -> None:
        """|a|² D(p·p, m)."""
        weight = dots(x.outgoing, x.outgoing)
        self.loss += weight * d[0, 0]
        slope = [*(x.p * (2 * d[1, 0])).entries(), d[0, 1]]
        block = x.p * x.p.transpose() * (4 * d[2, 0]) + identity(self.dim) * (2 * d[1, 0])
        rows = _bordered(block, x.p * (2 * d[1, 1]), d[0, 2])
        self.outside[i][i] += 2 * d[1, 0] * weight
        self._slope(x, slope, weight)
        self._block(x.incoming_at, x.incoming_at, rows, weight)
        if x.outgoing_at is not None:
            for c, a in enumerate(x.outgoing):
                self.gradient[x.outgoing_at + c] += 2 * a * d[0, 0]
                self.hessian[x.outgoing_at + c][x.outgoing_at + c] += 2 * d[0, 0]
            self._mixed(x.incoming_at, x.outgoing_at, slope, [2 * a for a in x.outgoing])

    def add_pair(self, x: Neuron, y: Neuron, e: Expectations, at: tuple[int | None, int | None]) -> None:
        """2 o_x·o_y G(x, y); `at`: which students they are."""
        weight = 2 * dots(x.outgoing, y.outgoing)
        self.loss += weight * e[0, 0]
        for one, other, view, i in ((x, y, e, at[0]), (y, x, swap(e), at[1])):
            slope = [*(one.p * view[2, 0] + other.p * view[1, 1]).entries(), view[1, 0]]
            self._slope(one, slope, weight)
            if one.incoming_at is not None:
                self._block(one.incoming_at, one.incoming_at, _pair_block(one, other, view, 2, 0), weight)
                for end, partner in ((one, other), (other, one)):
                    if end.outgoing_at is not None:
                        self._mixed(one.incoming_at, end.outgoing_at, slope, [2 * b for b in partner.outgoing])
            if i is not None:
                self.outside[i][i] += weight * view[2, 0]
            if one.outgoing_at is not None:
                for c, b in enumerate(other.outgoing):
                    self.gradient[one.outgoing_at + c] += 2 * b * e[0, 0]
        if x.incoming_at is not None and y.incoming_at is not None:
            rows = _pair_block(x, y, e, 1, 1)
            self._block(x.incoming_at, y.incoming_at, rows, weight)
            self._block(y.incoming_at, x.incoming_at, [list(row) for row in zip(*rows, strict=True)], weight)
        if at[0] is not None and at[1] is not None:
            self.outside[at[0]][at[1]] += weight * e[1, 1]
            self.outside[at[1]][at[0]] += weight * e[1, 1]
        if x.outgoing_at is not None and y.outgoing_at is not None:
            for c in range(self.count):
                self.hessian[x.outgoing_at + c][y.outgoing_at + c] += 2 * e[0, 0]
                self.hessian[y.outgoing_at + c][x.outgoing_at + c] += 2 * e[0, 0]

    def add_offset(self, offset: Neuron) -> None:
        """‖c_0 - c_0*‖²."""
        self.loss += dots(offset.outgoing, offset.outgoing)
        if offset.outgoing_at is not None:
            for c, a in enumerate(offset.outgoing):
                self.gradient[offset.outgoing_at + c] += 2 * a
                self.hessian[offset.outgoing_at + c][offset.outgoing_at + c] += 2

    def _slope(self, x: Neuron, slope: list[Ball], weight: Ball) -> None:
        if x.incoming_at is not None:
            for c, g in enumerate(slope[: self.dim + self.biased], x.incoming_at):
                self.gradient[c] += weight * g

    def _block(self, row: int | None, col: int | None, rows: list[list[Ball]], weight: Ball) -> None:
        assert row is not None
        assert col is not None
        used = self.dim + self.biased
        for r, line in enumerate(rows[:used], row):
            for c, x in enumerate(line[:used], col):
                self.hessian[r][c] += weight * x

    def _mixed(self, row: int | None, col: int, slope: list[Ball], outgoing: list[Ball]) -> None:
        """∂²/∂(w, c)∂a += slope ⊗ outgoing, and its transpose."""
        assert row is not None
        for r, g in enumerate(slope[: self.dim + self.biased], row):
            for c, b in enumerate(outgoing, col):
                self.hessian[r][c] += g * b
                self.hessian[c][r] += g * b


def _pair_block(x: Neuron, y: Neuron, e: Expectations, i: int, j: int) -> list[list[Ball]]:
    """∂²G/∂(p, m)∂(p, m) for (i, j) = (2, 0), and ∂²G/∂(p, m)∂(q, m') for (1, 1); a row for each coordinate of x."""
    mixed = x.p * y.p.transpose()
    block = (
        identity(x.p.nrows()) * e[i, j]
        + x.p * x.p.transpose() * e[i + 2, j]
        + (mixed + mixed.transpose()) * e[i + 1, j + 1]
        + y.p * y.p.transpose() * e[i, j + 2]
    )
    return _bordered(block, x.p * e[i + 1, j] + y.p * e[i, j + 1], e[i, j])


def _bordered(block: Matrix, edge: Matrix, corner: Ball) -> list[list[Ball]]:
    rows = [[*row, r] for row, r in zip(block.tolist(), edge.entries(), strict=True)]
    return [*rows, [*edge.entries(), corner]]
