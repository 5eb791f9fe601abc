"""Second routes to the stored values: closed forms, direct integration, other steps."""

import json
import random

from mpmath import mp, mpf

from scripts.references.activations import find_derivatives, find_smoothing, list_coefficients, split_name
from scripts.references.cases import compute_quantities
from scripts.references.quantities import DIGITS, KINK, ORDERS, PATH, QUANTITIES, WORKING_DIGITS


def compare(label: str, ours: mpf, theirs: mpf, tolerance: float) -> None:
    """Raise if two numbers differ by more than a relative tolerance, or an absolute one below 1."""
    error = abs(ours - theirs) / max(abs(theirs), mpf(1))
    if error > tolerance:
        raise ArithmeticError(f"{label}: {mp.nstr(ours, 30)} against {mp.nstr(theirs, 30)}, error {mp.nstr(error, 3)}")


def check_sample(cases: list[dict], size: int, generator: random.Random) -> None:
    """Stored numbers against a second computation with another step and another period."""
    for _ in range(size):
        case = generator.choice(cases)
        stored = generator.choice(case["points"])
        pair, point = (case["activation"], case["activation2"]), (stored["r1"], stored["r2"], stored["u"])
        numbers, _ = compute_quantities(*pair, point, fineness=1.13)
        for name, number in numbers.items():
            if (number is None) != (stored[name] is None):
                raise ArithmeticError(f"{pair} at {point}: {name} is {number} but {stored[name]} is stored")
            if number is None:
                continue
            error = abs(number - mpf(stored[name]))
            if error > mpf(10) ** (2 - DIGITS) * abs(number):
                raise ArithmeticError(f"{pair} at {point}: {name} is {number}, {stored[name]} is stored")
        print(f"  sample {pair} at {point}", flush=True)


def check_closed_forms(cases: list[dict]) -> None:
    """Stored erf and relu at interior points against their closed forms, differentiated numerically.

    erf: G = (2/π) asin(q₁₂/√((1 + q₁₁)(1 + q₂₂))) (Williams 1997). relu: G = r₁r₂(sin θ + (π - θ) cos θ)/2π,
    cos θ = u, the arc-cosine kernel of order 1 (Cho & Saul 2009).
    """

    def erf_form(q11: mpf, q12: mpf, q22: mpf) -> mpf:
        return 2 / mp.pi * mp.asin(q12 / mp.sqrt((1 + q11) * (1 + q22)))

    def relu_form(q11: mpf, q12: mpf, q22: mpf) -> mpf:
        root = mp.sqrt(q11 * q22 - q12**2)
        return (root + (mp.pi - mp.atan2(root, q12)) * q12) / (2 * mp.pi)

    partial = {
        "q11": (1, 0, 0), "q12": (0, 1, 0), "q22": (0, 0, 1), "q11q11": (2, 0, 0), "q11q12": (1, 1, 0),
        "q12q12": (0, 2, 0), "q12q22": (0, 1, 1), "q22q22": (0, 0, 2),
    }  # fmt: skip
    for case in cases:
        form = {"erf": erf_form, "relu": relu_form}.get(case["activation"])
        if form is None or case["activation2"] != case["activation"]:
            continue
        for stored in case["points"]:
            r1, r2, u = mpf(stored["r1"]), mpf(stored["r2"]), mpf(stored["u"])
            q = (r1**2, r1 * r2 * u, r2**2)
            label = f"{case['activation']} at {(stored['r1'], stored['r2'], stored['u'])}"
            compare(label, mpf(stored["value"]), form(*q), 1e-28)
            if min(r1, r2) < 0.01 or abs(u) > 0.9999:
                continue  # the differences of the numerical derivative would leave the cone
            for name, order in partial.items():
                # mp.diff raises its precision to make up for the small step
                expected = mp.diff(form, q, order, h=mpf("1e-30"))
                compare(f"{label}, {name}", mpf(stored[name]), expected, 1e-18)
    print("  closed forms of erf and relu, with numerical derivatives", flush=True)


