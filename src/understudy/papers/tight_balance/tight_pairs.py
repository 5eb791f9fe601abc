"""Tight balance: two students share one teacher, each tilted away from the other, and hold still.

Setting: unit students and orthonormal teachers, H_ρ with even ρ ≥ 4, the loss of `Sphere` with factor r on the
repulsion. In the plane of teachers v_1, v_2 a student at angle φ from v_1 is attracted by A(φ) = cos^ρ φ + sin^ρ φ;
two students repel by r cos^ρ(φ_1 - φ_2). The pair (θ, -θ) is critical iff, with c = cos 2θ,

    cos^(ρ-2) θ - sin^(ρ-2) θ = 2 r c^(ρ-1).                                                            (*)

**One angle.** With p = (1+c)/2 = cos²θ and q = (1-c)/2 = sin²θ and m = ρ/2 - 1, (p^m - q^m)/c = 2^(1-m) Σ_{j odd} C(m,
j) c^(j-1) has positive coefficients and degree < m in z = c², the right side is 2 r z^m: one change of sign, so by
Descartes' rule one positive root z. At z = 1 the sides are 1 and 2r, so it is below 1, a pair of different vectors,
iff r > ½. (With the factor 1/n of Lemma 3.2 there is no tight balance at all.)

**Its Hessian.** By (*), A(θ) = 2 r cos²θ c^(ρ-1) + sin^(ρ-2) θ, which makes the spectrum simple:

    in the plane, turning both (1, 1)      -A''(θ)                       0 at ρ = 4, positive for ρ ≥ 6 (r = 1)
    in the plane, opening (1, -1)          2 r (cos^ρ)''(2θ) - A''(θ)    positive
    out of the plane, both (1, 1)          ρ (sin^(ρ-2) θ + 2 r c^(ρ-1)) positive
    out of the plane, opposed (1, -1)      ρ sin^(ρ-2) θ                 positive, but it falls off fast with ρ

So for ρ ≥ 6 tight balance is a minimum in every dimension, not the global one. At ρ = 4, r = 1 it is where that
minimum is born: with s the mean angle and x = -cos 2(φ_1 - φ_2) the loss in the plane is, up to a constant, ¼x² - ½x(1
- cos 4s), whose least value over x is -¼(1 - cos 4s)² = -16 s⁴ + …: a non-strict saddle of order four, left in time
  1/(64 s²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TightBalance:
    """A tight-balance pair of degree ρ: `angle` θ of each student to the shared teacher and the four eigenvalues.

    `turning`, `opening`: in the plane of the two teachers; `lifting`, `twisting`: out of it, once for every further
    dimension. `loss` is that of two such students and two teachers.
    """

    degree: int
    repulsion: float
    angle: float
    turning: float
    opening: float
    lifting: float
    twisting: float
    loss: float

    @property
    def overlap(self) -> float:
        """c = w_1·w_2 = cos 2θ."""
        return math.cos(2 * self.angle)

    def eigenvalues(self, dim: int) -> np.ndarray:
        """The Riemannian Hessian's spectrum for two students and two teachers in dimension `dim`, ascending."""
        plane, further = [self.turning, self.opening], [self.lifting, self.twisting] * (dim - 2)
        return np.sort(np.array(plane + further))

    @property
    def kind(self) -> str:
        """The verdict that the spectrum gives, and where it is silent the quartic -16 s⁴ of ρ = 4."""
        least = min(self.turning, self.opening, self.lifting, self.twisting)
        if abs(self.turning) < 1e-12:
            return "non-strict saddle"
        return "minimum" if least > 0 else "strict saddle"


def angle(degree: int, repulsion: float = 1.0) -> float:
    """θ_ρ, the angle of a tight-balance student to the teacher it shares; accurate to rounding.

    >>> angle(4) == math.pi / 8
    True
    >>> math.isclose(math.cos(2 * angle(6)), 2**-0.25, abs_tol=1e-15)
    True
    """
    _check_degree(degree)
    if not repulsion > 0.5:
        raise ValueError(
            f"A tight-balance pair exists only for a repulsion factor above ½; received {repulsion!r}. At or below it "
            "the two students end in the same place."
        )
    m = degree // 2 - 1
    left = [math.comb(m, j) / 2 ** (m - 1) for j in range(1, m + 1, 2)]
    return math.acos(math.sqrt(_only_root(left, m, repulsion))) / 2


def outside_angle(degree: int, repulsion: float = 1.0) -> float:
    """The angle to the shared teacher of a pair that splits in a direction orthogonal to every other teacher.

    cos^(ρ-2) θ = 2 r c^(ρ-1): without the second teacher's pull. Such pairs exist for d ≥ 3 and are non-strict
    saddles: turned about the shared teacher by α toward another one, the loss changes by -2 (sin θ sin α)^ρ only.
    """
    _check_degree(degree)
    if not repulsion > 0.5:
        raise ValueError(f"A pair splits only for a repulsion factor above ½; received {repulsion!r}.")
    m = degree // 2 - 1

    def excess(c: float) -> float:
        return ((1 + c) / 2) ** m - 2 * repulsion * c ** (2 * m + 1)

    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return math.acos(middle) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)


