"""Two functions of the logistic family: double sums of Fourier series."""

from math import ceil, log, log10
from operator import mul

from mpmath import mp, mpf

from scripts.references.activations import split_name
from scripts.references.quantities import ORDERS, Table


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