def check_direct(cases: list[dict]) -> None:
    """Stored numbers of smooth pairs of slope β at some points with βr ≤ 1 against direct integration.

    The trapezoid rule on (z₁, z₂) ~ N(0, 1), x = r₁z₁, y = r₂(uz₁ + √(1-u²)z₂). tanh(βx) has its poles at a
    distance π/2βr in z, so that the error is exp(-π²/βrh), 1e-28 for h = 0.15, times (2π/h)⁴ = 1e6 for the
    fourth derivative. The cut at |z| = 9.9 costs 1e-21. For u = ±1 the second variable drops out.
    """
    step = mpf("0.15")
    nodes = [k * step for k in range(-66, 67)]
    weights = [step * mp.npdf(z) for z in nodes]
    with mp.workdps(30):
        for case in cases:
            first, second = case["activation"], case["activation2"]
            if {first, second} & {*KINK} or (list_coefficients(first) and list_coefficients(second)):
                continue
            slope = max(1 if list_coefficients(name) else split_name(name)[1] for name in (first, second))
            chosen = [
                point
                for point in case["points"]
                if min(point["r1"], point["r2"]) > 0.01
                and slope * max(point["r1"], point["r2"]) <= 1
                and point["u"] in (-1, -0.95, 0.1, 0.95, 1)
            ]
            derive1, derive2 = find_derivatives(first), find_derivatives(second)
            for stored in chosen:
                r1, r2, u = mpf(stored["r1"]), mpf(stored["r2"]), mpf(stored["u"])
                width = mp.sqrt((1 - u) * (1 + u))
                others = list(zip(nodes, weights, strict=True)) if width else [(mpf(0), mpf(1))]
                sums = dict.fromkeys(ORDERS, mpf(0))
                for z1, w1 in zip(nodes, weights, strict=True):
                    left, inner = derive1(r1 * z1), [mpf(0)] * 5
                    for z2, w2 in others:
                        if w1 * w2 > 1e-24:
                            right = derive2(r2 * (u * z1 + width * z2))
                            inner = [total + w2 * d for total, d in zip(inner, right, strict=True)]
                    for a, b in ORDERS:
                        sums[a, b] += w1 * left[a] * inner[b]
                for name, (a, b, factor) in QUANTITIES.items():
                    label = f"({first}, {second}) at {(stored['r1'], stored['r2'], stored['u'])}, {name}"
                    compare(label, mpf(stored[name]), sums[a, b] * factor.numerator / factor.denominator, 1e-17)
            print(f"  direct integration of ({first}, {second}) at {len(chosen)} points", flush=True)


def check_lattice_line(cases: list[dict]) -> None:
    """The logistic family at |u| = 1, all norms, against the line: ∫ φ(t) sᵃ(r₁t) sᵇ(±r₂t) dt."""
    for case in cases:
        name = case["activation"]
        if find_smoothing(name) or case["activation2"] != name:
            continue
        derive, slope = find_derivatives(name), split_name(name)[1]
        for stored in case["points"]:
            r1, r2, u = mpf(stored["r1"]), mpf(stored["r2"]), mpf(stored["u"])
            if abs(u) != 1:
                continue
            left = -mp.log(1 + slope * max(r1, r2)) - 3
            sums, step = dict.fromkeys(ORDERS, mpf(0)), mpf("0.03")
            for k in range(int((mp.log(17) - left + 5) / step)):
                v = left - 5 + k * step
                decay = mp.exp(left - v)
                t = mp.exp(v - decay)
                for s in (t, -t):
                    c, d = derive(r1 * s), derive(r2 * u * s)
                    for a, b in ORDERS:
                        sums[a, b] += step * mp.npdf(t) * t * (1 + decay) * c[a] * d[b]
            for quantity, (a, b, factor) in QUANTITIES.items():
                label = f"{name} at {(stored['r1'], stored['r2'], stored['u'])}, {quantity}"
                expected = sums[a, b] * factor.numerator / factor.denominator
                compare(label, mpf(stored[quantity]), expected, 1e-28)
        print(f"  {name} on the line |u| = 1", flush=True)


def check(size: int, seed: int) -> None:
    """Compare the stored file with second routes; raises at the first disagreement."""
    cases = json.loads(PATH.read_text())["cases"]
    with mp.workdps(WORKING_DIGITS):
        check_closed_forms(cases)
        check_lattice_line(cases)
        check_direct(cases)
        check_sample(cases, size, random.Random(seed))
    print("all agree")
