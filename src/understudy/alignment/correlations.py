"""How well students align with teachers: normalised correlations of their activations, best matches, recovery.

The normalised correlation of two nodes is that of their centred activations over the evaluation samples (Tian 2020,
Section 6):

    ρ_jk = Σ_s (f*_j(x_s) - mean)(f_k(x_s) - mean) / (norms of both).
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import Activation
from understudy.networks import Deep

RECOVERED = 0.95
"""A teacher whose best student correlates more than this counts as recovered (Tian 2020, Fig. 10)."""


@dataclass(frozen=True)
class Alignment:
    """Correlations of one layer's teachers (rows) and students (columns), and best matches and recovery.

    Nodes that do not vary over the samples have correlation 0 with all others.
    """

    correlations: Float[np.ndarray, "m n"]

    @property
    def best_of_teacher(self) -> Float[np.ndarray, " m"]:
        """The correlation of each teacher's best student."""
        return self.correlations.max(axis=1)

    @property
    def student_of_teacher(self) -> np.ndarray:
        """The index of each teacher's best student."""
        return self.correlations.argmax(axis=1)

    @property
    def best_of_student(self) -> Float[np.ndarray, " n"]:
        """The correlation of each student's best teacher: the x-coordinate of Fig. 7 and 9."""
        return self.correlations.max(axis=0)

    @property
    def mean(self) -> float:
        """ρ_mean: the mean over teachers of their best correlation (Fig. 13)."""
        return float(self.best_of_teacher.mean())

    def recovered(self, threshold: float = RECOVERED) -> np.ndarray:
        """Which teachers have a student that correlates more than `threshold`."""
        return self.best_of_teacher > threshold


def recovery_interval(
    recovered: np.ndarray, *, level: float = 0.95, resamples: int = 2000
) -> tuple[float, float, float]:
    """The share of teachers recovered, from flags (seeds, teachers), and its bootstrap interval over seeds.

    Teachers of one seed share their student and are not independent, so seeds are resampled. With one seed the interval
    is NaN.
    """
    shares = np.asarray(recovered, float).mean(axis=1)
    if len(shares) < 2:
        return float(shares.mean()), float("nan"), float("nan")
    chosen = np.random.default_rng(0).integers(0, len(shares), size=(resamples, len(shares)))
    low, high = np.quantile(shares[chosen].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(shares.mean()), float(low), float(high)


def correlate(teacher: Float[Array, "S m"], student: Float[Array, "S n"]) -> Float[Array, "m n"]:
    """The matrix ρ of normalised correlations of two sets of activations over the same samples, traceable."""
    unit = [normalised(f) for f in (teacher, student)]
    return unit[0].T @ unit[1]


def normalised(values: Float[Array, "S n"]) -> Float[Array, "S n"]:
    """Activations centred over the samples and scaled to norm 1; zero for a node that does not vary."""
    centred = values - jnp.mean(values, axis=0, keepdims=True)
    size = jnp.sqrt(jnp.sum(centred**2, axis=0, keepdims=True))
    scale = jnp.sqrt(jnp.sum(values**2, axis=0, keepdims=True))
    constant = size <= 1e-13 * scale  # a node that does not vary, up to rounding
    return jnp.where(constant, 0.0, centred / jnp.where(constant, 1.0, size))


def align(
    student: Deep, teacher: Deep, inputs: Float[Array, "S d"], activation: str | Activation = "relu"
) -> tuple[Alignment, ...]:
    """The alignment of every hidden layer, starting with the first. Student and teacher have the same depth."""
    if student.depth != teacher.depth:
        raise ValueError(f"Layers are compared one by one; received depths {student.depth} and {teacher.depth}.")
    x = jnp.asarray(inputs, float)
    layers = zip(teacher.layers(x, activation)[:-1], student.layers(x, activation)[:-1], strict=True)
    return tuple(Alignment(np.asarray(correlate(t, s))) for t, s in layers)
