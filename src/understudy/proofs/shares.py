"""Students with one incoming vector, which share the outgoing weight of a single neuron.

If w_1 = … = w_g, the function depends only on the sum of the outgoing weights. A critical point of the network with one
neuron in their place is a critical point for all shares μ_1 + … + μ_g = 1 of its outgoing weight. These form a flat
set, along which the Hessian vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from understudy.proofs.balls import Ball, Matrix, ball, matrix
from understudy.proofs.named import HOMOGENEITY, parity_of
from understudy.tasks.exact_form import ExactForm

SAME = 1e-8
"""Incoming vectors whose difference is smaller than this, relative to their length, count as equal."""

DIGITS = 18
"""Of a share."""


@dataclass(frozen=True)
class Shares:
    """For each student: the neuron to which it belongs, the sign of its incoming vector, its share of the weight."""

    neuron: tuple[int, ...]
    sign: tuple[int, ...]
    share: tuple[str, ...]

    @property
    def width(self) -> int:
        """Number of different neurons."""
        return max(self.neuron) + 1

    @property
    def flat(self) -> int:
        """Dimension of the set of shares."""
        return len(self.neuron) - self.width


def find_shares(form: ExactForm, incoming: np.ndarray, outgoing: np.ndarray) -> Shares | None:
    """Groups of students that are the same neuron up to sign (odd and even activations) and length (homogeneous
    activations), or None."""
    if form.fixed_outgoing is not None or form.outgoing.shape[1] != 1:
        return None
    parity, degree = parity_of(form.activation), HOMOGENEITY.get(form.activation)
    norms = np.linalg.norm(incoming, axis=1)
    first: list[int] = []
    neuron, sign, weight = [], [], []
    for i, w in enumerate(incoming):
        scaled = w if degree is None or norms[i] == 0 else w / norms[i]
        for c, j in enumerate(first):
            other = incoming[j] if degree is None or norms[j] == 0 else incoming[j] / norms[j]
            same = [s for s in ((1, -1) if parity else (1,))
                    if np.linalg.norm(scaled - s * other) <= SAME * np.linalg.norm(other)]  # fmt: skip
            if same:
                neuron.append(c)
                sign.append(same[0])
                factor = 1.0 if degree is None else (norms[i] / norms[j]) ** degree
                weight.append(float(outgoing[i, 0]) * factor * (parity if same[0] < 0 else 1))
                break
        else:
            neuron.append(len(first))
            sign.append(1)
            weight.append(float(outgoing[i, 0]))
            first.append(i)
    if len(first) == len(incoming):
        return None
    totals = np.bincount(neuron, weights=weight)
    return Shares(tuple(neuron), tuple(sign), _whole(neuron, weight, totals))


def _whole(neuron: list[int], weight: list[float], totals: np.ndarray) -> tuple[str, ...]:
    """Shares as decimals that sum to exactly 1 for each neuron."""
    units = [
        round(Fraction(w / totals[c] if totals[c] else 0.0) * 10**DIGITS) for w, c in zip(weight, neuron, strict=True)
    ]
    for c in set(neuron):
        members = [i for i, x in enumerate(neuron) if x == c]
        units[members[-1]] = 10**DIGITS - sum(units[i] for i in members[:-1])
    return tuple(f"{u}e-{DIGITS}" for u in units)


def merge(shares: Shares, incoming: np.ndarray, outgoing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The network with one neuron for each group, approximately."""
    first = [shares.neuron.index(c) for c in range(shares.width)]
    whole = [outgoing[i] / float(shares.share[i]) for i in first]
    return incoming[first], np.array(whole)


def spread(shares: Shares, x: list[Ball], dim: int, parity: int) -> list[Ball]:
    """All students' parameters, and the offset, from those of the merged network; `dim` includes biases."""
    result: list[Ball] = []
    rest = x[shares.width * (dim + 1) :]
    for c, sign, share in zip(shares.neuron, shares.sign, shares.share, strict=True):
        row = x[c * (dim + 1) : (c + 1) * (dim + 1)]
        result += [sign * w for w in row[:dim]] + [row[dim] * ball(share) * (parity if sign < 0 else 1)]
    return result + rest


def flat_directions(shares: Shares, dim: int, size: int, parity: int) -> Matrix:
    """A column of `size` entries for each way to move outgoing weight from the first member of a group to another."""
    columns = []
    for i, c in enumerate(shares.neuron):
        j = shares.neuron.index(c)
        if i != j:
            entries = [0] * size
            entries[i * (dim + 1) + dim] = parity if shares.sign[i] < 0 else 1
            entries[j * (dim + 1) + dim] = -1
            columns.append(entries)
    return matrix(len(columns), len(columns[0]), (ball(e) for c in columns for e in c)).transpose()
