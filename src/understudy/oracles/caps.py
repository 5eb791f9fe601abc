r"""Branch and bound for the oracle ρ(V) = max ‖V σ(Bᵀw)‖² over ‖w‖ = 1, where the inputs span few dimensions.

The sphere is covered by caps. In a cap of angle θ around q, z_i = b_i·w lies between two numbers l_i and h_i. Inputs
with one sign there have a linear term. For the others |z_i| lies between a line and a chord,

  s_i z_i ≤ |z_i| ≤ s_i z_i + r_i,   s_i = (h_i + l_i)/(h_i - l_i),   r_i = -2 l_i h_i/(h_i - l_i).

With the middle between both, Vσ(Bᵀw) = Lw + c + e. Here L has all linear parts, c = κ Σ v_i r_i/2, and e = Σ v_i e_i is
the error, |e_i| ≤ ε_i = |κ| r_i/2. By Cauchy and Schwarz ‖e‖² ≤ E² = λ_max(Σ v_i v_iᵀ ε_i/‖v_i‖) Σ ‖v_i‖ ε_i. Because
q·w ≥ cos θ, c differs from c (q·w) by at most ‖c‖(1 - cos θ). So for every τ ≥ 0 the value in the cap is at most

  (√λ_max(MᵀM + τ(qqᵀ - cos²θ I)) + E + ‖c‖(1 - cos θ))²,   M = L + c qᵀ.

The term with τ is positive or zero in the cap, and without kinks the least bound is the exact maximum of a quadratic
form over it and its mirror image (the S-lemma).

With one output the value is max(f, -f)², f(w) = v·σ(Bᵀw). Each of f and -f is bounded by a linear function, whose
maximum over the cap is known: by the chord where the weight of |z_i| is positive, by the line where it is negative. So
kinks of different signs do not add up.

Caps whose bound lies below the best value are dropped; others are cut in two."""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from understudy.oracles.relaxation import MARGIN, Responses

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


def _chords(responses: Responses, q: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """s_i and r_i of every input: |z_i| is between s_i z_i and s_i z_i + r_i in the cap."""
    z, lengths = q @ responses.inner, responses.lengths
    around = np.arccos(np.clip(z / lengths, -1.0, 1.0))  # angle of each input from q
    low, high = lengths * np.cos(np.minimum(around + angle, np.pi)), lengths * np.cos(np.maximum(around - angle, 0.0))
    free = (low < 0) & (high > 0)
    width = np.where(free, high - low, 1.0)
    return np.where(free, (high + low) / width, np.sign(z)), np.where(free, -2 * low * high / width, 0.0)


def _linear(responses: Responses, duals: np.ndarray, q: np.ndarray, angle: float) -> float:
    """The bound for one output: f and -f below linear functions of w."""
    slopes, raised = _chords(responses, q, angle)
    tops = []
    for side in (duals[0], -duals[0]):
        kinks = responses.kink * side
        line = responses.inner @ (responses.linear * side + kinks * slopes)
        size = float(np.linalg.norm(line))
        off = float(np.arccos(np.clip(q @ line / max(size, 1e-300), -1.0, 1.0)))
        tops.append(size * np.cos(max(off - angle, 0.0)) + float(np.maximum(kinks, 0.0) @ raised))
    return max(*tops, 0.0) ** 2


def _quadratic(responses: Responses, duals: np.ndarray, q: np.ndarray, angle: float) -> float:
    """The bound for any number of outputs."""
    slopes, raised = _chords(responses, q, angle)
    kinked = raised > 0
    vectors, errors = duals[:, kinked], abs(responses.kink) / 2 * raised[kinked]
    norms = np.maximum(np.linalg.norm(vectors, axis=0), 1e-300)
    middle = np.sign(responses.kink) * vectors @ errors
    spread = float(np.linalg.eigvalsh((vectors * (errors / norms)) @ vectors.T)[-1]) * float(norms @ errors)
    extra = np.sqrt(max(spread, 0.0)) + float(np.linalg.norm(middle)) * (1 - np.cos(angle))
    linear = (duals * (responses.linear + responses.kink * slopes)) @ responses.inner.T + np.outer(middle, q)
    square = linear.T @ linear
    cap = np.outer(q, q) - np.cos(angle) ** 2 * np.eye(len(q)) if angle < np.pi / 2 else np.zeros_like(square)
    forms = square + (float(np.trace(square)) * PRESSURES)[:, None, None] * cap
    top = float(np.linalg.eigvalsh(forms)[:, -1].min())
    return float((np.sqrt(max(top, 0.0)) + extra) ** 2)
