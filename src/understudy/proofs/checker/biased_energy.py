"""The loss with biases as one energy of all neurons; see `energy`.

The offset of the output is a neuron that is constantly 1, with the outgoing weight c_0 - c_0*. Parameters are
(w_1, c_1, a_1), …, (w_n, c_n, a_n), c_0, without those that are not trained.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flint import arb

from understudy.proofs.checker.biased import biased_interaction, biased_mean, biased_own
from understudy.proofs.checker.energy import Energy
from understudy.proofs.checker.interactions import Interaction
from understudy.proofs.checker.jets import Ball

Matrix = Any


class Neuron(NamedTuple):
    """A neuron; positions of its incoming and outgoing parameters, None where they are not trained."""

    name: str | None
    vector: Matrix
    mean: Ball
    weights: list[Ball]
    at: int | None = None
    out: int | None = None


def neurons_energy(neurons: list[Neuron], teachers: list[Neuron], offset: Neuron, size: int, width: int) -> Energy:
    """Σ o_x·o_y G(x, y) over pairs with a student or the offset; `width`: incoming parameters of a neuron."""
    adder = _Adder(size, width)
    for i, x in enumerate(neurons):
        adder.add(x, x, biased_own(str(x.name), x.vector, x.mean), arb(1))
        for y in [*neurons[i + 1 :], *teachers, offset]:
            adder.add(x, y, _interaction(x, y), arb(2))
    for y in teachers:
        adder.add(y, offset, _interaction(y, offset), arb(2))
    zero = _interaction(neurons[0], offset)
    constant = Interaction(arb(1), zero.q, zero.q, zero.qq, zero.qq, zero.qq)
    adder.add(offset, offset, constant, arb(1))
    return Energy(adder.loss, adder.gradient, adder.hessian)


def biased_teachers_energy(teachers: list[Neuron]) -> Ball:
    """The part of the loss that neither students nor offsets change."""
    total = arb(0)
    for i, x in enumerate(teachers):
        total += _dots(x.weights, x.weights) * biased_own(str(x.name), x.vector, x.mean).value
        for y in teachers[:i]:
            total += 2 * _dots(x.weights, y.weights) * _interaction(x, y).value
    return total


def _interaction(x: Neuron, y: Neuron) -> Interaction:
    if y.name is None:
        return biased_mean(str(x.name), x.vector, x.mean)
    return biased_interaction(str(x.name), y.name, x.vector, x.mean, y.vector, y.mean)


class _Adder:
    def __init__(self, size: int, width: int):
        self.width = width
        self.loss = arb(0)
        self.gradient = [arb(0)] * size
        self.hessian = [[arb(0)] * size for _ in range(size)]

    def add(self, x: Neuron, y: Neuron, g: Interaction, factor: Ball) -> None:
        """factor o_x·o_y G(x, y), with derivatives by all four arguments, each where it is trained."""
        weight = factor * _dots(x.weights, y.weights)
        self.loss += weight * g.value
        ends = [(x, g.p, y.weights), (y, g.q, x.weights)]
        blocks = [[g.pp, g.pq], [g.pq.transpose(), g.qq]]
        for i, (one, slope, partner) in enumerate(ends):
            if one.at is not None:
                for c in range(self.width):
                    self.gradient[one.at + c] += weight * slope[c, 0]
            if one.out is not None:
                for c, b in enumerate(partner):
                    self.gradient[one.out + c] += factor * b * g.value
            for j, (other, _, other_partner) in enumerate(ends):
                self._second(one, other, blocks[i][j], weight)
                if one.at is not None and other.out is not None:
                    self._mixed(one.at, other.out, slope, factor, other_partner)
                if i != j and one.out is not None and other.out is not None:
                    for c in range(len(partner)):
                        self.hessian[one.out + c][other.out + c] += factor * g.value

    def _second(self, one: Neuron, other: Neuron, block: Matrix, weight: Ball) -> None:
        if one.at is None or other.at is None:
            return
        for r in range(self.width):
            for c in range(self.width):
                self.hessian[one.at + r][other.at + c] += weight * block[r, c]

    def _mixed(self, at: int, out: int, slope: Matrix, factor: Ball, weights: list[Ball]) -> None:
        """∂²/∂(w, c of one)∂(a of other), both ways."""
        for r in range(self.width):
            for c, b in enumerate(weights):
                self.hessian[at + r][out + c] += factor * slope[r, 0] * b
                self.hessian[out + c][at + r] += factor * slope[r, 0] * b


def _dots(a: list[Ball], b: list[Ball]) -> Ball:
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))
