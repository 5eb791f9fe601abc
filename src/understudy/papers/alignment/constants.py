"""Claim `constants`: the constants M and M₂ of Lemmas 5 and 6, and the radius r' of Lemma 6.

On the boundary ∂E_j of a node, another node with angle θ is within q = 5ε/|c_j| of its own boundary in a plank of
width 2q/sin θ (the part of space between two parallel planes). Alternative (2) of Lemma 5 says that these planks do not
cover a ball of radius r in ∂E_j.
"""

from typing import Any

import numpy as np

from understudy.papers.check import at_least, at_most, close, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

RADIUS = 1.0
GRID = 20_001  # points on a line through the ball


def constants(dim: int, nodes: int, epsilon: float, first: float, delta: float, radius: float, farthest: float) -> Any:
    """The two bounds of Lemma 5 for |c_j| = 1: of sin θ, MKε^(1-δ), and of |b' - b|, M₂ε^(1-2δ)."""
    m = 10 * first**delta / radius * np.sqrt(dim / (2 * np.pi))
    m2 = 2 * farthest * m * nodes * first**delta + 5 * first ** (2 * delta)
    return m * nodes * epsilon ** (1 - delta), m2 * epsilon ** (1 - 2 * delta)


def _covered(sine: float, others: int, dim: int, epsilon: float) -> bool:
    """Whether parallel planks of `others` nodes at this angle, side by side, cover the ball.

    Then every point of it is within 5ε of the boundary of one of these nodes.

    Node j has its boundary at x_d = 0. The others turn towards x_1. A line along x_1 decides, because
    the planks are parallel and the ball lies between x_1 = -r and x_1 = r.
    """
    weights = np.zeros((others, dim))
    weights[:, 0], weights[:, -1] = sine, np.sqrt(1 - sine**2)
    biases = -sine * RADIUS * (2 * (np.arange(others) + 0.5) / others - 1)
    line = np.zeros((GRID, dim))
    line[:, 0] = np.linspace(-RADIUS, RADIUS, GRID)
    near = np.abs(line @ weights.T + biases).min(axis=1)
    return bool(np.all(near <= 5 * epsilon * (1 + 1e-12)))


def _largest_factor(dim: int, nodes: int, epsilon: float, first: float, delta: float) -> float:
    """The largest factor of M with which planks at the lemma's angle still cover the ball: below it Lemma 5 fails."""
    angle = constants(dim, nodes, epsilon, first, delta, RADIUS, RADIUS)[0]
    low, high = 1e-6, 4.0
    for _ in range(50):
        middle = np.sqrt(low * high)
        covered = middle * angle < 1 and _covered(middle * angle, nodes - 1, dim, epsilon)
        low, high = (middle, high) if covered else (low, middle)
    return float(low)


def _random_case(rng: np.random.Generator, dim: int, epsilon: float, first: float, delta: float) -> tuple[bool, bool]:
    """Random nodes that face as node j does, with angles and biases about the bounds: alternatives (1) and (2).

    (2) is decided by points of the ball, so a case that only points between them would decide counts as failed.
    """
    nodes = int(rng.integers(2, 9))
    shift = rng.normal(size=dim - 1)
    shift *= 3 * rng.uniform() / np.linalg.norm(shift)
    farthest = float(np.linalg.norm(shift) + RADIUS)
    angle, bias = constants(dim, nodes, epsilon, first, delta, RADIUS, farthest)
    sines = np.minimum(angle * np.exp(rng.uniform(-3, 3, size=nodes - 1)), 0.99)
    turned = rng.normal(size=(nodes - 1, dim - 1))
    turned *= (sines / np.linalg.norm(turned, axis=1))[:, None]
    centre = shift + rng.uniform(-1, 1) * RADIUS * turned[0] / np.linalg.norm(turned[0])
    biases = -turned @ centre + bias * np.exp(rng.uniform(-8, 2, size=nodes - 1)) * rng.choice([-1, 0, 1], nodes - 1)
    first_holds = bool(np.any((sines <= angle) & (np.abs(biases) <= bias)))
    directions = rng.normal(size=(4000, dim - 1))
    directions *= (
        RADIUS * rng.uniform(size=(4000, 1)) ** (1 / (dim - 1)) / np.linalg.norm(directions, axis=1, keepdims=True)
    )
    away = np.abs((shift + directions) @ turned.T + biases).min(axis=1)
    return first_holds, bool(np.any(away > 5 * epsilon))


