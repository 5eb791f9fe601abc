"""Reference values with biases: E[s₁ᵃ(b₁ + x) s₂ᵇ(b₂ + y)] to 30 digits, `python -m scripts.references.biases`.

*Line.* As in the package's text, with s₁ smoothed: the integrand has a kink or a fast change where either argument
vanishes, so that the line is cut there and every part summed by the tanh-sinh rule. Where both neurons are kinked, the
derivatives of s₁ from the second on come from the same formulas with the neurons exchanged. At |u| = 1 a smoothed kink is
a kink: its second derivative vanishes off the kink and does not exist on it.

*Square.* Two functions of the logistic family: the trapezoid rule in both standard Gaussian variables, whose error
is exp(-2πa/h) for the step h and the distance a of the poles.

Every number is computed twice, with the step divided by 1.3, and must agree to 1e-20 of the sum of absolute values. Both
rules converge exponentially: the finer one, which is stored, is then exact to about 1e-26.
"""

import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from mpmath import mp, mpf

from scripts.references.activations import find_derivatives, find_smoothing, split_name
from scripts.references.quantities import KINK, NEGLIGIBLE, Table

PATH = Path(__file__).resolve().parents[2] / "tests" / "references" / "biased_interactions.json"
ORDERS = [(a, b) for a in range(5) for b in range(5 - a)]
NAMES = ["erf", "relu", "abs", "linear", "quadratic", "hermite:3", "hermite:4", "gelu", "softplus", "sigmoid", "tanh"]
PAIRS = [*((name, name) for name in NAMES), ("erf", "relu"), ("gelu", "abs"), ("erf", "tanh"), ("relu", "abs")]
DIGITS, WORKING_DIGITS, TOLERANCE, REACH = 30, 40, mpf("1e-20"), mpf(13)
Point = tuple[float, float, float, float, float]


def list_points() -> list[Point]:
    """(r₁, r₂, u, b₁, b₂): a moderate grid, tails, and degenerate ones."""
    cosines, biases = [-0.9, -0.4, 0.1, 0.5, 0.95], [-1.5, -0.5, 0.2, 0.9, 2.0]
    norms = [(0.3, 0.3), (0.6, 1.2), (1.0, 1.0), (1.5, 0.7), (2.0, 2.5)]
    grid = [
        (*pair, cosines[(2 * i + 3 * j) % 5], biases[(i + 2 * j) % 5], biases[(3 * i + j + 1) % 5])
        for i, pair in enumerate(norms)
        for j in range(4)
    ]
    near = 1 - 1e-10
    return [
        *grid,
        *(
            (1.0, 1.0, 1.0, 0.4, -0.3),
            (0.7, 1.4, 1.0, 0.5, 0.2),
            (1.0, 1.0, -1.0, 0.8, 0.3),
            (1.2, 0.5, -1.0, -0.4, 0.1),
        ),
        *((1.0, 1.0, near, 0.4, 0.4), (1.0, 1.5, -near, 0.3, 0.2), (1.0, 1.0, near, -0.7, 0.1)),
        *((1.0, 1.0, 1.0, 0.6, 0.6), (1.0, 2.0, 0.5, 0.0, 0.7), (1.0, 1.0, 0.0, -0.6, 0.3), (0.8, 0.8, 0.3, 0.0, -1.0)),
        *((0.0, 1.0, 0.0, 0.7, 0.3), (1.3, 0.0, 0.0, -0.4, -0.8), (0.0, 0.0, 0.0, 0.5, -0.2)),
        *((1e-6, 1.0, 0.5, 0.3, -0.4), (1e-6, 1e-6, 1.0, -0.2, -0.2)),
        *(
            (1.0, 1.0, 0.6, -6.0, -5.0),
            (1.0, 1.0, -0.7, -4.0, -3.0),
            (1.0, 1.0, -0.3, -8.0, 9.0),
            (0.5, 0.5, 0.9, -7.0, -7.0),
        ),
        *(
            (1.0, 2.0, 0.2, 12.0, -9.0),
            (1.0, 1.0, -0.95, -5.0, 4.0),
            (3.0, 3.0, 0.8, 2.0, -1.0),
            (0.1, 0.1, -0.5, 3.0, 3.0),
        ),
    ]


