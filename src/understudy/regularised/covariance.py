"""The loss in terms of hidden covariances: Prop. 3 and 5 of Jacot et al. 2022.

For a positively homogeneous σ the loss depends on the hidden layers only through K_ℓ = Z_ℓᵀZ_ℓ and
K^σ_ℓ = (Z^σ_ℓ)ᵀZ^σ_ℓ (N × N):

  L^k_λ(K, Z_L) = C(Z_L) + λ Σ_ℓ Tr[K_ℓ (K^σ_{ℓ-1})⁺],   K_L = Z_LᵀZ_L,

over pairs (K_ℓ, K^σ_ℓ) in the translated cone S = cone{(zzᵀ, σ(z)σ(z)ᵀ)} + (0, β²11ᵀ) with Im K_ℓ ⊂ Im K^σ_{ℓ-1} and
Im Z_Lᵀ ⊂ Im K^σ_{L-1}.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares, nnls

from understudy.activations import Activation, PiecewiseLinear, activate
from understudy.oracles.cone_oracle import ConeOracle
from understudy.regularised.representation import RANK, activations_before, to_representations
from understudy.tasks.regularised import Regularised

Pair = tuple[np.ndarray, np.ndarray]

STARTS = 10
"""Random sets of generators from which a pair is approached if neither verdict was reached: in three cases tried, one
start in three ended inside."""

SLIDES = 200
"""Evaluations of one slide of generators: two generators that become one take about a hundred."""


def covariances(task: Regularised, parameters: Any) -> tuple[list[Pair], np.ndarray]:
    """The pairs (K_ℓ, K^σ_ℓ) of the hidden layers of a network, and its outputs Z_L."""
    layers = to_representations(task, parameters)
    after = activations_before(task, layers)[1:]
    return [(z.T @ z, a.T @ a) for z, a in zip(layers[:-1], after, strict=True)], layers[-1]


def covariance_loss(task: Regularised, pairs: Sequence[Pair], output: np.ndarray) -> float:
    """L^k_λ(K, Z_L); infinite where an image is not contained in the one before (relative part above 1e-7)."""
    before = np.asarray(task.entry).T @ np.asarray(task.entry)
    total = float(task.output_cost(jnp.asarray(output)))
    for own, after in [*pairs, (output.T @ output, None)]:
        inverse = np.linalg.pinv(before, rcond=RANK, hermitian=True)
        outside = own - own @ inverse @ before
        if np.linalg.norm(outside) > 1e-7 * max(float(np.linalg.norm(own)), 1e-300):
            return np.inf
        total += task.penalty * float(np.sum(own * inverse))
        if after is not None:
            before = after
    return total


@dataclass(frozen=True)
class Membership:
    """Whether a pair belongs to the cone S, with the evidence either way; `"undecided"` if neither was found.

    Inside: `generators` (k × N), rows z with Σ zzᵀ = K and Σ σ(z)σ(z)ᵀ + β²11ᵀ = K^σ up to `distance` (relative).
    Outside: `separation` > 0, the (relative) value on the pair of a functional that is ≤ 0 on every generator.
    """

    verdict: Literal["inside", "outside", "undecided"]
    generators: np.ndarray
    distance: float
    separation: float


def in_cone(
    pair: Pair, *, bias: float, activation: Activation, tolerance: float = 1e-6, iterations: int = 120
) -> Membership:
    """Membership in S, by the fully corrective conditional-gradient method with an exact oracle.

    The method minimises the distance to the cone. The nearest point of the cone of generators found so far is a
    non-negative least-squares problem. Its residual R is nearly zero, or it separates the pair from the whole cone
    (⟨R, generator⟩ ≤ 0 for all), or it shows which generator to add. Pairs made of few generators lie on the boundary
    of the cone, where this converges slowly; at the end random sets of generators are moved towards such a pair.
    """
    first, second = (np.asarray(k, float) for k in pair)
    count = first.shape[0]
    target = np.concatenate([first.ravel(), (second - bias**2).ravel()])
    size = float(np.linalg.norm(target))
    if size == 0:
        return Membership("inside", np.zeros((0, count)), 0.0, 0.0)
    # Σ zzᵀ = K: every z is Bᵀw with BᵀB = K, and the w of all generators have Σ wwᵀ = I. Directions whose share of K is
    # below (tolerance / 10)² change neither part by the tolerance.
    values, vectors = np.linalg.eigh(first)
    kept = values > (tolerance / 10) ** 2 * values[-1]
    if values[-1] <= 0:  # no z but zero is possible
        return Membership("outside", np.zeros((0, count)), 1.0, 1.0)
    basis = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    oracle = ConeOracle(basis, activation)
    rows: list[np.ndarray] = []  # unit w
    columns: list[np.ndarray] = []
    coefficients, residual = np.zeros(0), target
    for step in range(iterations):
        plain, activated = residual[: count**2].reshape(count, count), residual[count**2 :].reshape(count, count)
        found = oracle.maximise((plain + plain.T) / 2, (activated + activated.T) / 2)
        length = float(np.linalg.norm(residual))
        if length <= tolerance * size:
            break
        # ⟨R, generator⟩ ≤ `upper` for unit w, and the squared lengths of all w add up to the rank of K.
        margin = float(residual @ target) - max(found.upper, 0.0) * len(basis)
        if margin > 1e-9 * length * size:
            generators = _scaled(rows, coefficients, basis) @ basis
            return Membership("outside", generators, length / size, margin / (length * size))
        rows.append(found.direction)
        columns.append(_generator(found.direction @ basis, activation))
        coefficients, _ = nnls(np.stack(columns, axis=1), target, maxiter=100 * len(columns))
        if step % 5 == 4:  # slide the generators: moving them makes the distance vanish, adding more does not
            moved = _slide(_scaled(rows, coefficients, basis), basis, target, activation)
            lengths = np.linalg.norm(moved, axis=1)
            rows = [w / r for w, r in zip(moved, lengths, strict=True) if r > 0]
            columns = [_generator(w @ basis, activation) for w in rows]
            coefficients, _ = nnls(np.stack(columns, axis=1), target, maxiter=100 * len(columns))
        residual = target - np.stack(columns, axis=1) @ coefficients
    generators, distance = _scaled(rows, coefficients, basis) @ basis, float(np.linalg.norm(residual)) / size
    draw = np.random.default_rng(0)
    for _ in range(STARTS if distance > tolerance else 0):
        spread = np.linalg.qr(draw.normal(size=(4 * len(basis), len(basis))))[0]  # Σ wwᵀ = I
        moved = _slide(spread, basis, target, activation) @ basis
        left = float(np.linalg.norm(target - sum(_generator(z, activation) for z in moved))) / size
        if left < distance:
            generators, distance = moved, left
        if distance <= tolerance:
            break
    return Membership("inside" if distance <= tolerance else "undecided", generators, distance, 0.0)


def _generator(z: np.ndarray, activation: Activation) -> np.ndarray:
    active = activate(activation, z)
    return np.concatenate([np.outer(z, z).ravel(), np.outer(active, active).ravel()])


def _slide(rows: np.ndarray, basis: np.ndarray, target: np.ndarray, activation: Activation) -> np.ndarray:
    """Least squares over the generators' vectors w themselves, by Levenberg and Marquardt's method."""
    rank, count = basis.shape

    def mismatch(flat: np.ndarray) -> np.ndarray:
        z = flat.reshape(-1, rank) @ basis
        active = activate(activation, z)
        return np.concatenate([(z.T @ z).ravel(), (active.T @ active).ravel()]) - target

    def slope(flat: np.ndarray) -> np.ndarray:
        assert isinstance(activation, PiecewiseLinear)
        z = flat.reshape(-1, rank) @ basis
        active = activate(activation, z)
        rates = activation.slope + activation.kink * np.sign(z)
        unit = np.eye(count)
        plain = np.einsum("ki,jl->ijkl", z, unit) + np.einsum("kj,il->ijkl", z, unit)
        bent = np.einsum("ki,kl,jl->ijkl", active, rates, unit) + np.einsum("kj,kl,il->ijkl", active, rates, unit)
        return np.concatenate([(part @ basis.T).reshape(count**2, -1) for part in (plain, bent)])

    found = least_squares(mismatch, rows.ravel(), slope, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=SLIDES)
    return found.x.reshape(rows.shape)


def _scaled(rows: list[np.ndarray], coefficients: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The vectors w that coefficients make of unit vectors, without those that play no part."""
    kept = np.flatnonzero(coefficients > 0)
    return np.reshape([np.sqrt(coefficients[i]) * rows[i] for i in kept], (-1, len(basis)))
