"""Reference values with biases: E[s₁ᵃ(b₁ + x) s₂ᵇ(b₂ + y)] to 30 digits, `python -m scripts.references.biases`.

*Line.* As in the package's text, with s₁ smoothed: the integrand has a kink or a fast change where either argument
vanishes, so that the line is cut there and every part summed by the tanh-sinh rule. Where both neurons are kinked, the
derivatives of s₁ from the second on come from the same formulas with the neurons exchanged. At |u| = 1 a smoothed kink is
a kink: its second derivative vanishes off the kink and does not exist on it.

*Square.* Two functions of the logistic family: the trapezoid rule in both standard Gaussian variables, whose error
is about exp(a²/2 - 2πa/h) for the step h and the distance a of the poles. It is summed in Arb's numbers (python-flint).
The same rule in one variable gives what a function of the family is on average at the other neuron's kink.

Every number is computed twice, with the step divided by 1.3, and must agree to 1e-20 of the sum of absolute values. Both
rules converge exponentially: the finer one, which is stored, is then exact to about 1e-26.
"""

import itertools
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

from flint import arb, ctx
from mpmath import mp, mpf

from scripts.references.activations import find_derivatives, find_smoothing, split_name
from scripts.references.quantities import KINK, NEGLIGIBLE, Table

PATH = Path(__file__).resolve().parents[2] / "tests" / "references" / "biased_interactions.json"
ORDERS = [(a, b) for a in range(5) for b in range(5 - a)]
NAMES = ["erf", "relu", "abs", "linear", "quadratic", "hermite:3", "hermite:4"]
NAMES += ["gelu", "silu", "softplus", "sigmoid", "tanh"]
PAIRS = [*((name, name) for name in NAMES), ("erf", "relu"), ("gelu", "abs"), ("erf", "tanh"), ("relu", "abs")]
PAIRS += [("sigmoid", "tanh"), ("relu", "softplus")]
DIGITS, WORKING_DIGITS, TOLERANCE, REACH = 30, 40, mpf("1e-20"), mpf(13)
UNSEEN = mpf("1e-400")
"""No float64 differs from zero by this much; numbers below it are stored as zero."""

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
    c = (find_smoothing(first) or smooth_logistic(first))(mean, sigma)
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


def logistic_family(name: str) -> Callable[[arb], list[arb]]:
    """The function x ↦ [s(x), s'(x), …, s''''(x)] of the logistic family, from one exponential, in Arb's numbers."""
    family, slope = split_name(name)
    inner, outer = {"tanh": (2, 2), "sigmoid": (1, 1), "softplus": (1, 1), "silu": (1, 1)}[family]

    def derive(x: arb) -> list[arb]:
        z = inner * x
        negative = z < 0
        small = (z if negative else -z).exp()
        below = 1 / (1 + small)
        p, d = (small * below if negative else below), small * below * below
        bend = d * (1 - 2 * p)
        rows = [d, bend, d * (1 - 6 * d), bend * (1 - 12 * d)]
        if family == "softplus":
            return [(arb(0) if negative else z) + small.log1p(), p, *rows[:3]]
        if family == "silu":  # x p: by Leibniz' rule m p⁽ᵐ⁻¹⁾ + x p⁽ᵐ⁾
            return [x * p, *(m * one + x * row for m, one, row in zip(range(1, 5), [p, *rows[:3]], rows, strict=True))]
        value = 2 * p - 1 if family == "tanh" else p
        return [value, *(outer * inner**order * row for order, row in enumerate(rows, start=1))]

    if slope != 1:
        raise ValueError(f"The references with biases have slope 1; received {name}.")
    return derive


def trapezoid(h: arb) -> list[tuple[arb, arb]]:
    """Nodes and Gaussian weights of the trapezoid rule of step h, up to 12 standard deviations."""
    count, root = int(12 / float(h)), (2 * arb.pi()).sqrt()
    return [(k * h, h * (-((k * h) ** 2) / 2).exp() / root) for k in range(-count, count + 1)]


def find_step(*distances: float) -> float:
    """The step that leaves e^-76 for poles at these distances from the real line; beyond 14 they do not matter."""
    return min([0.45, *(2 * math.pi * d / (76 + d**2 / 2) for d in (min(d, 14.0) for d in distances))])