def sum_line(add: Callable, points: list[mpf], step: mpf) -> tuple[Table, Table]:
    """Sums of the summands that `add(t, weight, sums, sizes)` adds, by the tanh-sinh rule between the points."""
    sums, sizes = dict.fromkeys(ORDERS, mpf(0)), dict.fromkeys(ORDERS, mpf(0))
    for low, high in itertools.pairwise(points):
        half = (high - low) / 2
        for k in range(-int(mpf("4.1") / step), int(mpf("4.1") / step) + 1):
            s = k * step
            decay = mp.exp(-mp.pi * mp.sinh(abs(s)))  # distance from the nearer end, in units of the length
            share = decay / (1 + decay)
            t = high - 2 * half * share if s > 0 else low + 2 * half * share
            weight = step * half * mp.pi / 2 * mp.cosh(s) * 4 * share / (1 + decay)
            add(t, weight * mp.npdf(t), sums, sizes)
    return sums, sizes


def integrate_line(first: str, second: str, point: Point, step: mpf) -> tuple[Table, Table]:
    """E[s₁ᵃ s₂ᵇ] with s₁ smoothed; orders b ≥ 2 of a kinked s₂ are left at zero."""
    r1, r2, u, b1, b2 = map(mpf, point)
    sigma, smooth, derive = r1 * mp.sqrt((1 - u) * (1 + u)), find_smoothing(first), find_derivatives(second)
    zeros = [-b1 / (u * r1) if u * r1 else None, -b2 / r2 if r2 else None]
    if first in KINK and zeros[0] is not None and 0 < sigma < abs(u) * r1 / 10:  # the smoothed kink is narrow
        width = sigma / (abs(u) * r1)
        zeros += [zeros[0] + side * width * 12 * 100**k for side in (-1, 1) for k in range(2)]
    far = max((abs(z) for z in zeros if z is not None and abs(z) < 20), default=mpf(0))
    reach = max(REACH, far + 8)
    inside = sorted({z for z in (*zeros, mpf(-4), mpf(0), mpf(4)) if z is not None and abs(z) < reach})

    def add(t: mpf, weight: mpf, sums: Table, sizes: Table) -> None:
        c, d = smooth(b1 + u * r1 * t, sigma), derive(b2 + r2 * t)
        for a, b in ORDERS:
            if c[a] is not None and d[b] is not None:
                term = weight * c[a] * d[b]
                sums[a, b] += term
                sizes[a, b] += abs(term)

    return sum_line(add, [-reach, *inside, reach], step)


def at_kink(first: str, second: str, point: Point) -> Table:
    """Orders b ≥ 2 of a kinked s₂: derivatives of p(y) Cₐ(b₁ + κy, σ) at y = -b₂, p the density of y."""
    r1, r2, u, b1, b2 = map(mpf, point)
    if r2 == 0:
        missing = b2 == 0
        return {(a, b): None if missing else mpf(0) for a, b in ORDERS if b >= 2}
    kappa, variance, sigma = r1 * u / r2, r2**2, r1 * mp.sqrt((1 - u) * (1 + u))
    mean = b1 - kappa * b2
    c = find_smoothing(first)(mean, sigma)
    if sigma == 0 and first in KINK and mean != 0:
        c = [c[0], c[1], mpf(0), mpf(0), mpf(0)]
    p = KINK[second] * mp.npdf(b2 / r2) / r2
    slopes = [p, b2 / variance * p, (b2**2 / variance - 1) / variance * p]
    table: Table = {}
    for a, b in ORDERS:
        if b >= 2:
            terms = [(slopes[0], 0)], [(-slopes[1], 0), (-slopes[0] * kappa, 1)]
            terms += ([(slopes[2], 0), (2 * slopes[1] * kappa, 1), (slopes[0] * kappa**2, 2)],)
            parts = [(weight, c[a + more]) for weight, more in terms[b - 2]]
            missing = any(x is None and weight != 0 for weight, x in parts)
            table[a, b] = None if missing else sum((w * x for w, x in parts if x is not None), mpf(0))
    return table


