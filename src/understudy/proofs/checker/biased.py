"""E[σ(m1 + p·x) σ*(m2 + q·x)] with derivatives by (p, m1) and (q, m2), for the checker.

With h = m1/r1, k = m2/r2 and the correlation ρ, where r1² = q11 (for erf 1 + q11, as erf(x/√2) is the mean sign of x
with unit noise):

- erf: 4Φ2(h, k; ρ) - 2Φ(h) - 2Φ(k) + 1.
- x₊ with y₊: r1 r2 R(h, k; ρ), R_h = k Φ2 + φ(k) Φ(h') + ρ φ(h) Φ(k'), R_ρ = R_hk = Φ2, R_hh = φ(h) E[y₊ on x = 0],
  R_hρ = φ(h) Φ(k'), R_ρρ = φ2, R = h R_h + R_hh + ρ Φ2, with h' = (h - ρk)/√(1-ρ²) and k' = (k - ρh)/√(1-ρ²).
  slope·x + kink·|x| = (kink + slope) x₊ + (kink - slope) (-x)₊.

All are functions of (q11, q12, q22, m1, m2), carried over to the vectors by the chain rule.
"""

from __future__ import annotations

from typing import Any

from flint import arb, arb_mat

from understudy.proofs.checker.interactions import LINES, Interaction, Refused, dot
from understudy.proofs.checker.jets import Ball, Jet, composed
from understudy.proofs.checker.normal import both_above, cumulative, density

Matrix = Any


def biased_interaction(first: str, second: str, p: Matrix, m1: Ball, q: Matrix, m2: Ball) -> Interaction:
    """The interaction of two neurons. Gradients and blocks have one more coordinate than p and q, for the bias."""
    gram = (dot(p, p), dot(p, q), dot(q, q), m1, m2)
    a, b, c, u, v = (Jet.variable(x, i, 5) for i, x in enumerate(gram))
    if first == second == "erf":
        area = 1 + gram[0] + gram[2] + _area(p, q, gram)
        return _by_chain_rule(_signs(a + 1, b, c + 1, u, v, area), p, q)
    if first in LINES and second in LINES:
        area = _area(p, q, gram)
        if not (gram[0] > 0 and gram[2] > 0 and area > 0):
            raise Refused("two kinked neurons with biases have parallel or zero incoming vectors")
        (s1, k1), (s2, k2) = LINES[first], LINES[second]
        total = b * arb(0)
        for x, left in ((1, k1 + s1), (-1, k1 - s1)):
            for y, right in ((1, k2 + s2), (-1, k2 - s2)):
                if left * right != 0:
                    total = total + _ramps(a, b * (x * y), c, u * x, v * y, area) * (left * right)
        return _by_chain_rule(total, p, q)
    raise Refused(f"no formula with biases for {first!r} with {second!r}")


def _area(p: Matrix, q: Matrix, gram: tuple[Ball, ...]) -> Ball:
    """q11 q22 - q12², as the sum of squares of all 2 × 2 minors (Lagrange)."""
    rows = range(p.nrows())
    minors = (p[i, 0] * q[j, 0] - p[j, 0] * q[i, 0] for i in rows for j in rows if j < i)
    return sum((x * x for x in minors), arb(0))


def _angles(a: Jet, b: Jet, c: Jet, u: Jet, v: Jet, area: Ball) -> tuple[Jet, Jet, Jet, Ball]:
    """h, k, ρ as jets, and √(1 - ρ²) = √(area/(ac))."""
    first, second = a.inverse_root(), c.inverse_root()
    rest = (area / (a.value * c.value)).sqrt()
    return u * first, v * second, b * first * second, rest


def _signs(a: Jet, b: Jet, c: Jet, u: Jet, v: Jet, area: Ball) -> Jet:
    """4Φ2 - 2Φ(h) - 2Φ(k) + 1."""
    inner = _angles(a, b, c, u, v, area)
    h, k, rho = (x.value for x in inner[:3])
    rest = inner[3]
    over, under = cumulative((k - rho * h) / rest), cumulative((h - rho * k) / rest)
    joint = density(h) * density((k - rho * h) / rest) / rest
    value = 4 * both_above(h, k, rho, rest) - 2 * cumulative(h) - 2 * cumulative(k) + 1
    square = rest * rest
    first = [density(h) * (4 * over - 2), density(k) * (4 * under - 2), 4 * joint]
    by_h, by_k = -(h - rho * k) / square * joint, -(k - rho * h) / square * joint
    by_rho = (rho + (h - rho * k) * (k - rho * h) / square) / square * joint
    hh, kk = -h * first[0] - 4 * rho * joint, -k * first[1] - 4 * rho * joint
    return composed(list(inner[:3]), value, first,
                    [[hh, 4 * joint, 4 * by_h], [4 * joint, kk, 4 * by_k], [4 * by_h, 4 * by_k, 4 * by_rho]])  # fmt: skip


def _ramps(a: Jet, b: Jet, c: Jet, u: Jet, v: Jet, area: Ball) -> Jet:
    """E[(m1 + x)₊ (m2 + y)₊] = r1 r2 R."""
    inner = _angles(a, b, c, u, v, area)
    h, k, rho = (x.value for x in inner[:3])
    rest = inner[3]
    lean, other = (k - rho * h) / rest, (h - rho * k) / rest
    over, under, joint = cumulative(lean), cumulative(other), density(h) * density(lean) / rest
    quadrant = both_above(h, k, rho, rest)
    by_h = k * quadrant + density(k) * under + rho * density(h) * over
    by_k = h * quadrant + density(h) * over + rho * density(k) * under
    hh = density(h) * rest * (lean * over + density(lean))
    kk = density(k) * rest * (other * under + density(other))
    value = h * by_h + hh + rho * quadrant
    second = [[hh, quadrant, density(h) * over], [quadrant, kk, density(k) * under],
              [density(h) * over, density(k) * under, joint]]  # fmt: skip
    ramps = composed(list(inner[:3]), value, [by_h, by_k, quadrant], second)
    return ramps * (a * a.inverse_root()) * (c * c.inverse_root())


