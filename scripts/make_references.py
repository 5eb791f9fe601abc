"""Reference values of the Gaussian interaction of two neurons, to 30 digits, by routes of their own.

For (x, y) ~ N(0, [[q₁₁, q₁₂], [q₁₂, q₂₂]]) with q₁₁ = r₁², q₂₂ = r₂², q₁₂ = r₁ r₂ u, the interaction is

    G(q₁₁, q₁₂, q₂₂) = E[s₁(x) s₂(y)].

The Gaussian density p solves the heat equations ∂p/∂q₁₁ = ½ ∂²p/∂x², ∂p/∂q₁₂ = ∂²p/∂x∂y, ∂p/∂q₂₂ = ½
∂²p/∂y² (Price's theorem: Price 1958, IRE Trans. Inf. Theory 4, 69-72; Simsek et al. 2023, Lemma F.1), so
that by parts, with sᵃ the a-th derivative in the sense of distributions,

    ∂₁₁G = ½ E[s₁²s₂⁰]      ∂₁₂G = E[s₁¹s₂¹]         ∂₂₂G = ½ E[s₁⁰s₂²]
    ∂₁₁∂₁₁G = ¼ E[s₁⁴s₂⁰]   ∂₁₁∂₁₂G = ½ E[s₁³s₂¹]    ∂₁₂∂₁₂G = E[s₁²s₂²]
    ∂₁₂∂₂₂G = ½ E[s₁¹s₂³]   ∂₂₂∂₂₂G = ¼ E[s₁⁰s₂⁴]

(∂₁₁∂₂₂G = ¼ E[s₁²s₂²] is a quarter of ∂₁₂∂₁₂G). Every E[s₁ᵃ s₂ᵇ] comes from one of three routes, none of
which uses a closed form of G:

*Moments.* Two polynomials: E[xⁱyʲ] by Isserlis' theorem in exact rational arithmetic. A float64 is a
rational number, hence the result is exact until it is rounded to 30 digits.

*Line.* s₁ is erf, relu, abs, gelu or a polynomial, whose smoothing Cₐ(m, σ) = E[s₁ᵃ(m + σz)], z ~ N(0, 1),
is elementary. With y = r₂t and x | t ~ N(r₁ut, r₁²(1 - u²)),

    E[s₁ᵃ s₂ᵇ] = ∫ φ(t) s₂ᵇ(r₂t) Cₐ(r₁ut, r₁√(1-u²)) dt,

by the trapezoid rule after t = ±exp(v - e^(v₀-v)) on each half-line. In v = log t the integrand is analytic
in |Im v| < π/4 whatever the scales are (φ, erf and tanh of a multiple of t are bounded in that sector), so
that the error is exp(-π²/2h) for the step h, down to the scale e^v₀ below which nothing happens and the map
is made to decay doubly exponentially (Takahasi & Mori 1974). Kinks sit at t = 0, the end of both
half-lines. Where s₂ is relu or abs, s₂² is a multiple k of δ, and with κ = r₁u/r₂ and p the density of y,

    E[s₁ᵃ δ⁽ⁿ⁾(y)] = (-1)ⁿ dⁿ/dyⁿ [p(y) Cₐ(κy, σ)] at y = 0,    with Cₐ' = Cₐ₊₁.

*Lattice.* Two functions of the logistic family, built on T = tanh or its primitive L = log 2cosh. T is
replaced by Σₙ (-1)ⁿ T(x - nH), which equals T(x) up to e^(-2(H-|x|)) and has, by Poisson summation, the
Fourier series

    Σⱼ cⱼ sin ωⱼx,   ωⱼ = (2j + 1)π/H,   cⱼ = (2π/H) / sinh(πωⱼ/2),

and L by its primitive. Then E[sin ωx sin νy] = e^(-(q₁₁ω² + q₂₂ν²)/2) sinh(q₁₂ων), and the same with cosh
for cosines: a double sum of positive terms, done in fixed-point integers. It needs no 1 - u² and holds at
|u| = 1.

Convergence is asserted at every point: each number is computed twice, with the step halved (line) or the
period stretched by 15 % and more bits (lattice), and the two must agree to `TOLERANCE` relative.

What does not exist is null. relu and abs (both neurons kinked): at |u| = 1 the second derivatives; where a
norm is zero everything but the value 0 and the derivative in the norm of the other, non-zero neuron, which
is 0. A single kinked neuron leaves G smooth at |u| = 1. If its own norm is zero the same holds as for two,
except when the other activation is odd: then E[s₁(x)|y|] = 0, G = ½ E[s₁(x) y] for relu, and all
derivatives exist. At zero norm q₁₂ cannot move alone; the derivatives are then those of the smooth
continuation, given by the expectations above.

Usage: python scripts/make_references.py [--workers 2] [--only NAME], or --check to recompute a random
sample with other steps and to compare with closed forms, direct integration and numerical differentiation.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from math import ceil, comb, factorial, log, log10
from operator import mul
from pathlib import Path

from mpmath import mp, mpf

PATH = Path(__file__).resolve().parent.parent / "tests" / "references" / "interactions.json"
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


# --- Activations ----------------------------------------------------------------------------------


def split_name(name: str) -> tuple[str, float]:
    """The family and the parameter of an activation's name; the slope 1 if there is none."""
    family, _, parameter = name.partition(":")
    return family, float(parameter or 1)


