"""Read and check the arguments of `Population`."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from understudy.networks import TwoLayer
from understudy.numbers import real_array


def bias(given: str | ArrayLike, width: int) -> tuple[bool, Array | None]:
    """Whether biases are trained, and the fixed ones (n,), if any."""
    if isinstance(given, str):
        if given not in ("none", "trained"):
            raise ValueError(f"bias is 'none', 'trained' or the fixed biases themselves; received {given!r}.")
        return given == "trained", None
    biases = real_array(given, "Fixed biases")
    if biases.shape not in ((), (width,)) or not np.all(np.isfinite(biases)):
        raise ValueError(f"Fixed biases are {width} finite numbers, or one for all; received shape {biases.shape}.")
    return False, jnp.asarray(np.broadcast_to(biases, (width,)))


def check_bias(parameters: TwoLayer, trained: bool, fixed: Array | None) -> None:
    """Raise if a network has biases or an offset that the task does not have."""
    arrays = {"biases": parameters.bias, "an offset": parameters.offset}
    for name, array in arrays.items():
        if trained or array is None or isinstance(array, jax.core.Tracer):
            continue
        allowed = 0.0 if fixed is None or name != "biases" else np.asarray(fixed)
        if not np.array_equal(np.asarray(array), np.broadcast_to(allowed, array.shape)):
            raise ValueError(
                f"This network has {name} that the task does not train. Make the task with bias='trained', or with "
                "bias= the same fixed biases."
            )


def mean(given: ArrayLike | None, dim: int) -> Array | None:
    """The mean of the inputs (d,), or None."""
    if given is None:
        return None
    vector = real_array(given, "The mean of the inputs")
    if vector.shape != (dim,) or not np.all(np.isfinite(vector)):
        raise ValueError(f"The mean of the inputs must be {dim} finite numbers; received shape {vector.shape}.")
    return jnp.asarray(vector)


def fixed_outgoing(outgoing: str | ArrayLike, width: int, outputs: tuple[int, ...]) -> Array | None:
    """The fixed outgoing weights (n, *m), or None if they are trained."""
    if isinstance(outgoing, str):
        if outgoing not in ("trained", "fixed"):
            raise ValueError(f"outgoing is 'trained', 'fixed' or the fixed weights themselves; received {outgoing!r}.")
        if outgoing == "trained":
            return None
        outgoing = 1.0
    weights = real_array(outgoing, "Fixed outgoing weights")
    try:
        weights = np.broadcast_to(weights, (width, *outputs))
    except ValueError:
        raise ValueError(
            f"Fixed outgoing weights must have shape {(width, *outputs)} or be one number; received {weights.shape}."
        ) from None
    if not np.all(np.isfinite(weights)):
        raise ValueError("Fixed outgoing weights must be finite.")
    return jnp.asarray(weights)


MOST_DIMENSIONS = 4096
"""The largest diagonal that is made into a matrix, of 134 MB."""


def diagonal(variances: np.ndarray) -> np.ndarray:
    """The covariance of independent inputs with these variances."""
    if len(variances) > MOST_DIMENSIONS:
        raise ValueError(
            f"Variances are given for at most {MOST_DIMENSIONS:,} inputs, because gradient flow under a covariance "
            f"does not stay in the span of teachers and students; received {len(variances):,}. Without a covariance "
            "any dimension is possible: divide the inputs by their standard deviations."
        )
    return np.diag(variances)


def square_root(covariance: ArrayLike, dim: int) -> Array:
    """Σ^½ of a covariance Σ, or of the variances of independent inputs."""
    sigma = real_array(covariance, "The input covariance")
    if sigma.shape == (dim,):
        sigma = diagonal(sigma)
    if sigma.shape != (dim, dim):
        raise ValueError(
            f"The input covariance must be a {dim} × {dim} matrix or {dim} variances; received shape {sigma.shape}."
        )
    if not np.all(np.isfinite(sigma)) or np.max(np.abs(sigma - sigma.T)) > 1e-12 * np.max(np.abs(sigma)):
        raise ValueError("The input covariance must be finite and symmetric.")
    values, vectors = np.linalg.eigh(sigma)
    if values[0] < -1e-12 * max(values[-1], 0.0) or values[-1] <= 0:
        raise ValueError(
            f"The input covariance must be positive semidefinite; its least eigenvalue is {values[0]:.3g}."
        )
    return jnp.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