def _beyond_bias(dim: int, nodes: int, epsilon: float, first: float, delta: float) -> float:
    """Nodes at the largest angle of alternative (1) with a bias just beyond M₂: least |w'·x| on the ball over 5ε.

    The ball lies where w' - w makes up for as much of the bias as it can: at distance M₀, where w' turns to.
    """
    farthest = 10.0
    angle, bias = constants(dim, nodes, epsilon, first, delta, RADIUS, farthest)
    sine = min(angle, 1.0)
    reach = np.linspace(farthest - 2 * RADIUS, farthest, GRID)
    return float(np.min(np.abs(bias - sine * reach)) / (5 * epsilon))


def _small_combination(rng: np.random.Generator, gap: float, others: int) -> dict[str, float]:
    """Lemma 6 on a disk: the least sup |σ(w_1·x) + Σ c_k σ(w_k·x) + affine|, by linear programming, for node 2 at `gap`
    from node 1 and further random nodes; then sin θ and |b' - b| of the best node over the lemma's bounds.

    With ε₀ = ε the powers of δ cancel. The sup is taken again on a finer grid.
    """
    from scipy.optimize import linprog

    angle = np.array([0.0, gap, *rng.uniform(0.3, np.pi / 2, size=others)])
    biases = np.array([0.3, 0.3 + gap * rng.uniform(-1, 1), *rng.uniform(-0.5, 0.5, size=others)])
    weights = np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def features(count: int) -> Any:
        line = np.linspace(-1, 1, count)
        x = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
        x = x[np.sum(x**2, axis=1) < 1]
        return np.concatenate([np.maximum(x @ weights.T + biases, 0), x, np.ones((len(x), 1))], axis=1)

    coarse = features(31)
    size = coarse.shape[1]
    rows = np.concatenate([coarse[:, 1:], -coarse[:, 1:]])
    bounded = np.concatenate([rows, -np.ones((len(rows), 1))], axis=1)
    target = np.concatenate([-coarse[:, 0], coarse[:, 0]])
    cost = np.zeros(size)
    cost[-1] = 1
    found = linprog(cost, A_ub=bounded, b_ub=target, bounds=[(None, None)] * (size - 1) + [(0, None)], method="highs")
    fine = features(201)
    epsilon = float(np.max(np.abs(fine[:, 0] + fine[:, 1:] @ found.x[:-1])))
    radius = float(np.sqrt(1 - 0.3**2)) - 5 * epsilon  # half the chord of ∂E_1 in the disk, as the lemma shortens it
    bound, apart = constants(2, len(angle), epsilon, epsilon, 0.0, radius, 1.0)
    worst = np.maximum(np.sin(angle[1:]) / bound, np.abs(biases[1:] - biases[0]) / apart)
    return {"epsilon": epsilon, "radius": radius, "ratio": float(worst.min()), "bound": bound}


def _thin_slab(settings: Settings) -> dict[str, float]:
    """|σ(x_1) - x_1/2| ≤ ε in the slab |x_1| < 2ε, |x_2| < r: a second node at a right angle is the only other one."""
    epsilon, first, delta = settings["epsilon"], settings["epsilon_0"], settings["delta"]
    x = np.linspace(-2 * epsilon, 2 * epsilon, 1001)
    largest = float(np.max(np.abs(np.maximum(x, 0) - x / 2)))
    bound = constants(2, 2, epsilon, first, delta, RADIUS - 5 * epsilon, RADIUS)[0]
    return {"largest |h| over ε": largest / epsilon, "sin θ": 1.0, "its bound": float(bound)}


