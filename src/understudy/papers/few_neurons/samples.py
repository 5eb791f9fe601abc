"""Many samples in the plane as a few weighted lattice points, with the same sums of smooth functions.

A smooth function at a sample is, by Lagrange interpolation, a sum over the nearest lattice points. So a mean over N
samples is a sum over the lattice, with weights that depend on the samples only. For softplus networks F is analytic up
to a distance π/‖w‖ from the real plane. With spacing h and 2m points along each axis the error is of the order of
(h‖w‖/π)^2m ((2m - 1)!!/2^m)², which is 1e-8 for ‖w‖ = 1 and 1e-5 for ‖w‖ = 2 at the values below.
"""

import numpy as np
from jaxtyping import Float

SPACING = 0.25
HALF = 7
"""Half the number of lattice points along each axis that a sample is spread over."""

NODES = 2600
"""Lattice points of a padded data set; 10⁵ Gaussian samples need about 1,950."""


def on_lattice(
    samples: Float[np.ndarray, "N 2"], spacing: float = SPACING, half: int = HALF
) -> tuple[Float[np.ndarray, "M 2"], Float[np.ndarray, " M"]]:
    """Lattice points and weights with Σ_m p_m F(z_m) = mean of F(x_s) for smooth F. Some weights are negative.

    >>> points, weights = on_lattice(np.array([[0.1, 0.3], [-0.2, 1.1]]))
    >>> bool(abs(weights @ np.cos(points.sum(axis=1)) - (np.cos(0.4) + np.cos(0.9)) / 2) < 1e-8)
    True
    """
    scaled = np.asarray(samples) / spacing
    below = np.floor(scaled).astype(int)
    first = below.min(axis=0) - (half - 1)
    shape = tuple(below.max(axis=0) + half + 1 - first)
    factors = [_lagrange(scaled[:, axis] - below[:, axis], half) for axis in (0, 1)]
    offsets = np.arange(-half + 1, half + 1)
    weights = np.zeros(shape)
    places = [below[:, axis, None] + offsets - first[axis] for axis in (0, 1)]
    for i in range(2 * half):
        for j in range(2 * half):
            np.add.at(weights, (places[0][:, i], places[1][:, j]), factors[0][:, i] * factors[1][:, j])
    used = np.argwhere(weights != 0)
    return spacing * (used + first), weights[tuple(used.T)] / len(samples)


def padded_lattice(samples: Float[np.ndarray, "N 2"]) -> tuple[Float[np.ndarray, "M 2"], Float[np.ndarray, " M"]]:
    """`on_lattice` with points of weight zero up to `NODES`, so that one compiled program serves all data sets."""
    points, weights = on_lattice(samples)
    missing = NODES - len(points)
    return np.concatenate([points, np.zeros((missing, 2))]), np.concatenate([weights, np.zeros(missing)])


def _lagrange(position: Float[np.ndarray, " N"], half: int) -> Float[np.ndarray, "N 2m"]:
    """Lagrange's polynomials of the nodes 1 - half … half at positions in [0, 1)."""
    nodes = np.arange(-half + 1, half + 1)
    away = position[:, None] - nodes
    columns = [
        np.prod(np.delete(away, i, axis=1), axis=1) / np.prod(np.delete(nodes[i] - nodes, i)) for i in range(len(nodes))
    ]
    return np.stack(columns, axis=1)