def list_coefficients(name: str) -> tuple[list[int], int] | None:
    """Coefficients of a polynomial activation and the square of its norm; None if it is another one."""
    family, parameter = split_name(name)
    if family == "linear":
        return [0, 1], 1
    if family == "quadratic":
        return [0, 0, 1], 1
    if family != "hermite":
        return None
    before, now, degree = [1], [0, 1], int(parameter)
    for n in range(1, degree):  # He_{n+1} = x He_n - n He_{n-1}
        after = [0, *now]
        for k, c in enumerate(before):
            after[k] -= n * c
        before, now = now, after
    return now, factorial(degree)


def differentiate(coefficients: list[int], order: int) -> list[int]:
    """Coefficients of the derivative of a polynomial."""
    for _ in range(order):
        coefficients = [k * c for k, c in enumerate(coefficients)][1:]
    return coefficients


def smooth_erf(m: mpf, sigma: mpf) -> list[mpf]:
    """Cₐ of erf(x/√2) = 2Φ(x) - 1: it is 2Φ(m/τ) - 1 with τ² = 1 + σ²."""
    tau = mp.sqrt(1 + sigma**2)
    w = m / tau
    bump = 2 * mp.npdf(w) / tau
    return [
        mp.erf(w / mp.sqrt(2)),
        bump,
        -w * bump / tau,
        (w**2 - 1) * bump / tau**2,
        (3 - w**2) * w * bump / tau**3,
    ]


def smooth_gelu(m: mpf, sigma: mpf) -> list[mpf]:
    """Cₐ of xΦ(x): mΦ(w) + σ²φ(w)/τ with w = m/τ, τ² = 1 + σ²; then (Pφ(w))' = (P' - wP)φ(w)/τ."""
    variance = 1 + sigma**2
    tau = mp.sqrt(variance)
    w = m / tau
    bump, step = mp.npdf(w), mp.erfc(-w / mp.sqrt(2)) / 2
    return [
        m * step + sigma**2 / tau * bump,
        step + w * bump / variance,
        bump * (variance + 1 - w**2) / tau**3,
        bump * w * (w**2 - 3 - variance) / variance**2,
        bump * (variance * (w**2 - 1) - w**4 + 6 * w**2 - 3) / tau**5,
    ]


def smooth_relu(m: mpf, sigma: mpf) -> list[mpf | None]:
    """Cₐ of max(x, 0): mΦ(m/σ) + σφ(m/σ); without smoothing only the orders 0 and 1 are functions."""
    if sigma == 0:
        return [max(m, mpf(0)), (mp.sign(m) + 1) / 2, None, None, None]
    w = m / sigma
    bump, step = mp.npdf(w), mp.erfc(-w / mp.sqrt(2)) / 2
    return [m * step + sigma * bump, step, bump / sigma, -w * bump / sigma**2, (w**2 - 1) * bump / sigma**3]


def smooth_abs(m: mpf, sigma: mpf) -> list[mpf | None]:
    """Cₐ of |x| = 2 max(x, 0) - x."""
    twice = [c if c is None else 2 * c for c in smooth_relu(m, sigma)]
    return [twice[0] - m, twice[1] - 1, *twice[2:]]


