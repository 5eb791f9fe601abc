"""One activation smoothed in closed form, the other integrated over a line."""

from mpmath import mp, mpf

from scripts.references.activations import find_derivatives, find_smoothing, split_name
from scripts.references.quantities import KINK, NEGLIGIBLE, ODD, ORDERS, Table


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
