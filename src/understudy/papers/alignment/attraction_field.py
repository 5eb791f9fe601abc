"""How a teacher neuron attracts a student neuron with ReLU activation: Tian 2020, Theorem 6, Theorem 7 and Eq. 8-10.

For inputs x ~ N(0, I), a student's gate z_k = I[w_k·x > 0] and a teacher's activation f_j = σ(w_j·x),

    E[x z_k f_j] = (‖w_j‖/2π) [(π - θ) w̄_j + sin θ w̄_k],

θ the angle between them, w̄ = w/‖w‖. A gate does not change with the length of its weights, so ‖w_k‖ does not enter.
(The paper prints a factor
‖w_j‖‖w_k‖ and the weights themselves in the bracket.) For other spherically symmetric inputs of dimension d multiply by
E‖x‖²/d.

The simplified dynamics of Eq. 8 are ẇ_k = ‖w_k‖ r_k; those without the factor, which is how gradient flow with that
expectation moves, ẇ_k = r_k.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def angle(first: Float[np.ndarray, " d"], second: Float[np.ndarray, " d"]) -> float:
    """The angle between two vectors, accurate at 0 and at π: 2 atan2(‖a - b‖, ‖a + b‖) of the unit vectors (Kahan)."""
    a, b = first / np.linalg.norm(first), second / np.linalg.norm(second)
    return float(2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def attraction(teacher: Float[np.ndarray, " d"], student: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """E[x z_k f_j] for x ~ N(0, I), teacher w_j and student w_k ≠ 0 without biases.

    >>> attraction(np.array([2.0, 0.0]), np.array([1.0, 0.0]))
    array([1., 0.])
    """
    lengths = np.linalg.norm(teacher), np.linalg.norm(student)
    if lengths[1] == 0:
        raise ValueError("A student of length zero has no gate; received w_k = 0.")
    if lengths[0] == 0:
        return np.zeros_like(teacher, dtype=float)
    theta = angle(teacher, student)
    return ((np.pi - theta) * teacher + np.sin(theta) * lengths[0] * student / lengths[1]) / (2 * np.pi)


def alignment_time(start: float, end: float) -> float:
    """The time Eq. 10, θ̇ = -ψ(θ) sin θ with ψ(θ) = (π - θ)/2π and α = 1, takes from angle `start` down to `end`, both
    in (0, π).

    ∫ 2π dθ/((π - θ) sin θ); with δ = π - θ the integrand 2π/(δ sin δ) is 2π/δ² plus a smooth rest, which is integrated
    by Gauss and Legendre: accurate for every start, however close to π.
    """
    if not 0 < end <= start < np.pi:
        raise ValueError(f"0 < end ≤ start < π; received start = {start} and end = {end}.")
    low, high = np.pi - start, np.pi - end
    nodes, weights = np.polynomial.legendre.leggauss(60)
    delta = 0.5 * (high - low) * nodes + 0.5 * (high + low)
    small = delta < 1e-3  # 1/(δ sin δ) - 1/δ² = 1/6 + 7δ²/360 + …
    with np.errstate(all="ignore"):
        rest = np.where(small, 1 / 6 + 7 * delta**2 / 360, 1 / (delta * np.sin(delta)) - 1 / delta**2)
    return float(2 * np.pi * ((1 / low - 1 / high) + 0.5 * (high - low) * weights @ rest))


def per_node_residue(
    students: Float[np.ndarray, "n d"],
    teachers: Float[np.ndarray, "m d"],
    alpha: Float[np.ndarray, "m n"],
    beta: Float[np.ndarray, "n n"],
    nu: float = 0.0,
) -> Float[np.ndarray, "n d"]:
    """r_k = Σ_j α_jk ψ(θ_jk) w*_j - Σ_k' β_k'k ψ(θ_k'k) w_k' - ν w_k, ψ(θ) = (π - θ)/2π (Eq. 8)."""
    with_teachers, among = (_psi(_angles(other, students)) for other in (teachers, students))
    return (alpha * with_teachers).T @ teachers - (beta * among).T @ students - nu * students


def _angles(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    a, b = (w / np.linalg.norm(w, axis=1, keepdims=True) for w in (first, second))
    apart, along = (np.linalg.norm(a[:, None] + s * b[None], axis=2) for s in (-1, 1))
    return 2 * np.arctan2(apart, along)


def _psi(theta: np.ndarray) -> np.ndarray:
    return (np.pi - theta) / (2 * np.pi)