def _by_chain_rule(jet: Jet, p: Matrix, q: Matrix) -> Interaction:
    n = p.nrows()
    by_p = arb_mat([*([2 * p[i, 0], q[i, 0], 0, 0, 0] for i in range(n)), [0, 0, 0, 1, 0]])
    by_q = arb_mat([*([0, p[i, 0], 2 * q[i, 0], 0, 0] for i in range(n)), [0, 0, 0, 0, 1]])
    slopes, bends, unit = arb_mat(5, 1, jet.first), jet.hessian(), _unit(n)
    pp = by_p * bends * by_p.transpose() + unit * (2 * jet.first[0])
    qq = by_q * bends * by_q.transpose() + unit * (2 * jet.first[2])
    pq = by_p * bends * by_q.transpose() + unit * jet.first[1]
    return Interaction(jet.value, by_p * slopes, by_q * slopes, pp, pq, qq)


def _unit(n: int) -> Matrix:
    """The identity on the vector, zero on the bias."""
    return arb_mat(n + 1, n + 1, [int(i == j < n) for i in range(n + 1) for j in range(n + 1)])


def biased_own(name: str, p: Matrix, m: Ball) -> Interaction:
    """The interaction of a neuron with itself, as a pair with equal arguments.

    For slope·x + kink·|x|: σσ' = Az + B|z| and σ'² = A + B sign z, with A = slope² + kink² and B = 2 slope kink. The
    gradient is E[σσ' x̃], and the whole Hessian is 2E[σ'² x̃x̃ᵀ], x̃ = (x, 1), as E[σσ''…] = 0.
    """
    if name not in LINES:
        return biased_interaction(name, name, p, m, p, m)
    (slope, kink), n, q = LINES[name], p.nrows(), dot(p, p)
    square, cross = slope * slope + kink * kink, 2 * slope * kink
    sign, by_mean, bend, size = _absolute(q, m)
    whole = list(p.entries())
    value = square * (q + m * m) + cross * (m * size + q * sign)
    gradient = arb_mat(n + 1, 1, [*(x * (square + cross * sign) for x in whole), square * m + cross * size])
    rows = [[cross * bend * x * y for y in whole] + [cross * by_mean * x] for x in whole]
    block = arb_mat([*rows, [*(cross * by_mean * x for x in whole), 0]])
    block = block + arb_mat(n + 1, n + 1, [int(i == j) for i in range(n + 1) for j in range(n + 1)]) * (
        square + cross * sign
    )
    zero = arb_mat(n + 1, n + 1, [0] * (n + 1) ** 2)
    return Interaction(value, gradient, gradient, zero, block, zero)


def _absolute(q: Ball, m: Ball) -> tuple[Ball, Ball, Ball, Ball]:
    """S = E[sign z], S', S'' by the mean, and E|z|, for z ~ N(m, q)."""
    if not q > 0:
        raise Refused("a kinked neuron may have a zero incoming vector")
    root = q.sqrt()
    h = m / root
    sign, first = 2 * cumulative(h) - 1, 2 * density(h) / root
    return sign, first, -first * m / q, m * sign + q * first


def biased_mean(name: str, p: Matrix, m: Ball) -> Interaction:
    """E[σ(m + p·x)], as the interaction with a neuron that is constantly 1 and has no coordinates.

    For slope·x + kink·|x| the Hessian is 2 kink E[δ(z) x̃x̃ᵀ], where x given z = 0 has the mean -mp/q.
    """
    n, q = p.nrows(), dot(p, p)
    nothing, zero = arb_mat(n + 1, 1, [0] * (n + 1)), arb_mat(n + 1, n + 1, [0] * (n + 1) ** 2)
    if name == "erf":
        square, mean = Jet.variable(q, 0, 2), Jet.variable(m, 1, 2)
        h = mean * (square + 1).inverse_root()
        f = density(h.value)
        jet = h.then(2 * cumulative(h.value) - 1, 2 * f, -2 * h.value * f)
        by_p = arb_mat([*([2 * p[i, 0], 0] for i in range(n)), [0, 1]])
        pp = by_p * jet.hessian() * by_p.transpose() + _unit(n) * (2 * jet.first[0])
        return Interaction(jet.value, by_p * arb_mat(2, 1, jet.first), nothing, pp, zero, zero)
    if name not in LINES:
        raise Refused(f"no formula with biases for {name!r}")
    slope, kink = LINES[name]
    if kink == 0:
        return Interaction(slope * m, arb_mat(n + 1, 1, [*[0] * n, slope]), nothing, zero, zero, zero)
    sign, first, _, size = _absolute(q, m)
    gradient = arb_mat(n + 1, 1, [*(x * kink * first for x in p.entries()), slope + kink * sign])
    there, own = [-m * x / q for x in p.entries()], list(p.entries())
    rows = [[a * b - x * y / q for b, y in zip(there, own, strict=True)] + [a]
            for a, x in zip(there, own, strict=True)]  # fmt: skip
    block = (arb_mat([*rows, [*there, 1]]) + _unit(n)) * (kink * first)
    return Interaction(slope * m + kink * size, gradient, nothing, block, zero, zero)
