r"""Branch and bound for the oracle ρ(V) = max ‖V σ(Bᵀw)‖² over ‖w‖ = 1, where the inputs span few dimensions.

The sphere is covered by caps. In a cap of angle θ around q every input with |b_i·q| > ‖b_i‖ sin θ has one sign, so its
term is linear. Let R be the other inputs, L all linear parts together, and E = κ Σ_R ‖v_i‖ ‖b_i‖ sin 2θ a bound of the
kinks' part. For every 0 < ω < 1 and τ ≥ 0 the value in the cap is at most

  λ_max(LᵀL/(1 - ω) + τ(qqᵀ - cos²θ I)) + E²/ω.

The term with τ is positive or zero in the cap, and without kinks the least bound is the exact maximum of a quadratic
form over it and its mirror image (the S-lemma).

With one output the value is max(f, -f)², f(w) = v·σ(Bᵀw). Each of f and -f is bounded by a linear function, whose
maximum over the cap is known. Where the weight of |z_i| is positive, |z_i| lies below its chord over the values of z_i
in the cap; where it is negative, -|z_i| lies below every line through 0 with a slope in [-1, 1]. So kinks of different
signs do not add up, and each costs less than half of what E counts for it.

Caps whose bound lies below the best value are dropped; others are cut in two."""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from understudy.oracles.relaxation import MARGIN, Responses

SHARES = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.4])
"""The ω that are tried."""

PRESSURES = np.concatenate([[0.0], np.logspace(-3, 4, 29)])
"""The τ that are tried, in units of the squared norm of L."""


MOST, MOST_LINEAR = 20_000, 100_000
"""Caps after which branch and bound is given up, with several outputs and with one: some ten seconds each."""


@dataclass(frozen=True)
class Box:
    """A part of a face of the cube around the sphere: `axis` and `side` of the face, and the middle and half widths."""

    axis: int
    side: float
    middle: np.ndarray
    half: np.ndarray

    def cap(self) -> tuple[np.ndarray, float]:
        """The direction of the middle, and the largest angle of a corner from it."""
        corners = self.middle + self.half * np.array(list(itertools.product([-1.0, 1.0], repeat=len(self.middle))))
        points = np.insert(np.vstack([self.middle, corners]), self.axis, self.side, axis=1)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        return points[0], float(np.max(2 * np.arcsin(np.linalg.norm(points[1:] - points[0], axis=1) / 2)))

    def halves(self) -> "list[Box]":
        """The two halves along the longest side."""
        where = int(np.argmax(self.half))
        half = self.half.copy()
        half[where] /= 2
        shift = np.zeros_like(half)
        shift[where] = half[where]
        return [Box(self.axis, self.side, self.middle + sign * shift, half) for sign in (-1.0, 1.0)]


def branch_and_bound(
    responses: Responses, duals: np.ndarray, start: float, *, tolerance: float = 1e-6, most: int | None = None
) -> tuple[float, int]:
    """An upper bound of ρ(V), and the number of caps. It is at most (1 + tolerance) max(ρ, start) if enough caps are
    allowed.

    `start`: a value that need not be improved on, such as one found by a local search. `most`: number of caps after
    which it is given up; the bound is then that of the worst cap. Default: `MOST_LINEAR` with one output, or `MOST`.
    """
    rank, best = responses.rank, start
    bounded, most = (_linear, most or MOST_LINEAR) if len(duals) == 1 else (_quadratic, most or MOST)
    if rank == 0:
        return 0.0, 0
    if rank == 1:
        return float(responses.values(duals, np.array([[1.0], [-1.0]])).max()) * (1 + MARGIN), 2
    heap: list[tuple[float, int, Box]] = []
    count, settled = 0, 0.0
    waiting = [Box(axis, side, np.zeros(rank - 1), np.ones(rank - 1)) for axis in range(rank) for side in (-1.0, 1.0)]
    while True:
        for box in waiting:
            q, angle = box.cap()
            best = max(best, float(responses.values(duals, q[None])[0]))
            bound = bounded(responses, duals, q, angle)
            count += 1
            if bound > best * (1 + tolerance):
                heapq.heappush(heap, (-bound, count, box))
            else:
                settled = max(settled, bound)
        while heap and -heap[0][0] <= best * (1 + tolerance):
            settled = max(settled, -heapq.heappop(heap)[0])
        if not heap or count >= most:
            return max(settled, best, -heap[0][0] if heap else 0.0) * (1 + MARGIN), count
        waiting = heapq.heappop(heap)[2].halves()


def _linear(responses: Responses, duals: np.ndarray, q: np.ndarray, angle: float) -> float:
    """The bound for one output: f and -f below linear functions of w."""
    inner, lengths = responses.inner, responses.lengths
    z = q @ inner
    around = np.arccos(np.clip(z / lengths, -1.0, 1.0))  # angle of each input from q
    low, high = lengths * np.cos(np.minimum(around + angle, np.pi)), lengths * np.cos(np.maximum(around - angle, 0.0))
    free = (low < 0) & (high > 0)
    width = np.where(free, high - low, 1.0)
    slopes = np.where(free, (high + low) / width, np.sign(z))
    raised = np.where(free, -2 * low * high / width, 0.0)
    tops = []
    for side in (duals[0], -duals[0]):
        kinks = responses.kink * side
        line = inner @ (responses.linear * side + kinks * slopes)
        size = float(np.linalg.norm(line))
        off = float(np.arccos(np.clip(q @ line / max(size, 1e-300), -1.0, 1.0)))
        tops.append(size * np.cos(max(off - angle, 0.0)) + float(np.maximum(kinks, 0.0) @ raised))
    return max(*tops, 0.0) ** 2


def _quadratic(responses: Responses, duals: np.ndarray, q: np.ndarray, angle: float) -> float:
    """The bound for any number of outputs."""
    inner, lengths = responses.inner, responses.lengths
    z = q @ inner
    free = np.abs(z) <= lengths * (np.sin(min(angle, np.pi / 2)) * (1 + 1e-12)) + 1e-300
    slopes = responses.linear + np.where(free, 0.0, responses.kink * np.sign(z))
    linear = (duals * slopes) @ inner.T
    norms = np.linalg.norm(duals[:, free], axis=0)
    kinks = abs(responses.kink) * float(norms @ lengths[free]) * np.sin(min(2 * angle, np.pi / 2))
    square = linear.T @ linear
    size = float(np.trace(square))
    cap = np.outer(q, q) - np.cos(angle) ** 2 * np.eye(len(q))
    if angle >= np.pi / 2:
        cap = np.zeros_like(cap)
    shares = SHARES if kinks > 0 else np.zeros(1)
    forms = square[None, None] / (1 - shares)[:, None, None, None] + (size * PRESSURES)[None, :, None, None] * cap
    tops = np.linalg.eigvalsh(forms)[..., -1].min(axis=1)
    extra = kinks**2 / shares if kinks > 0 else 0.0
    return float(np.min(np.maximum(tops, 0.0) + extra))
