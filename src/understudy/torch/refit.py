"""Refit what follows: the weights of a layer that reads fewer neurons, by least squares with a ridge.

The refit minimises Σ ‖t - V h‖² + λ Σ_j G_jj ‖V_j - W_j‖², where W are the layer's own weights on the neurons that
stay. With a large λ nothing changes; with a small one only the outputs on the data count. λ is the one with the
smallest error on inputs that the fit has not seen.
"""

from __future__ import annotations

import torch

from understudy.torch.moments import Moments

RIDGES = tuple(10.0**e for e in range(-8, 2))


def refit(
    fit: Moments, check: Moments, start: torch.Tensor, columns: torch.Tensor, constant: bool
) -> tuple[torch.Tensor, float]:
    """Weights (m, columns) and constant (m,) as one matrix (m, columns + 1), and the ridge that was chosen.

    **Arguments**

    - `fit`, `check`: moments over two sets of inputs; the features are all those of `columns`, and more.
    - `start`: (m, columns + 1) weights and constant that the ridge pulls to.
    - `columns`: the features that are left, without the constant.
    - `constant`: whether the constant may change.
    """
    chosen = torch.cat([columns, torch.tensor([fit.gram.shape[0] - 1])]) if constant else columns
    free = start if constant else start[:, :-1]

    def normal(moments: Moments) -> tuple[torch.Tensor, torch.Tensor]:
        gram = moments.gram[chosen][:, chosen]
        cross = moments.cross[chosen]
        if not constant:  # what the fixed constant already explains
            cross = cross - moments.gram[chosen][:, -1:] * start[:, -1]
        return gram, cross - gram @ free.T

    best = _choose(normal(fit), normal(check)) if check.count else RIDGES[3]
    gram, cross = normal(fit + check) if check.count else normal(fit)
    values, vectors, size = _spectrum(gram)
    change = _solve(values, vectors, size, cross, best)
    fitted = free + change.T
    if not constant:
        fitted = torch.cat([fitted, start[:, -1:]], dim=1)
    return fitted, best


def _spectrum(gram: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Eigenvalues and vectors of the Gram matrix of features of unit size, and their sizes."""
    size = gram.diagonal().clamp(min=0).sqrt()
    size = torch.where(size > 1e-12 * size.max().clamp(min=1e-300), size, torch.inf)
    values, vectors = torch.linalg.eigh(gram / size[:, None] / size[None, :])
    return values.clamp(min=0), vectors, size


def _solve(
    values: torch.Tensor, vectors: torch.Tensor, size: torch.Tensor, cross: torch.Tensor, ridge: float
) -> torch.Tensor:
    return vectors @ ((vectors.T @ (cross / size[:, None])) / (values + ridge)[:, None]) / size[:, None]


def _choose(fit: tuple[torch.Tensor, torch.Tensor], check: tuple[torch.Tensor, torch.Tensor]) -> float:
    """The ridge of least error on the second set."""
    spectrum = _spectrum(fit[0])
    best, least = RIDGES[-1], float("inf")
    for ridge in RIDGES:
        change = _solve(*spectrum, fit[1], ridge)
        error = float((change * (check[0] @ change)).sum() - 2 * (change * check[1]).sum())
        if error < least:
            best, least = ridge, error
    return best
