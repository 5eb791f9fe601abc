"""Deep linear networks of least norm: how their layers interpolate, and what they cost.

A linear network of depth L represents A = W_L ⋯ W_1. With A = U S Vᵀ, the least norm is

    min Σ_ℓ ‖W_ℓ‖² = L Σ_i s_i^(2/L) = L ‖A‖_(2/L)^(2/L)    (a Schatten quasi-norm),

and it is reached exactly by balanced weights, W_ℓ = R_ℓ S^(1/L) R_(ℓ-1)ᵀ with R_0 = V, R_L = U and any R_ℓ with
orthonormal columns between. So W_ℓ ⋯ W_1 = R_ℓ S^(ℓ/L) Vᵀ, and for data X the covariances of layer ℓ are

    Z_ℓᵀZ_ℓ = Xᵀ (AᵀA)^(ℓ/L) X = Xᵀ (X⁻ᵀ Z_LᵀZ_L X⁻¹)^(ℓ/L) X

(Jacot et al. 2022, Section 3.1, item 2; Dai, Karzand and Srebro 2021). Where X is not invertible, its pseudo-inverse
takes its place: of all A with A X = Z_L, Z_L X⁺ has the least cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float


def schatten_cost(matrix: Float[np.ndarray, "m d"], depth: int) -> float:
    """L Σ_i s_i^(2/L): the least squared norm of the weights of a linear network of that depth that represents A.

    >>> schatten_cost(np.diag([4.0, 9.0]), depth=1), schatten_cost(np.diag([4.0, 9.0]), depth=2)
    (97.0, 26.0)
    """
    _check_depth(depth)
    return float(depth * np.sum(_svd(matrix)[1] ** (2 / depth)))


def represented_map(
    inputs: Float[np.ndarray, "d N"], outputs: Float[np.ndarray, "m N"], *, tolerance: float = 1e-10
) -> Float[np.ndarray, "m d"]:
    """A = Z_L X⁺, the map of least cost with A X = Z_L; raises where there is none."""
    x, z = np.asarray(inputs, float), np.asarray(outputs, float)
    a = z @ np.linalg.pinv(x, rcond=1e-12)
    gap = float(np.max(np.abs(a @ x - z), initial=0.0))
    if gap > tolerance * max(1.0, float(np.max(np.abs(z), initial=0.0))):
        raise ValueError(
            f"No linear map takes these inputs to these outputs (off by {gap:.3g}): the rows of the outputs must lie "
            "in the span of the rows of the inputs."
        )
    return a


def interpolate_covariance(
    inputs: Float[np.ndarray, "d N"], outputs: Float[np.ndarray, "m N"], layer: int, depth: int
) -> Float[np.ndarray, "N N"]:
    """Z_ℓᵀZ_ℓ of layer ℓ of a linear network of least norm that takes X (d × N) to Z_L (m × N); ℓ = 0 is X, ℓ = L is
    Z_L.
    """
    _check_depth(depth)
    if not 0 <= layer <= depth:
        raise ValueError(f"A network of depth {depth} has the layers 0 … {depth}; received layer {layer}.")
    x = np.asarray(inputs, float)
    a = represented_map(x, outputs)
    if layer == 0:
        return x.T @ x  # (AᵀA)⁰ is the identity, also on the kernel of A
    _, values, rows = _svd(a)
    hidden = (values ** (layer / depth))[:, None] * (rows @ x)
    return hidden.T @ hidden


def balanced_weights(
    matrix: Float[np.ndarray, "m d"], depth: int, widths: Sequence[int] | None = None, *, seed: int | None = None
) -> tuple[Float[np.ndarray, "_ _"], ...]:
    """Weights (W_1, …, W_L) of least norm with W_L ⋯ W_1 = A.

    `widths` are those of the L - 1 hidden layers (each at least the rank of A; the rank unless given); with a `seed`,
    the hidden layers are turned by random rotations, which changes neither the product nor the norm.
    """
    _check_depth(depth)
    u, values, v = _svd(matrix)
    rank = len(values)
    chosen = [rank] * (depth - 1) if widths is None else list(widths)
    if len(chosen) != depth - 1 or any(n < rank for n in chosen):
        raise ValueError(
            f"Depth {depth} has {depth - 1} hidden layers, each at least as wide as the rank {rank}; received widths "
            f"{chosen}."
        )
    rng = None if seed is None else np.random.default_rng(seed)
    frames = [v.T]
    for n in chosen:
        frame = np.eye(n)[:, :rank] if rng is None else np.linalg.qr(rng.normal(size=(n, n)))[0][:, :rank]
        frames.append(frame)
    frames.append(u)
    root = values ** (1 / depth)
    return tuple((after * root) @ before.T for before, after in pairwise(frames))


def _svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U (m × r), s (r) and Vᵀ (r × d) with s > 0: rounding, 1e-16, would count as 1e-16^(2/L) in a quasi-norm."""
    u, values, v = np.linalg.svd(np.asarray(matrix, float), full_matrices=False)
    rank = int(np.sum(values > 4 * np.finfo(float).eps * max(matrix.shape) * np.max(values, initial=0.0)))
    return u[:, :rank], values[:rank], v[:rank]


def _check_depth(depth: int) -> None:
    if depth < 1:
        raise ValueError(f"A network has at least one layer of weights; received depth {depth}.")
