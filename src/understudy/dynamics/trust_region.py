"""Newton's method with absolute eigenvalues in a trust region. It descends past saddles and ends at rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def newton(
    evaluate: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]],
    only_loss: Callable[[np.ndarray], float],
    point: np.ndarray,
    *,
    iterations: int,
    step: float,
) -> tuple[np.ndarray, float, float, float, int]:
    """Trust-region Newton with absolute eigenvalues. The step is -(|H| + τ)⁻¹g with τ ≥ 0 as small as the region
    allows.

    It ends when a full step is below `step`, or when neither loss nor gradient gets smaller. Returns the point, its
    loss, gradient norm and least eigenvalue, and the number of evaluations.
    """
    loss, gradient, hessian = evaluate(point)
    radius = 0.3 * max(float(np.linalg.norm(point)), 1e-3)
    values, count = np.zeros(1), 0
    while count < iterations:
        values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
        norm = float(np.linalg.norm(gradient))
        for _ in range(20):
            move = absolute_newton(values, vectors, gradient, radius)
            lower = only_loss(point + move)
            predicted = -float(gradient @ move) / 2
            if np.isfinite(lower) and lower <= loss - 1e-4 * predicted:
                break
            if predicted <= 1e-13 * abs(loss):  # below the rounding of the loss only the gradient can tell
                break
            radius = float(np.linalg.norm(move)) / 4
        else:
            break
        count += 1
        new_loss, new_gradient, new_hessian = evaluate(point + move)
        rounding = predicted <= 1e-13 * abs(loss)
        if rounding and not float(np.linalg.norm(new_gradient)) < 0.9 * norm:
            break
        if loss - new_loss >= 0.75 * predicted:
            radius = max(radius, 2 * float(np.linalg.norm(move)))
        point, loss, gradient, hessian = point + move, new_loss, new_gradient, new_hessian
        if np.abs(move).max() <= step or not gradient.any():
            break
    return point, loss, float(np.linalg.norm(gradient)), float(values[0]), count


def absolute_newton(
    values: np.ndarray, vectors: np.ndarray, gradient: np.ndarray, radius: float = np.inf
) -> np.ndarray:
    """-(|H| + τ)⁻¹g within the radius, without zero modes: curvatures below 1e-11 of the largest are only noise."""
    sizes = np.abs(values)
    usable = sizes > 1e-11 * sizes.max(initial=1e-300)
    along, sizes = vectors[:, usable].T @ gradient, sizes[usable]
    shift = 0.0
    if float(np.linalg.norm(along / sizes)) > radius:
        low, high = 0.0, float(np.linalg.norm(along)) / radius
        for _ in range(60):
            shift = (low + high) / 2
            low, high = (shift, high) if float(np.linalg.norm(along / (sizes + shift))) > radius else (low, shift)
        shift = high
    return -vectors[:, usable] @ (along / (sizes + shift))