def tight_balance(degree: int, repulsion: float = 1.0) -> TightBalance:
    """The tight-balance pair of degree ρ with its spectrum; see the module for the derivation.

    >>> round(tight_balance(6).twisting, 12) == round(6 * math.sin(angle(6)) ** 4, 12)
    True
    """
    theta, rho, r = angle(degree, repulsion), degree, repulsion
    cos, sin, c = math.cos(theta), math.sin(theta), math.cos(2 * theta)
    attraction = cos**rho + sin**rho
    bend = rho * (rho - 1) * (cos ** (rho - 2) * sin**2 + sin ** (rho - 2) * cos**2) - rho * attraction
    repulsion_bend = rho * (rho - 1) * c ** (rho - 2) * (1 - c * c) - rho * c**rho
    return TightBalance(
        degree=rho,
        repulsion=r,
        angle=theta,
        turning=-bend,
        opening=2 * r * repulsion_bend - bend,
        lifting=rho * (sin ** (rho - 2) + 2 * r * c ** (rho - 1)),
        twisting=rho * sin ** (rho - 2),
        loss=r * (1 + c**rho) - 2 * attraction + 1,
    )


def tight_pairs(width: int, teachers: int, dim: int, degree: int, pairs: int = 1, repulsion: float = 1.0) -> np.ndarray:
    """Rows (n, d): `pairs` tight-balance pairs, each in the plane of two teachers of its own, the rest distinct copies.

    Pair p shares teacher 2p and leans toward ±teacher 2p + 1; the other n - 2·pairs students copy the teachers after
    these. All pairs and copies are mutually orthogonal, which decouples them (Ottlik, Section 2.4).
    """
    singles = width - 2 * pairs
    if pairs < 0 or singles < 0 or width > teachers or dim < teachers:
        raise ValueError(
            f"{pairs} pairs and {singles} copies need 2·pairs ≤ n ≤ k ≤ d; received n = {width}, k = {teachers}, d = "
            f"{dim}."
        )
    theta = angle(degree, repulsion)
    rows = np.zeros((width, dim))
    for p in range(pairs):
        for i, sign in ((2 * p, 1), (2 * p + 1, -1)):
            rows[i, 2 * p], rows[i, 2 * p + 1] = math.cos(theta), sign * math.sin(theta)
    for i in range(singles):
        rows[2 * pairs + i, 2 * pairs + i] = 1.0
    return rows


def outside_pair(dim: int, degree: int, repulsion: float = 1.0) -> np.ndarray:
    """Rows (2, d) of a pair around teacher 0 that splits along the third coordinate, outside the span of two
    teachers.
    """
    if dim < 3:
        raise ValueError(f"A direction outside the span of two teachers needs d ≥ 3; received d = {dim}.")
    theta = outside_angle(degree, repulsion)
    rows = np.zeros((2, dim))
    rows[:, 0], rows[:, 2] = math.cos(theta), [math.sin(theta), -math.sin(theta)]
    return rows


def escape_time(mean_angle: float) -> float:
    """Time 1/(64 s²) the flow needs to leave tight balance at ρ = 4, r = 1, from mean angle s of the pair (s ≪ 1).

    On the slow curve x = 1 - cos 4s the flow is ds/dt = x sin 4s = 32 s³ + …, which reaches s of order one at that
    time.
    """
    return 1 / (64 * mean_angle**2)


def slow_curve(mean_angle: float | np.ndarray) -> np.ndarray:
    """Rows (…, 2, 2) of pairs at ρ = 4, d = 2 with mean angle s on the slow curve -cos 2(φ_1 - φ_2) = 1 - cos 4s."""
    s = np.asarray(mean_angle, float)
    half = np.pi / 8 + np.arcsin(1 - np.cos(4 * s)) / 4
    return np.stack([_at(s + half), _at(s - half)], axis=-2)


def _at(phi: float | np.ndarray) -> np.ndarray:
    return np.stack([np.cos(phi), np.sin(phi)], axis=-1)


def _only_root(left: list[float], power: int, repulsion: float) -> float:
    """The root z in (0, 1) of Σ left_j z^j = 2 r z^power: bisection, then Newton's method to rounding."""
    polynomial = np.zeros(power + 1)
    polynomial[: len(left)] = left
    polynomial[power] -= 2 * repulsion
    coefficients = polynomial[::-1]
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.polyval(coefficients, middle) > 0 else (low, middle)
    root = (low + high) / 2
    slope = np.polyder(coefficients)
    for _ in range(3):
        root -= float(np.polyval(coefficients, root) / np.polyval(slope, root))
    return root


def _check_degree(degree: int) -> None:
    if not isinstance(degree, (int, np.integer)) or degree < 4 or degree % 2:
        raise ValueError(f"Tight balance is known for even degrees from 4 on; received degree={degree!r}.")
