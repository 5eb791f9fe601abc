"""What is computed, where, and how accurately: quantities, pairs of activations, points, digits."""

from fractions import Fraction
from pathlib import Path

from mpmath import mpf

PATH = Path(__file__).resolve().parents[2] / "tests" / "references" / "interactions.json"
DIGITS = 30
WORKING_DIGITS = 60  # 30, and 30 for cancellation: the worst is 25, of sigmoid at norm 1e-8 with hermite:3
TOLERANCE = mpf("1e-29")  # relative agreement asked of the two computations of each number
NEGLIGIBLE = mpf("1e-38")  # relative size below which a cancelling sum is taken for an exact zero
STEP = mpf("0.04")  # exp(-π²/2h) = 1e-53 in the full sector: enough for the coarse sum even where 25 digits cancel

# name: (a, b, factor) for factor · E[s₁ᵃ s₂ᵇ]
QUANTITIES = {
    "value": (0, 0, Fraction(1)),
    "q11": (2, 0, Fraction(1, 2)),
    "q12": (1, 1, Fraction(1)),
    "q22": (0, 2, Fraction(1, 2)),
    "q11q11": (4, 0, Fraction(1, 4)),
    "q11q12": (3, 1, Fraction(1, 2)),
    "q12q12": (2, 2, Fraction(1)),
    "q12q22": (1, 3, Fraction(1, 2)),
    "q22q22": (0, 4, Fraction(1, 4)),
}
ORDERS = [(a, b) for a, b, _ in QUANTITIES.values()]

SINGLES = [
    *("erf", "relu", "abs", "linear", "quadratic", "hermite:2", "hermite:3", "hermite:4", "hermite:8"),
    *("softplus", "softplus:2", "sigmoid", "tanh", "tanh:0.5", "tanh:5", "gelu"),
]
MIXED = [
    *(("erf", "relu"), ("tanh", "softplus"), ("sigmoid", "hermite:3"), ("gelu", "abs")),
    *(("relu", "abs"), ("erf", "tanh"), ("linear", "tanh"), ("quadratic", "softplus")),
]
PAIRS = [(name, name) for name in SINGLES] + MIXED
KINK = {"relu": 1, "abs": 2}  # s'' = KINK · δ
ODD = {"erf", "linear", "tanh"}

Table = dict[tuple[int, int], mpf | None]  # (a, b): E[s₁ᵃ s₂ᵇ]


def list_points() -> list[tuple[float, float, float]]:
    """The points (r₁, r₂, u) of every case: a moderate grid, then the degenerate ones."""
    norms = [
        (0.05, 0.05),
        (0.05, 1.3),
        (0.4, 0.7),
        (0.7, 0.7),
        (1.0, 1.0),
        (1.5, 0.4),
        (3.0, 0.05),
        (2.0, 3.0),
    ]
    cosines = [-0.95, -0.6, -0.25, 0.1, 0.45, 0.8, 0.95]
    grid = [(*pair, cosines[(3 * i + 2 * j) % 7]) for i, pair in enumerate(norms) for j in range(3)]
    near, nearer = 1 - 1e-6, 1 - 1e-12
    return [
        *grid,
        *((1.0, 1.0, 1.0), (0.7, 1.9, 1.0), (1.0, 1.0, -1.0), (1.3, 0.4, -1.0)),
        *((1.0, 1.0, nearer), (0.8, 1.7, nearer), (1.0, 1.0, -nearer), (1.7, 0.3, -nearer)),
        *((1.0, 1.0, near), (2.0, 0.5, near), (1.0, 1.0, -near)),
        *((1.0, 1.0, 0.0), (0.3, 2.0, 0.0), (3.0, 3.0, 0.0)),
        *((1.0, 0.0, 0.0), (0.0, 1.5, 0.0), (0.0, 0.0, 0.0)),
        *((1e-8, 1e-8, 0.5), (1e-8, 1e-8, 1.0), (1e-8, 1.0, 0.5), (1.0, 1e-8, -1.0)),
        *((10.0, 10.0, u) for u in (-1.0, -0.5, 0.3, 0.999, 1.0)),
        *((10.0, 0.1, 0.5), (10.0, 0.0, 0.0)),
        *((30.0, 30.0, u) for u in (-0.999, 0.0, 0.5, 1.0)),
        *((30.0, 1.0, 0.7), (0.5, 30.0, -0.9)),
    ]
