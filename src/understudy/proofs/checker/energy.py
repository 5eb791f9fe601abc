"""The loss of a proof file as one energy of all neurons, with gradient and Hessian by the students' parameters.

With outgoing weights o (the students' a_i, the teachers' -b_j) the loss is Σ o_x·o_y G(x, y) over all pairs of neurons,
each with itself included; on the sphere half of that, with a factor on pairs of students.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flint import arb

from understudy.proofs.checker.interactions import Interaction, interaction, own_interaction
from understudy.proofs.checker.jets import Ball

Matrix = Any


class Energy(NamedTuple):
    """Loss without the teachers' own energy, gradient and Hessian by the parameters (w_1, a_1), …, (w_n, a_n)."""

    loss: Ball
    gradient: list[Ball]
    hessian: list[list[Ball]]


def energy(
    problem: dict[str, Any], teachers: list[Matrix], students: list[Matrix], weights: list[list[Ball]]
) -> Energy:
    """At students with these incoming columns and outgoing weights."""
    return _Adder(problem, teachers, students, weights).run()


def teachers_energy(problem: dict[str, Any], teachers: list[Matrix]) -> Ball:
    """The part of the loss that no student changes."""
    if not problem["with_constant"]:
        return arb(0)
    name, total = problem["teacher_activation"], arb(0)
    weights = [[arb(b) for b in row] for row in problem["teacher_outgoing"]]
    for x, p in enumerate(teachers):
        for y, q in enumerate(teachers[: x + 1]):
            product = sum((a * b for a, b in zip(weights[x], weights[y], strict=True)), arb(0))
            if x == y:
                total += product * own_interaction(problem["loss"], name, p).value
            else:
                total += 2 * product * interaction(problem["loss"], name, name, p, q).value
    return total / 2 if problem["loss"] == "sphere" else total


class _Adder:
    def __init__(
        self, problem: dict[str, Any], teachers: list[Matrix], students: list[Matrix], weights: list[list[Ball]]
    ):
        self.problem, self.n, self.d = problem, len(students), students[0].nrows()
        self.vectors = [*students, *teachers]
        self.weights = [*weights, *[[-arb(b) for b in row] for row in problem["teacher_outgoing"]]]
        self.trained = 0 if problem["fixed_outgoing"] is not None else len(weights[0])
        self.step = self.d + self.trained
        size = self.n * self.step
        self.loss = arb(0)
        self.gradient = [arb(0)] * size
        self.hessian = [[arb(0)] * size for _ in range(size)]

    def run(self) -> Energy:
        problem, n = self.problem, self.n
        names = [problem["activation"]] * n + [problem["teacher_activation"]] * (len(self.vectors) - n)
        half = arb(1) / 2 if problem["loss"] == "sphere" else arb(1)
        for y in range(n):
            own = own_interaction(problem["loss"], names[y], self.vectors[y])
            self._add(y, y, own, half * arb(problem["repulsion"]))
            for x in range(y + 1, len(self.vectors)):
                both = interaction(problem["loss"], names[y], names[x], self.vectors[y], self.vectors[x])
                self._add(y, x, both, 2 * half * arb(problem["repulsion"] if x < n else 1))
        return Energy(self.loss, self.gradient, self.hessian)

    def _add(self, x: int, y: int, g: Interaction, factor: Ball) -> None:
        """factor o_x·o_y G(x, y): the derivatives by each of the four arguments that is a student's."""
        ox, oy = self.weights[x], self.weights[y]
        weight = factor * sum((a * b for a, b in zip(ox, oy, strict=True)), arb(0))
        self.loss += weight * g.value
        # Columns are (first, second) argument, each with its slope, its neuron and the other's outgoing weights.
        ends = [(x, g.p, oy), (y, g.q, ox)]
        blocks = [[g.pp, g.pq], [g.pq.transpose(), g.qq]]
        for i, (one, slope, partner) in enumerate(ends):
            if one >= self.n:
                continue
            at = one * self.step
            for c in range(self.d):
                self.gradient[at + c] += weight * slope[c, 0]
            for c in range(self.trained):
                self.gradient[at + self.d + c] += factor * partner[c] * g.value
            for j, (other, other_slope, other_partner) in enumerate(ends):
                if other < self.n:
                    self._second(one, other, blocks[i][j] * weight, factor, slope, other_slope, partner, other_partner)
                    if i != j:
                        self._joint(one, other, factor * g.value)

    def _second(
        self, one: int, other: int, block: Matrix, factor: Ball, slope: Matrix, other_slope: Matrix,
        partner: list[Ball], other_partner: list[Ball],
    ) -> None:  # fmt: skip
        """∂²/∂(w of one)∂(w of other), and ∂²/∂(w)∂(a) both ways."""
        at, to = one * self.step, other * self.step
        for r in range(self.d):
            row = self.hessian[at + r]
            for c in range(self.d):
                row[to + c] += block[r, c]
            for c in range(self.trained):
                row[to + self.d + c] += factor * slope[r, 0] * other_partner[c]
        for r in range(self.trained):
            row = self.hessian[at + self.d + r]
            for c in range(self.d):
                row[to + c] += factor * partner[r] * other_slope[c, 0]

    def _joint(self, one: int, other: int, value: Ball) -> None:
        """∂²/∂(a of one)∂(a of other)."""
        for c in range(self.trained):
            self.hessian[one * self.step + self.d + c][other * self.step + self.d + c] += value