def find_pole(name: str) -> float:
    """The distance of the poles of the logistic family from the real line."""
    return math.pi / 2 if split_name(name)[0] == "tanh" else math.pi


def to_mpf(x: arb) -> mpf:
    """The middle of a ball."""
    return mpf(x.mid().str(40, radius=False))


def smooth_logistic(name: str) -> Callable[[mpf, mpf], list[mpf]]:
    """The function (m, σ) ↦ E[s⁽ʲ⁾(m + σz)], j = 0…4, of the logistic family by the trapezoid rule."""
    derive = logistic_family(name)

    def smooth(mean: mpf, sigma: mpf) -> list[mpf]:
        ctx.prec = 160
        m, s = arb(mp.nstr(mean, 45)), arb(mp.nstr(sigma, 45))
        rule = trapezoid(arb(find_step(find_pole(name) / float(sigma)) / 1.3)) if sigma else [(arb(0), arb(1))]
        rows = [[weight * f for f in derive(m + s * z)] for z, weight in rule]
        return [to_mpf(sum(column, arb(0))) for column in zip(*rows, strict=True)]

    return smooth


def integrate_square(first: str, second: str, point: Point, stretch: mpf) -> tuple[Table, Table]:
    """Both of the logistic family, in both Gaussian variables; in Arb's numbers, which are faster than mpmath's."""
    ctx.prec = 160
    r1, r2, u, b1, b2 = map(arb, point)
    across, one, two = ((1 - u) * (1 + u)).sqrt(), logistic_family(first), logistic_family(second)
    pole1, pole2 = find_pole(first), find_pole(second)

    def rule(*distances: float) -> list[tuple[arb, arb]]:
        return trapezoid(arb(find_step(*distances) / float(stretch)))

    far1, far2, wide = float(r1 * abs(u)), float(r2), float(r1 * across)
    rows = rule(pole1 / wide) if wide else [(arb(0), arb(1))]
    shifted = [(r1 * across * z, weight) for z, weight in rows]
    sums, sizes = dict.fromkeys(ORDERS, arb(0)), dict.fromkeys(ORDERS, arb(0))
    for t, weight in rule(*(pole / r for pole, r in ((pole1, far1), (pole2, far2)) if r)):
        c, size, mean = [arb(0)] * 5, [arb(0)] * 5, b1 + r1 * u * t
        for z, inner in shifted:
            for a, f in enumerate(one(mean + z)):
                c[a] += inner * f
                size[a] += inner * abs(f)
        d = two(b2 + r2 * t)
        for a, b in ORDERS:
            sums[a, b] += weight * c[a] * d[b]
            sizes[a, b] += weight * size[a] * abs(d[b])
    found, size = ({key: to_mpf(x) for key, x in part.items()} for part in (sums, sizes))
    return found, size


def integrate(first: str, second: str, point: Point, stretch: mpf) -> tuple[Table, Table]:
    """E[s₁ᵃ s₂ᵇ] for all orders by the route that fits the pair, and the sums of absolute values."""
    if find_smoothing(first) is None:
        return integrate_square(first, second, point, stretch)
    step = mpf("0.03" if first in KINK else "0.04") / stretch
    sums, sizes = integrate_line(first, second, point, step)
    if second in KINK:
        sums |= at_kink(first, second, point)
    if first in KINK:
        r1, r2, u, b1, b2 = point
        exchanged = at_kink(second, first, (r2, r1, u, b2, b1))
        # At |u| = 1 the smoothed kink of the line is a kink, and its second derivative is missed there.
        sums |= {(b, a): x for (a, b), x in exchanged.items() if (b, a) != (2, 2) or second not in KINK}
    return sums, sizes


def compute_case(first: str, second: str) -> dict:
    """All points of one pair as they are stored."""
    points = []
    for point in list_points():
        with mp.workdps(WORKING_DIGITS):
            (fine, sizes), (coarse, _) = (integrate(first, second, point, mpf(s)) for s in ("1.3", "1"))
            fine = {order: mpf(0) if x is not None and abs(x) < UNSEEN else x for order, x in fine.items()}
            for order, x in fine.items():
                if x and abs(x - coarse[order]) > TOLERANCE * max(sizes[order], abs(x)):
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
