"""Reference values of E[s'(x₁) s'(x₂) s(x₃) s(x₄)], s(x) = erf(x/√2), x ~ N(0, C), to 30 digits: `fourfold.json`.

Route: given (x₃, x₄) the pair (x₁, x₂) is N(Bz, S), z the whitened (x₃, x₄), and with s'(x) = √(2/π) e^(-x²/2)

    E[s'(x₁) s'(x₂) | z] = (2/π) det(1 + S)^(-½) exp(-½ (Bz)ᵀ(1 + S)⁻¹ Bz),

which leaves a plane integral over z of erf(x₃/√2) erf(x₄/√2), by the trapezoid rule. (The library conditions the other way
round, on vanishing x₁ + noise and x₂ + noise.) The integrand's Fourier transform falls like exp(-k²/2c) with c the
variances and widths together, so that a step of 2π/√(150c) leaves 30 digits; each value is computed with two steps, which must
agree to 1e-28.

`python -m scripts.references.fourfold` writes the file (about five minutes).
"""

import json
from pathlib import Path

import numpy as np
from mpmath import mp, mpf

FILE = Path(__file__).parents[2] / "tests" / "references" / "fourfold.json"
DIGITS = 30


def cases() -> list[list[list[float]]]:
    """Vectors whose Gram matrix is C, with three decimals, so that C is singular exactly where it is meant to be: random
    ones of every rank, identical neurons, zero norms, and small and large ones.
    """
    rng = np.random.default_rng(23)
    found = []
    for rank in (1, 2, 3, 4, 6):
        for scale in (0.3, 1.0, 1.7):
            for _ in range(3):
                found.append(np.round(scale / np.sqrt(rank) * rng.normal(size=(4, rank)), 3))
    for picked in ([0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 2, 2]):
        found.append(np.round(rng.normal(size=(3, 3)), 3)[picked])
    for zero in ([0], [2], [0, 2], [0, 1, 2, 3]):
        vectors = np.round(rng.normal(size=(4, 4)), 3)
        vectors[zero] = 0
        found.append(vectors)
    found += [0.001 * np.eye(4), np.eye(4), 2.0 * np.eye(4)]
    return [vectors.tolist() for vectors in found]


def integrate(vectors: list[list[float]], finer: float) -> mpf:
    """The average by the trapezoid rule with a step that is `finer` times what 30 digits need."""
    exact = mp.matrix([[mpf(str(x)) for x in row] for row in vectors])
    k = exact * exact.T
    root, rest = _factor(k)
    s = k[0:2, 0:2] - rest * rest.T + mp.eye(2)
    inverse, determinant = mp.inverse(s), mp.det(s)
    shape = rest.T * inverse * rest + mp.eye(2)
    width = k[2, 2] + k[3, 3] + shape[0, 0] + shape[1, 1] - 1
    step = 2 * mp.pi / mp.sqrt(150 * width) / finer
    count = int(mp.ceil(mpf(12.5) / step))
    nodes = [step * i for i in range(-count, count + 1)]
    result = mpf(0)
    half = mp.sqrt(mpf(1) / 2)
    for z1 in nodes[count:]:  # the integrand is even in z
        weight = 1 if z1 == 0 else 2
        first = mp.erf(root[0, 0] * z1 * half)
        if first == 0:
            continue
        row = mpf(0)
        for z2 in nodes:
            exponent = shape[0, 0] * z1**2 + 2 * shape[0, 1] * z1 * z2 + shape[1, 1] * z2**2
            row += mp.exp(-exponent / 2) * mp.erf((root[1, 0] * z1 + root[1, 1] * z2) * half)
        result += weight * first * row
    return result * step**2 / (2 * mp.pi) * 2 / mp.pi / mp.sqrt(determinant)


def _factor(k: mp.matrix) -> tuple[mp.matrix, mp.matrix]:
    """(x₃, x₄) = root z with root lower triangular, and (x₁, x₂) = rest z + what is independent of z."""
    tiny = mpf(10) ** -25
    root, rest = mp.zeros(2), mp.zeros(2)
    root[0, 0] = mp.sqrt(k[2, 2])
    if k[2, 2] > 0:
        root[1, 0] = k[2, 3] / root[0, 0]
        for i in (0, 1):
            rest[i, 0] = k[i, 2] / root[0, 0]
    left = k[3, 3] - root[1, 0] ** 2
    if left > tiny:
        root[1, 1] = mp.sqrt(left)
        for i in (0, 1):
            rest[i, 1] = (k[i, 3] - rest[i, 0] * root[1, 0]) / root[1, 1]
    return root, rest


def main() -> None:
    """Compute every case twice and write the file."""
    mp.dps = 36
    points = []
    for vectors in cases():
        value, again = integrate(vectors, 1.0), integrate(vectors, 1.13)
        if abs(value - again) > mpf(10) ** -28:
            raise ArithmeticError(f"Two steps disagree by {mp.nstr(abs(value - again), 3)} at {vectors}.")
        points.append({"vectors": vectors, "value": mp.nstr(again, DIGITS)})
        print(len(points), points[-1]["value"], flush=True)
    FILE.write_text(json.dumps({"digits": DIGITS, "points": points}, indent=1) + "\n")


if __name__ == "__main__":
    main()