def _measure(settings: Settings, progress: Progress) -> Measurement:
    epsilon, first, delta = settings["epsilon"], settings["epsilon_0"], settings["delta"]
    pairs = [(dim, nodes) for dim in settings["dims"] for nodes in settings["nodes"]]
    factors = np.array([_largest_factor(d, k, epsilon, first, delta) for d, k in progress.over(pairs, "d, K =")])
    predicted = np.array([(k - 1) / k * (epsilon / first) ** delta * np.sqrt(np.pi / (2 * d)) for d, k in pairs])
    at_first = np.array([_largest_factor(d, k, first, first, delta) for d, k in pairs])
    rng = np.random.default_rng([5, 6])
    cases = [_random_case(rng, d, epsilon, first, delta) for d in settings["dims"] for _ in range(settings["cases"])]
    neither = sum(not (a or b) for a, b in cases)
    beyond = [_beyond_bias(d, k, epsilon, first, delta) for d, k in pairs]
    small = [
        _small_combination(rng, gap, others)
        for gap in settings["gaps"]
        for others in range(3)
        for _ in range(settings["programs"])
    ]
    telling = [found["ratio"] for found in small if found["radius"] > 0 and found["bound"] < 0.5]
    slab = _thin_slab(settings)
    return Measurement(
        checks=[
            at_most("Lemma 5: factor of M at which planks side by side cover the ball", at_first, bound=1.0),
            at_most("Lemma 5: random nodes that face alike for which neither alternative holds", neither, bound=0),
            at_least("Lemma 5: of these cases, decided by (2) alone", sum(b and not a for a, b in cases), bound=50),
            at_least("Lemma 5: bias just beyond M₂: least |w'·x| on the ball over 5ε/|c|", beyond, bound=1.0),
            at_least("Lemma 6: programs in which the bound of sin θ is below ½", len(telling), bound=5),
            at_most("Lemma 6: sin θ and |b' - b| of the best node over their bounds", telling, bound=1.0),
            close(
                "sharp constant: that factor against ((K-1)/K)(ε/ε₀)^δ √(π/2d)", predicted, factors, 2e-3, relative=True
            ),
        ],
        measured={
            "random cases: (1), (2) only": [sum(a for a, _ in cases), sum(b and not a for a, b in cases)],
            "factor of M at ε = ε₀, largest over d and K": float(at_first.max()),
            "Lemma 6: largest ratio": float(max(telling)),
            "Lemma 6: programs": f"{len(telling)} of {len(small)} with a bound below ½",
            "least |w'·x| over 5ε beyond M₂": float(min(beyond)),
            "thin slab": slab,
        },
        printed=[
            holds(
                "Lemma 6 with r' = r - 5ε/|c| in a slab of half-width 2ε/|c|: the other node is close",
                bool(slab["largest |h| over ε"] <= 1 + 1e-12 and slab["sin θ"] <= slab["its bound"]),
                slab,
            )
        ],
        erratum_note=(
            "r' = r - 5ε/|c_j| takes for granted that R reaches as far across the boundary as along it. In a slab of "
            "half-width 2ε/|c_j| a single node and a linear function cancel to ε. The proof itself uses a ball inside "
            "Ω_j, and with its radius as r' the lemma holds. Thm 5 is not touched: R is fixed there while ε → 0."
        ),
        notes=(
            "By Bang's theorem planks that cover a ball of radius r have total width 2r or more, so parallel planks "
            "are the worst case: M = 5ε₀^δ/r is enough in every dimension, and no smaller constant is enough for all K."
        ),
    )


CLAIM = Claim(
    paper="alignment",
    id="constants",
    where="Lemmas 5, 6, App. 9.7-9.8",
    statement=(
        "With M = (10ε₀^δ/r)√(d/2π) and M₂ = 2M₀MKε₀^δ + 5ε₀^(2δ) a node has either another one with sin θ ≤ "
        "MKε^(1-δ)/|c| and |b' - b| ≤ M₂ε^(1-2δ)/|c|, or a point of its boundary farther than 5ε/|c| from all others; "
        "a combination of nodes that is at most ε on R has such a pair, with r' = r - 5ε/|c|."
    ),
    paper_value="M = (10ε₀^δ/r)√(d/2π), M₂ = 2M₀MKε₀^δ + 5ε₀^(2δ)",
    measured_by=(
        "Planks that cover as much of the ball as they can, random nodes about the bounds, nodes just beyond M₂; least "
        "combinations on a disk by linear programming; a thin slab."
    ),
    tolerance="inequalities; 2e-3 on the sharp factor",
    tolerance_reason="A line of 20,001 points resolves 1e-4 of the ball, and up to 100 planks lie side by side.",
    quick={
        "dims": [2, 3, 10], "nodes": [2, 5, 20], "epsilon": 1e-4, "epsilon_0": 0.01, "delta": 0.1, "cases": 100,
        "gaps": [1e-3, 1e-2], "programs": 1,
    },
    full={
        "dims": [2, 3, 5, 10, 50], "nodes": [2, 5, 20, 100], "epsilon": 1e-4, "epsilon_0": 0.01, "delta": 0.1,
        "cases": 1000, "gaps": [3e-4, 1e-3, 3e-3, 1e-2], "programs": 10,
    },
    measure=_measure,
)  # fmt: skip
