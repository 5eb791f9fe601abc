"""Two polynomials: moments of Gaussians in rational arithmetic."""

from fractions import Fraction
from math import factorial

from mpmath import mp, mpf

from scripts.references.activations import differentiate, list_coefficients
from scripts.references.quantities import ORDERS, Table


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