def integrate_square(first: str, second: str, point: Point, stretch: mpf) -> tuple[Table, Table]:
    """Both of the logistic family, in both Gaussian variables."""
    r1, r2, u, b1, b2 = map(mpf, point)
    across, one, two = mp.sqrt((1 - u) * (1 + u)), find_derivatives(first), find_derivatives(second)
    pole1, pole2 = (mp.pi / 2 if split_name(name)[0] == "tanh" else mp.pi for name in (first, second))

    def step(*distances: mpf) -> mpf:
        return min([mpf("0.45"), *(2 * mp.pi * d / 60 for d in distances)]) / stretch

    outer = step(*(pole / r for pole, r in ((pole1, r1 * abs(u)), (pole2, r2)) if r))
    inner = step(pole1 / (r1 * across)) if r1 * across else None
    sums, sizes = dict.fromkeys(ORDERS, mpf(0)), dict.fromkeys(ORDERS, mpf(0))
    reach = mpf(12)
    rows = [mpf(0)] if inner is None else [k * inner for k in range(-int(reach / inner), int(reach / inner) + 1)]
    weights = [mpf(1)] if inner is None else [inner * mp.npdf(z) for z in rows]
    for k in range(-int(reach / outer), int(reach / outer) + 1):
        t = k * outer
        c, size = [mpf(0)] * 5, [mpf(0)] * 5
        for z, weight in zip(rows, weights, strict=True):
            for a, f in enumerate(one(b1 + r1 * (u * t + across * z))):
                c[a] += weight * f
                size[a] += abs(weight * f)
        d = two(b2 + r2 * t)
        for a, b in ORDERS:
            sums[a, b] += outer * mp.npdf(t) * c[a] * d[b]
            sizes[a, b] += outer * mp.npdf(t) * size[a] * abs(d[b])
    return sums, sizes


def integrate(first: str, second: str, point: Point, stretch: mpf) -> tuple[Table, Table]:
    """E[s₁ᵃ s₂ᵇ] for all orders by the route that fits the pair, and the sums of absolute values."""
    if find_smoothing(first) is None:
        return integrate_square(first, second, point, stretch)
    step = mpf("0.04") / stretch
    sums, sizes = integrate_line(first, second, point, step)
    if second in KINK:
        sums |= at_kink(first, second, point)
    if first in KINK:
        r1, r2, u, b1, b2 = point
        exchanged = at_kink(second, first, (r2, r1, u, b2, b1))
        sums |= {(b, a): x for (a, b), x in exchanged.items() if (b, a) != (2, 2)}
    return sums, sizes


def compute_case(first: str, second: str) -> dict:
    """All points of one pair as they are stored."""
    points = []
    for point in list_points():
        with mp.workdps(WORKING_DIGITS):
            (fine, sizes), (coarse, _) = (integrate(first, second, point, mpf(s)) for s in ("1.3", "1"))
            for order, x in fine.items():
                if x is not None and abs(x - coarse[order]) > TOLERANCE * max(sizes[order], abs(x)):
                    raise ArithmeticError(f"({first}, {second}) at {point}, order {order}: {x} and {coarse[order]}")
            fine = {
                order: mpf(0) if x is not None and abs(x) <= NEGLIGIBLE * sizes[order] else x
                for order, x in fine.items()
            }
            numbers = {f"{a}{b}": None if x is None else mp.nstr(x, DIGITS) for (a, b), x in fine.items()}
        points.append({**dict(zip(("r1", "r2", "u", "b1", "b2"), point, strict=True)), **numbers})
    return {"activation": first, "activation2": second, "points": points}


def main(only: list[str]) -> None:
    """Compute all pairs, or those named `first,second`, and write the file; the others are kept."""
    stored = json.loads(PATH.read_text())["cases"] if PATH.exists() else []
    cases = {(case["activation"], case["activation2"]): case for case in stored}
    for pair in PAIRS:
        if not only or ",".join(pair) in only:
            begin = time.perf_counter()
            cases[pair] = compute_case(*pair)
            lines = []
            for known in PAIRS:
                if known in cases:
                    head = f'"activation": "{known[0]}", "activation2": "{known[1]}"'
                    rows = ",\n   ".join(json.dumps(p) for p in cases[known]["points"])
                    lines.append(f'  {{{head}, "points": [\n   {rows}]}}')
            PATH.write_text(f'{{"digits": {DIGITS}, "cases": [\n' + ",\n".join(lines) + "]}\n")
            print(f"{pair}: {len(cases[pair]['points'])} points, {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
