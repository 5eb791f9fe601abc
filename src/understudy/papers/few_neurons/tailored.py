"""Tailored tasks: losses of which a given network is a critical point, without any training.

For data, the gradient is Jᵀe with e = weight × derivative of the cost and J the derivative of the outputs: residuals
from the null space of Jᵀ make any network critical. For a two-layer teacher of fixed incoming vectors, the gradient is
affine in the teacher's outgoing weights: with enough teachers a linear system gives them. Such points are generic:
there are minima and saddles of every index, with matrices Y and V of every kind.
"""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from understudy import activations
from understudy.activations import Activation
from understudy.networks import Teacher, TwoLayer
from understudy.tasks.empirical import Empirical, squared
from understudy.tasks.population import Population


def log_cosh(prediction: Array, target: Array) -> Array:
    """Σ_o log cosh(f_o - y_o): convex, quadratic near zero and linear far out."""
    gap = jnp.abs(prediction - target)
    return jnp.sum(gap + jnp.log1p(jnp.exp(-2 * gap)) - np.log(2.0))


def critical_data(
    network: Any,
    inputs: np.ndarray,
    *,
    activation: str | Activation,
    seed: int,
    cost: Literal["squared", "log cosh"] = "squared",
) -> Empirical:
    """A data set for which `network` is a critical point, with the given inputs and constructed targets.

    Targets are the network's outputs plus random residuals, which are projected so that the gradient vanishes. This
    needs more outputs (samples × outputs) than parameters.
    """
    sigma = activations.get(activation)
    x = np.asarray(inputs, float)
    outputs, jacobian = _outputs(network, jnp.asarray(x), sigma)
    f, j = np.asarray(outputs), np.asarray(jacobian).reshape(np.size(outputs), -1)
    if j.shape[0] <= j.shape[1]:
        raise ValueError(
            f"{j.shape[0]} outputs cannot leave residuals free of the gradient of {j.shape[1]} parameters; give more "
            "samples."
        )
    free = np.random.default_rng(seed).normal(size=j.shape[0])
    basis = np.linalg.qr(j)[0]
    slope = free - basis @ (basis.T @ free)
    slope = (slope - basis @ (basis.T @ slope)).reshape(f.shape)  # a second time, against rounding
    if cost == "squared":
        return Empirical(network, x, f - slope / 2, activation=sigma, cost=squared)
    bounded = 0.8 * slope / np.abs(slope).max()  # the slope of log cosh is a tanh
    return Empirical(network, x, f - np.arctanh(bounded), activation=sigma, cost=log_cosh)


@eqx.filter_jit
def _outputs(network: Any, x: Array, sigma: Activation) -> tuple[Array, Array]:
    vector, unravel = ravel_pytree(network)
    return network(x, sigma), jax.jacrev(lambda v: unravel(v)(x, sigma))(vector)


def critical_teacher(
    student: TwoLayer, incoming: np.ndarray, *, activation: str | Activation, covariance: np.ndarray | None = None
) -> Population:
    """A population task for which `student` is a critical point: a teacher with these incoming vectors.

    Its outgoing weights are the shortest solution of the linear system ∇L = 0. There must be as many teacher weights as
    student parameters. Raises if there is no solution.
    """
    outputs = student.outgoing.shape[1:]
    shape = (len(incoming), *outputs)
    count = int(np.prod(shape))
    base = Population(Teacher(incoming, np.zeros(shape), activation), student.width, covariance=covariance)
    vector = base.flatten(student)
    prepared = base.prepared(vector)

    def gradient(flat: np.ndarray) -> np.ndarray:
        task = eqx.tree_at(lambda t: t.teacher.outgoing, prepared, jnp.asarray(flat.reshape(shape)))
        return np.asarray(_gradient(task, vector))

    offset = gradient(np.zeros(count))
    matrix = np.stack([gradient(row) for row in np.eye(count)], axis=1) - offset[:, None]
    solution = np.linalg.lstsq(matrix, -offset, rcond=1e-13)[0]
    left = float(np.linalg.norm(matrix @ solution + offset))
    if left > 1e-9 * max(1.0, float(np.linalg.norm(offset))):
        raise ValueError(
            f"No outgoing weights of these {len(incoming)} teachers make the student critical (least gradient norm "
            f"{left:.1e}); "
            f"give at least {vector.shape[0] // max(int(np.prod(outputs)), 1) + 1} teachers in general position."
        )
    return Population(Teacher(incoming, solution.reshape(shape), activation), student.width, covariance=covariance)


@eqx.filter_jit
def _gradient(task: Population, vector: Array) -> Array:
    return task.value_and_gradient(vector)[1]
