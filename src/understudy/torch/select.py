"""Which neurons to keep: backward elimination and pivoted QR on second moments.

The error of a layer that reads the features of a set K of neurons, with its weights refitted, is

    E(K) = Σ t² - C_Kᵀ (G_KK)⁻¹ C_K.

With P = (G_KK)⁻¹ and W = P C_K, leaving out the block b of one neuron raises it by tr W_bᵀ (P_bb)⁻¹ W_b. Backward
elimination leaves out the cheapest neuron, updates P and W, and repeats (Reeves 1999).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from understudy.torch.groups import block_of, evenly
from understudy.torch.symmetric import exceeds, inverse_of, part_of, pivots_of, unit_sized

RIDGE = 1e-3
"""Ridge of the elimination, for features of unit size: small samples would otherwise decide by noise."""

EXACT_RIDGE, EXACT = 1e-10, 1e-8
"""Neurons whose removal costs at most the share EXACT of the readers' scatter leave first, with a ridge that lets
copies cost nothing."""

ONE_BY_ONE = 600
"""Features up to which neurons leave one by one. Above, up to a 24th of the rest leaves at a time."""

RELATED = 0.1
"""The largest squared partial correlation, P_ij² / (P_ii P_jj), of two neurons that leave together. Neurons that are
more related could replace each other: of these only one leaves."""


@dataclass
class Reader:
    """One layer that reads the neurons.

    - `gram`, `cross`: G and C for features of unit size; `sizes`: what they were divided by.
    - `owners`: the neuron of each feature (-1: none); `scale`: the scatter of what the layer computes.
    - `above`, `below`: the least eigenvalue of G is known to lie between these.
    """

    gram: torch.Tensor
    cross: torch.Tensor
    owners: torch.Tensor
    scale: float
    sizes: torch.Tensor
    above: float = -math.inf
    below: float = math.inf

    def exceeds(self, least: float) -> bool:
        """Whether all eigenvalues of G are above `least`; asked again, it costs nothing."""
        if self.above < least < self.below:
            if exceeds(self.gram, least):
                self.above = least
            else:
                self.below = least
        return least <= self.above


def make_reader(
    gram: torch.Tensor, cross: torch.Tensor, owners: torch.Tensor, scatter: float, rows: float = math.inf
) -> Reader:
    """Scale features to unit size and shorten C to as many columns as it has rank at most.

    `rows`: over how many G was summed; over fewer than it has features it has a kernel.
    """
    size = gram.diagonal().sqrt()
    size = torch.where(size > 1e-12 * size.max().clamp(min=1e-300), size, torch.inf)
    gram = unit_sized(gram, size)
    cross = cross / size[:, None]
    if cross.shape[1] > cross.shape[0]:
        cross = torch.linalg.qr(cross.T, mode="r")[1].T  # the same inner products of rows
    gram.diagonal()[torch.isinf(size)] = 1.0
    below = 0.0 if rows < len(gram) else math.inf
    return Reader(gram, cross, owners, scatter, torch.where(torch.isinf(size), 0.0, size), below=below)


def eliminate(
    readers: Sequence[Reader], neurons: int, least: int = 1, blocks: int = 1
) -> tuple[list[int], list[float]]:
    """Neurons in the order in which they leave, and the error after each: a share of the readers' scatter, summed.

    All but `least` leave: those that cost nothing first, then one by one (many at a time if there are many features).
    With several `blocks` they leave in turns: no block ever has two neurons more than another.

    >>> ones = torch.ones(2, 2, dtype=torch.float64)
    >>> copies = make_reader(ones, ones[:, :1], torch.arange(2), 1.0)
    >>> len(eliminate([copies], 2)[0])
    1
    """
    alive = torch.ones(neurons, dtype=torch.bool)
    order: list[int] = []
    errors: list[float] = []
    if max(len(reader.owners) for reader in readers) > ONE_BY_ONE:
        order = evenly(_dependent(readers, neurons), neurons, blocks)[: neurons - least]
        errors = [0.0] * len(order)
        alive[order] = False
        phases = [(RIDGE, float("inf"))]
    else:
        phases = [(EXACT_RIDGE, EXACT), (RIDGE, float("inf"))]
    for ridge, most in phases:
        states = [_State(reader, neurons, alive, ridge) for reader in readers]
        while len(order) < neurons - least:
            costs = torch.stack([state.costs() for state in states]).sum(0)
            costs[~alive] = torch.inf
            if blocks > 1:
                left = alive.view(blocks, -1).sum(1)
                costs.view(blocks, -1)[left < left.max()] = torch.inf
            leaving = [i for i in _cheapest(states, costs, neurons - len(order), least) if float(costs[i]) <= most]
            if blocks > 1:
                leaving = _one_of_each(leaving, neurons, blocks)
            if not leaving:
                break
            for neuron in leaving:
                errors.append((errors[-1] if errors else 0.0) + max(float(costs[neuron]), 0.0))
                order.append(neuron)
                alive[neuron] = False
            for state in states:
                state.remove(leaving)
    return order, errors


def _one_of_each(leaving: list[int], neurons: int, blocks: int) -> list[int]:
    """The first of each block."""
    place = block_of(neurons, blocks).tolist()
    first: dict[int, int] = {}
    for neuron in leaving:
        first.setdefault(place[neuron], neuron)
    return list(first.values())


def pivot(readers: Sequence[Reader], neurons: int, width: int, blocks: int = 1) -> list[int]:
    """The `width` neurons that QR with pivots takes first: each is the one farthest from the span of those before.

    The activations are those that the readers see, without what the constant explains. For convolutions all places of
    a patch count. What the readers compute from the neurons plays no role, unlike in `eliminate`. Of each of several
    `blocks` as many are taken.
    """
    total = torch.zeros(neurons, neurons, dtype=torch.float64)
    for reader in readers:
        gram = reader.gram * reader.sizes[:, None] * reader.sizes[None, :]
        mine = torch.nonzero(reader.owners >= 0).flatten()
        rest = torch.nonzero(reader.owners < 0).flatten()
        part = gram[mine][:, mine]
        if len(rest):
            across = gram[mine][:, rest]
            part = part - across @ torch.linalg.pinv(gram[rest][:, rest], hermitian=True) @ across.T
        names = reader.owners[mine]
        order = torch.argsort(names, stable=True)
        places = torch.empty_like(order)  # which of its neuron's features each one is
        counts = torch.bincount(names, minlength=neurons)
        places[order] = torch.arange(len(order)) - (torch.cumsum(counts, 0) - counts)[names[order]]
        for place in range(int(counts.max())):
            chosen = places == place
            total[names[chosen][:, None], names[chosen][None, :]] += part[chosen][:, chosen]
    return sorted(evenly(pivots_of(total, 0.0)[0].tolist(), neurons, blocks)[:width])


def _cheapest(states: Sequence[_State], costs: torch.Tensor, left: int, least: int) -> list[int]:
    """The neurons that leave next: the cheapest one, and with many features others that are hardly related to it."""
    if max(state.size for state in states) <= ONE_BY_ONE:
        return [int(costs.argmin())]
    count = min(max(1, left // 24), left - least)
    candidates = torch.topk(costs, min(2 * count, left), largest=False).indices
    related = torch.stack([state.relations(candidates) for state in states]).amax(0) > RELATED
    chosen: list[int] = []
    for i in range(len(candidates)):
        if len(chosen) < count and not bool(related[i, chosen].any()):
            chosen.append(i)
    chosen += [i for i in range(len(candidates)) if i not in chosen][
        : max(0, (count + 1) // 2 - len(chosen))
    ]  # some always leave
    return candidates[chosen].tolist()


def _dependent(readers: Sequence[Reader], neurons: int) -> list[int]:
    """Neurons whose features are combinations of others for every reader, by a Cholesky factorisation with pivots."""
    gone = torch.ones(neurons, dtype=torch.bool)
    for reader in readers:
        if reader.exceeds(EXACT_RIDGE):
            needed = reader.owners
        else:
            pivots, rank = pivots_of(reader.gram, EXACT_RIDGE)
            needed = reader.owners[pivots[:rank]]
        gone[needed[needed >= 0]] = False
    return torch.nonzero(gone).flatten().tolist()


class _State:
    """Inverse and weights of one reader on the neurons that are left. Features that left are zero until dropped."""

    def __init__(self, reader: Reader, neurons: int, alive: torch.Tensor, ridge: float) -> None:
        self.neurons, self.scale = neurons, reader.scale
        kept = torch.nonzero((reader.owners < 0) | alive[reader.owners]).flatten()
        self.owners = reader.owners[kept]
        gram = part_of(reader.gram, kept)
        gram.diagonal().add_(ridge)
        self.inverse = inverse_of(gram)
        self.weights = self.inverse @ reader.cross[kept]

    @property
    def size(self) -> int:
        return len(self.owners)

    def costs(self) -> torch.Tensor:
        """tr W_bᵀ (P_bb)⁻¹ W_b of every neuron, over the scatter of the outputs."""
        costs = torch.zeros(self.neurons, dtype=torch.float64)
        mine = torch.nonzero(self.owners >= 0).flatten()
        if not len(mine):
            return costs
        names, counts = torch.unique(self.owners[mine], return_counts=True)
        if int(counts.max()) == 1:
            found = (self.weights[mine] ** 2).sum(1) / self.inverse.diagonal()[mine]
            return costs.index_put((self.owners[mine],), found) / self.scale
        order = mine[torch.argsort(self.owners[mine], stable=True)]
        for width in counts.unique().tolist():
            chosen = names[counts == width]
            rows = order[torch.isin(self.owners[order], chosen)].view(len(chosen), width)
            blocks = self.inverse[rows[:, :, None], rows[:, None, :]]
            weights = self.weights[rows]
            costs[chosen] = (weights * torch.linalg.solve(blocks, weights)).sum((1, 2))
        return costs / self.scale

    def relations(self, candidates: torch.Tensor) -> torch.Tensor:
        """Largest squared partial correlation between features of two candidates."""
        place = torch.full((self.neurons,), -1)
        place[candidates] = torch.arange(len(candidates))
        places = torch.where(self.owners >= 0, place[self.owners], -1)
        rows = torch.nonzero(places >= 0).flatten()
        part = self.inverse[rows][:, rows]
        squares = part**2 / part.diagonal()[:, None] / part.diagonal()[None, :]
        pairs = places[rows][:, None] * len(candidates) + places[rows][None, :]
        found = torch.zeros(len(candidates) ** 2, dtype=torch.float64)
        return found.scatter_reduce(0, pairs.flatten(), squares.flatten(), "amax").view(len(candidates), -1)

    def remove(self, leaving: list[int]) -> None:
        """Leave these neurons out: P ← P - P_:b (P_bb)⁻¹ P_b:, and W likewise."""
        gone = torch.nonzero(torch.isin(self.owners, torch.tensor(leaving))).flatten()
        if not len(gone):
            return
        wide = self.inverse[gone]  # rows, which are read faster than columns: P is symmetric
        solved = torch.linalg.solve(wide[:, gone], torch.cat([wide, self.weights[gone]], dim=1))
        self.inverse.addmm_(wide.T, solved[:, : self.size], alpha=-1)
        self.weights.addmm_(wide.T, solved[:, self.size :], alpha=-1)
        self.owners = self.owners.clone()
        self.owners[gone] = LEFT
        if int((self.owners == LEFT).sum()) * 4 > self.size:
            stay = torch.nonzero(self.owners != LEFT).flatten()
            self.inverse, self.weights = self.inverse[stay][:, stay], self.weights[stay]
            self.owners = self.owners[stay]


LEFT = -2
"""The owner of features of neurons that have left; -1 is that of features no neuron of this space owns."""