def smooth_polynomial(name: str) -> Callable[[mpf, mpf], list[mpf]]:
    """Cₐ of a polynomial: E[(m + σz)ⁿ] = Σₖ C(n, 2k) (2k-1)!! σ²ᵏ mⁿ⁻²ᵏ."""
    coefficients, square = list_coefficients(name)
    norm = mp.sqrt(square)

    def smooth(m: mpf, sigma: mpf) -> list[mpf]:
        moments = []
        for n in range(len(coefficients)):
            pairings = [comb(n, 2 * k) * factorial(2 * k) // (2**k * factorial(k)) for k in range(n // 2 + 1)]
            moments.append(sum(c * sigma ** (2 * k) * m ** (n - 2 * k) for k, c in enumerate(pairings)))
        return [
            sum((c * moments[k] for k, c in enumerate(differentiate(coefficients, a))), mpf(0)) / norm for a in range(5)
        ]

    return smooth


def differentiate_tanh(x: mpf) -> list[mpf]:
    """Tanh and its four derivatives, by T' = 1 - T²."""
    t, d = mp.tanh(x), 1 / mp.cosh(x) ** 2
    return [t, d, -2 * t * d, (6 * t**2 - 2) * d, 8 * t * (2 - 3 * t**2) * d]


def differentiate_logistic(x: mpf, primitive: bool) -> list[mpf]:
    """Softplus (the primitive) or sigmoid, and its four derivatives, by p' = p(1 - p)."""
    small = mp.exp(-abs(x))
    p, d = (1 if x >= 0 else small) / (1 + small), small / (1 + small) ** 2
    bend = (1 - 2 * p) * d
    if primitive:
        return [max(x, mpf(0)) + mp.log1p(small), p, d, bend, (1 - 6 * d) * d]
    return [p, d, bend, (1 - 6 * d) * d, (1 - 12 * d) * bend]


SMOOTH = {"erf": smooth_erf, "gelu": smooth_gelu, "relu": smooth_relu, "abs": smooth_abs}


def find_smoothing(name: str) -> Callable[[mpf, mpf], list] | None:
    """The smoothing of an activation, None for the logistic family, which has none that is elementary."""
    return smooth_polynomial(name) if list_coefficients(name) else SMOOTH.get(name)


def find_derivatives(name: str) -> Callable[[mpf], list]:
    """The function x ↦ [s(x), s'(x), …, s''''(x)], None where it is not a function."""
    smoothing = find_smoothing(name)
    if smoothing:
        return lambda x: smoothing(x, mpf(0))
    family, slope = split_name(name)
    if family == "tanh":
        return lambda x: [mpf(slope) ** a * d for a, d in enumerate(differentiate_tanh(slope * x))]
    shift = 1 if family == "softplus" else 0
    return lambda x: [
        mpf(slope) ** (a - shift) * d for a, d in enumerate(differentiate_logistic(slope * x, shift == 1))
    ]


# --- Moments --------------------------------------------------------------------------------------


def integrate_moments(first: str, second: str, r1: float, r2: float, u: float) -> Table:
    """E[s₁ᵃ s₂ᵇ] of two polynomials: E[xⁱyʲ] sums over the number k of pairs (x, y), exactly."""
    q11, q22, q12 = Fraction(r1) ** 2, Fraction(r2) ** 2, Fraction(r1) * Fraction(r2) * Fraction(u)
    (p1, square1), (p2, square2) = list_coefficients(first), list_coefficients(second)

    def moment(i: int, j: int) -> Fraction:
        total = Fraction(0)
        for k in range(i % 2, min(i, j) + 1, 2):
            m, n = (i - k) // 2, (j - k) // 2
            ways = Fraction(factorial(i) * factorial(j), factorial(k) * 2 ** (m + n) * factorial(m) * factorial(n))
            total += ways * q11**m * q12**k * q22**n
        return total

    table: Table = {}
    for a, b in ORDERS:
        d1, d2 = differentiate(p1, a), differentiate(p2, b)
        terms = [c * d * moment(i, j) for i, c in enumerate(d1) for j, d in enumerate(d2) if (i - j) % 2 == 0]
        total = sum(terms, Fraction(0))
        table[a, b] = mpf(total.numerator) / total.denominator / mp.sqrt(square1 * square2)
    return table


# --- Line -----------------------------------------------------------------------------------------


def integrate_line(first: str, second: str, r1: mpf, r2: mpf, u: mpf, step: mpf) -> tuple[Table, mpf]:
    """E[s₁ᵃ s₂ᵇ] by conditioning x on y, and the worst relative change when the step was halved."""
    smooth, derive = find_smoothing(first), find_derivatives(second)
    width = mp.sqrt((1 - u) * (1 + u))
    sigma = r1 * width
    orders = [(a, b) for a, b in ORDERS if b < 2 or second not in KINK]
    if first in KINK and sigma == 0:
        orders = [(a, b) for a, b in orders if a < 2]
    scales = [mpf(1), 1 / (1 + r1), 1 / (1 + r2 * split_name(second)[1])]
    if first in KINK and width > 0 and u != 0:
        scales.append(width / abs(u))
    left = mp.log(min(scales)) - 3  # v₀, a factor e³ below the smallest scale

    def add_node(v: mpf, sums: Table, sizes: Table) -> None:
        decay = mp.exp(left - v)
        t = mp.exp(v - decay)
        weight = mp.npdf(t) * t * (1 + decay)
        for sign in (1, -1):
            c, d = smooth(sign * u * r1 * t, sigma), derive(sign * r2 * t)
            for a, b in orders:
                term = weight * c[a] * d[b]
                sums[a, b] += term
                sizes[a, b] += abs(term)

    # Both ends are cut where the weight alone is 1e-60: t²/2 = 138 on the right, e^(v₀-v) = 138 on the left.
    # The integrand adds powers of r and of 1/σ, no more than 1e20.
    begin, end = left - mp.log(138), mp.log(mp.sqrt(2 * 138))
    count = int(mp.ceil((end - begin) / step))
    results, sizes = [], dict.fromkeys(orders, mpf(0))
    sums: Table = dict.fromkeys(orders, mpf(0))
    for offset in (mpf(0), step / 2):
        for k in range(count + 1):
            add_node(begin + offset + k * step, sums, sizes)
        results.append({order: s * step / (len(results) + 1) for order, s in sums.items()})
    coarse, fine = results
    residual = mpf(0)
    for order, number in fine.items():
        if abs(number) <= NEGLIGIBLE * sizes[order] * step:
            fine[order] = mpf(0)
        else:
            residual = max(residual, abs(number - coarse[order]) / abs(number))
    return fine, residual


def integrate_kink(first: str, second: str, r1: mpf, r2: mpf, u: mpf) -> Table:
    """E[s₁ᵃ s₂ᵇ], b ≥ 2, of a kinked s₂ with r₂ > 0: the derivatives of p(y) Cₐ(κy, σ) at y = 0."""
    c = find_smoothing(first)(mpf(0), r1 * mp.sqrt((1 - u) * (1 + u)))
    density, kappa = KINK[second] / (r2 * mp.sqrt(2 * mp.pi)), r1 * u / r2
    if c[2] is None:  # two kinks on one line: only E[s₁ δ(y)] = p(0) s₁(0) is left
        return {(0, 2): density * c[0], (2, 2): None, (1, 3): None, (0, 4): None}
    return {
        (0, 2): density * c[0],
        (2, 2): density * c[2],
        (1, 3): -density * kappa * c[2],
        (0, 4): density * (kappa**2 * c[2] - c[0] / r2**2),
    }


def integrate_kinked(first: str, second: str, r1: mpf, r2: mpf, u: mpf, step: mpf) -> tuple[Table, mpf]:
    """E[s₁ᵃ s₂ᵇ] of a kinked s₂ and any s₁ with a smoothing, None where it does not exist."""
    if r2 == 0 and first in ODD:  # the even part |y| contributes nothing by parity
        half, residual = integrate_line(first, "linear", r1, r2, u, step)
        share = mpf(1) / 2 if second == "relu" else mpf(0)
        return {order: share * number for order, number in half.items()}, residual
    if r2 == 0 or (r1 == 0 and first in KINK):
        table: Table = dict.fromkeys(ORDERS)
        table[0, 0] = mpf(0)
        if r1 > 0:
            table[2, 0] = mpf(0)
        elif r2 > 0:
            table[0, 2] = mpf(0)
        return table, mpf(0)
    table, residual = integrate_line(first, second, r1, r2, u, step)
    table |= integrate_kink(first, second, r1, r2, u)
    if (2, 0) not in table:  # |u| = 1 and two kinks: E[δ(x) s₂(y)] = p(0) s₂(0) = 0
        table |= {(2, 0): mpf(0), (4, 0): None, (3, 1): None}
    return table, residual


# --- Lattice --------------------------------------------------------------------------------------


def choose_period(r: mpf, stretch: float) -> mpf:
    """H such that e^(-2(H-|x|)) times the density of x is nowhere above e^-90 = 1e-39.

    The exponent 2(H - x) + x²/2r² is least at x = 2r², where it is 2H - 2r², or at x = H, where it is H²/2r².
    """
    return stretch * (45 + r**2 if r**2 <= 45 else mp.sqrt(180) * r)


def sum_lattice(even: bool, r1: mpf, r2: mpf, u: mpf, stretch: float) -> Table:
    """E[sᵃ sᵇ] of s = T (odd) or s = L (even) by the double Fourier sum, in fixed point.

    Terms are products of integers scaled by 2^bits. The bits cover 1e-44 absolute, sinh(q₁₂ων) ≈ q₁₂ων at
    small norms, and sums that fall as r⁻⁵ at large ones. By symmetry u ≥ 0 in the sum.
    """
    smallest, largest = r1 * r2 * abs(u), max(r1, r2, mpf(1))
    small_digits = -log10(smallest) if 0 < smallest < 1 else 0
    bits = ceil(log(10, 2) * (44 * stretch + small_digits + 5 * log10(largest)))
    with mp.workprec(bits + 20):
        unit = mpf(2) ** bits
        q11, q12, q22 = r1**2, r1 * r2 * abs(u), r2**2
        cutoff = (90 * stretch + 20) * 2 / mp.pi  # ω⁴ sinh(πω/2)⁻¹ < 1e-39 beyond, as ω⁴ < e^18

        def list_series(r: mpf) -> tuple[mpf, list[mpf], list[mpf]]:
            spacing = mp.pi / choose_period(r, stretch)
            frequencies = [(2 * j + 1) * spacing for j in range(int(cutoff / (2 * spacing)) + 1)]
            return spacing, frequencies, [2 * spacing / mp.sinh(mp.pi * w / 2) for w in frequencies]

        (_, omega, c), (spacing, nu, d) = list_series(r1), list_series(r2)
        # s⁽ᵃ⁾ has the coefficients ± c ωᵃ (T) or ± c ωᵃ⁻¹ (L); the signs of T: + + - - +, of L: - + + - -
        shift = 1 if even else 0
        signs = [-1, 1, 1, -1, -1] if even else [1, 1, -1, -1, 1]
        columns = [[int(signs[b] * x * w ** (b - shift) * unit) for w, x in zip(nu, d, strict=True)] for b in range(5)]
        shrink = int(mp.exp(-q22 * (2 * spacing) ** 2) * unit)

        def list_gaussian(w: mpf, cross: mpf, length: int) -> tuple[int, list[int]]:
            """The non-zero exp(-½(q₁₁w² - 2 cross wν + q₂₂ν²)) along a row, by recurrence from its peak."""
            peak = int(cross * w / (q22 * 2 * spacing)) if q22 > 0 else 0
            peak = max(0, min(peak, length - 1))
            top = int(mp.exp(-(q11 * w**2 - 2 * cross * w * nu[peak] + q22 * nu[peak] ** 2) / 2) * unit)

            def walk(count: int, sign: int) -> list[int]:
                log_ratio = sign * 2 * spacing * (cross * w - q22 * nu[peak]) - q22 * (2 * spacing) ** 2 / 2
                number, ratio, found = top, int(mp.exp(log_ratio) * unit), []
                for _ in range(count):
                    number = number * ratio >> bits
                    if not number:
                        break
                    found.append(number)
                    ratio = ratio * shrink >> bits
                return found

            below = walk(peak, -1)[::-1]
            return peak - len(below), [*below, top, *walk(length - peak - 1, 1)]

        totals: Table = dict.fromkeys(ORDERS, mpf(0))
        for w, coefficient in zip(omega, c, strict=True):
            length = min(len(nu), int((cutoff - w) / (2 * spacing)) + 1)  # c(ω) d(ν) is negligible beyond
            start, plus = list_gaussian(w, q12, length)
            begin, minus = list_gaussian(w, -q12, length)
            if minus == [0]:
                sines = cosines = plus
            else:  # the peak of the second one is at ν = 0, so begin is 0
                size = max(start + len(plus), len(minus))
                plus = [0] * start + plus + [0] * (size - start - len(plus))
                minus = minus + [0] * (size - len(minus))
                start = begin
                sines = [x - y for x, y in zip(plus, minus, strict=True)]
                cosines = [x + y for x, y in zip(plus, minus, strict=True)]
            stop = start + len(sines)
            rows = [sum(map(mul, cosines if (b + shift) % 2 else sines, columns[b][start:stop])) for b in range(5)]
            for a, b in ORDERS:
                totals[a, b] += signs[a] * coefficient * w ** (a - shift) * rows[b]
            if not any(row >> bits for row in map(abs, rows)):
                break
        table = {(a, b): total / unit**2 / 2 for (a, b), total in totals.items()}
        if even:  # L = constant - Σ c/ω cos, and E cos ωx = e^(-q₁₁ω²/2)
            ends = []
            for r, frequencies, series in ((r1, omega, c), (r2, nu, d)):
                constant = mp.log(2) + sum(x / w for w, x in zip(frequencies, series, strict=True))
                means = [
                    signs[a]
                    * sum(
                        x * w ** (a - 1) * mp.exp(-((r * w) ** 2) / 2) for w, x in zip(frequencies, series, strict=True)
                    )
                    for a in (0, 2, 4)
                ]
                ends.append((constant, means))
            (k1, m1), (k2, m2) = ends
            table[0, 0] += k1 * k2 + k1 * m2[0] + k2 * m1[0]
            for n in (1, 2):
                table[2 * n, 0] += k2 * m1[n]
                table[0, 2 * n] += k1 * m2[n]
    if u < 0:  # y → -y changes the sign of what is odd in y
        table = {(a, b): number if (b + shift) % 2 else -number for (a, b), number in table.items()}
    return table


def integrate_lattice(name: str, r1: mpf, r2: mpf, u: mpf, stretch: float) -> tuple[Table, mpf]:
    """E[sᵃ sᵇ] of one activation of the logistic family, and its relative change with the period.

    tanh:β is T(βx); sigmoid is ½ + ½T(x/2); softplus:β is x/2 + L(βx/2)/β. The cross terms vanish by parity.
    """
    family, slope = split_name(name)
    inner = mpf(slope) if family == "tanh" else mpf(slope) / 2
    outer = {"tanh": mpf(1), "sigmoid": mpf(1) / 2, "softplus": 1 / mpf(slope)}[family]
    even = family == "softplus"
    coarse, fine = (sum_lattice(even, inner * r1, inner * r2, u, s) for s in (stretch, 1.15 * stretch))
    residual = mpf(0)
    for order, number in fine.items():
        if number != 0 or coarse[order] != 0:
            residual = max(residual, abs(number - coarse[order]) / abs(number))
    table: Table = {(a, b): outer**2 * inner ** (a + b) * number for (a, b), number in fine.items()}
    if family == "sigmoid":
        table[0, 0] += mpf(1) / 4
    if family == "softplus":
        table[0, 0] += r1 * r2 * u / 4
        table[1, 1] += mpf(1) / 4
    return table, residual


# --- Cases ----------------------------------------------------------------------------------------


def integrate(first: str, second: str, point: tuple[float, float, float], fineness: float = 1) -> tuple[Table, mpf]:
    """E[s₁ᵃ s₂ᵇ] for all orders by the route that fits the pair, and the convergence residual."""
    r1, r2, u = map(mpf, point)
    if list_coefficients(first) and list_coefficients(second):
        return integrate_moments(first, second, *point), mpf(0)
    if second in KINK:
        return integrate_kinked(first, second, r1, r2, u, STEP / fineness)
    if find_smoothing(first):
        return integrate_line(first, second, r1, r2, u, STEP / fineness)
    if first == second:
        return integrate_lattice(first, r1, r2, u, fineness)
    if (first, second) == ("tanh", "softplus"):  # softplus is y/2 + an even function, which tanh does not see
        table, residual = integrate_line("linear", "tanh", r2, r1, u, STEP / fineness)
        return {(b, a): number / 2 for (a, b), number in table.items()}, residual
    table, residual = integrate_line(second, first, r2, r1, u, STEP / fineness)
    return {(b, a): number for (a, b), number in table.items()}, residual


def compute_quantities(
    first: str, second: str, point: tuple[float, float, float], fineness: float = 1
) -> tuple[dict[str, mpf | None], mpf]:
    """The value and the derivatives in the covariance at one point, and the convergence residual."""
    with mp.workdps(WORKING_DIGITS):
        table, residual = integrate(first, second, point, fineness)
        if residual > TOLERANCE:
            raise ArithmeticError(
                f"({first}, {second}) at (r1, r2, u) = {point} has converged to {mp.nstr(residual, 3)} only, "
                f"not to {mp.nstr(TOLERANCE, 3)}; take a smaller STEP or a longer period"
            )
        numbers = {}
        for name, (a, b, factor) in QUANTITIES.items():
            number = table[a, b]
            numbers[name] = None if number is None else number * factor.numerator / factor.denominator
    return numbers, residual


def compute_case(pair: tuple[str, str]) -> tuple[dict, mpf, float]:
    """All points of one pair as they are stored, the worst residual, and the seconds it took."""
    begin, worst, points = time.perf_counter(), mpf(0), []
    for r1, r2, u in list_points():
        numbers, residual = compute_quantities(*pair, (r1, r2, u))
        worst = max(worst, residual)
        strings = {name: None if x is None else mp.nstr(x, DIGITS) for name, x in numbers.items()}
        points.append({"r1": r1, "r2": r2, "u": u, **strings})
    case = {"activation": pair[0], "activation2": pair[1], "points": points}
    return case, worst, time.perf_counter() - begin


def format_file(cases: list[dict]) -> str:
    """The JSON text with one point a line."""
    blocks = []
    for case in cases:
        head = ", ".join(f"{json.dumps(key)}: {json.dumps(case[key])}" for key in ("activation", "activation2"))
        lines = ",\n   ".join(json.dumps(point) for point in case["points"])
        blocks.append(f'  {{{head}, "points": [\n   {lines}]}}')
    return f'{{"digits": {DIGITS}, "cases": [\n' + ",\n".join(blocks) + "]}\n"


def generate(workers: int, only: str | None) -> None:
    """Compute all pairs, or those in which `only` occurs, and write the file (the others are kept)."""
    begin, worst = time.perf_counter(), mpf(0)
    pairs = [pair for pair in PAIRS if only is None or only in pair]
    if not pairs:
        raise SystemExit(f"no pair contains {only!r}; the activations are {', '.join(SINGLES)}")
    cases = {}
    PATH.parent.mkdir(parents=True, exist_ok=True)
    if only is not None and PATH.exists():
        stored = json.loads(PATH.read_text())["cases"]
        cases = {(case["activation"], case["activation2"]): case for case in stored}
    pool = ProcessPoolExecutor(workers) if workers > 1 else None
    for pair, (case, residual, seconds) in zip(pairs, (pool.map if pool else map)(compute_case, pairs), strict=True):
        cases[pair] = case
        PATH.write_text(format_file([cases[known] for known in PAIRS if known in cases]))
        worst = max(worst, residual)
        nulls = sum(x is None for point in case["points"] for x in point.values())
        print(
            f"{', '.join(dict.fromkeys(pair)):24s} {len(case['points'])} points, {nulls:3d} null, "
            f"residual {mp.nstr(residual, 2):>8s}, {seconds:6.1f} s",
            flush=True,
        )
    if pool:
        pool.shutdown()
    print(f"wrote {PATH}; worst residual {mp.nstr(worst, 2)}; {time.perf_counter() - begin:.0f} s")


# --- Checks ---------------------------------------------------------------------------------------


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


def main() -> None:
    """Generate or check the file."""
    parser = argparse.ArgumentParser(description="Reference values of Gaussian interactions, to 30 digits.")
    parser.add_argument("--check", action="store_true", help="compare the stored file with second routes")
    parser.add_argument("--sample", type=int, default=20, help="points recomputed by --check")
    parser.add_argument("--seed", type=int, default=0, help="seed of that sample")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--only", help="recompute only the pairs with this activation")
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.sample, arguments.seed)
    else:
        generate(arguments.workers, arguments.only)


if __name__ == "__main__":
    main()
