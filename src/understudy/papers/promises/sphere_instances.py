"""Random tasks on the sphere."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from understudy.papers.promises import plain_losses as plain
from understudy.papers.promises.instances import Instance


def sphere(rng: np.random.Generator, *, width: int, teachers: int, dim: int, degree: int, loss: str) -> Instance:
    """Students on the unit sphere with random teachers, orthonormal ones half of the time."""
    from understudy.tasks.sphere import Sphere

    v = rng.normal(size=(teachers, dim))
    if rng.random() < 0.5 and teachers <= dim:
        v = np.linalg.qr(rng.normal(size=(dim, dim)))[0][:teachers]
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    task = Sphere(v, width, activation=f"hermite:{degree}", loss=loss)  # type: ignore[arg-type]
    written = plain.PlainSphere(jnp.asarray(v), 1.0 if loss == "squared" else 0.0, degree)

    def unit(point: np.ndarray) -> np.ndarray:
        """Rows of norm 1, and orthogonal to the teachers where they nearly are: descent ends beside these degenerate
        points."""
        rows = point.reshape(width, dim)
        for _ in range(2):
            beside = (np.abs(rows @ v.T).max(axis=1, keepdims=True) < 1e-5) & (teachers < dim)
            rows = np.where(beside, rows - rows @ np.linalg.pinv(v) @ v, rows)
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return rows.ravel()

    return Instance(task, written, radial=width, tidy=unit)
