"""Activations in mpmath: derivatives, polynomial coefficients, and Gaussian smoothings that are elementary."""

from collections.abc import Callable
from math import comb, factorial

from mpmath import mp, mpf


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
