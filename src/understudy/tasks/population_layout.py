"""The flat parameter vector of `Population`: (w_1, c_1, a_1) ⊕ … ⊕ (w_n, c_n, a_n) ⊕ c_0, without untrained parts."""

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy.networks import TwoLayer
from understudy.tasks.population_arguments import check_bias

if TYPE_CHECKING:
    from understudy.tasks.population import Population


def flatten(task: "Population", parameters: Any) -> Float[Array, "*batch P"]:
    """See `Population.flatten`."""
    if isinstance(parameters, (tuple, list)) and len(parameters) == 2 and np.ndim(parameters[0]) >= 2:
        parameters = TwoLayer(*parameters)
    if not isinstance(parameters, TwoLayer):
        return _checked_vector(task, parameters)
    w, a = parameters.incoming, parameters.outgoing
    batch = w.shape[:-2]
    expected = (*batch, task.width, *task.outputs)
    if w.ndim not in (2, 3) or w.shape[-2:] != (task.width, task.dim) or a.shape != expected:
        raise ValueError(
            f"This task has {task.width} students in dimension {task.dim}: incoming weights "
            f"({task.width}, {task.dim}) and outgoing weights {(task.width, *task.outputs)}, "
            f"with at most one batch axis before; received {w.shape} and {a.shape}."
        )
    check_bias(parameters, task.trains_bias, task.fixed_bias)
    columns = [w]
    if task.trains_bias:
        c = jnp.zeros(w.shape[:-1]) if parameters.bias is None else parameters.bias
        columns.append(c[..., None])
    if task.trains_outgoing:
        columns.append(a.reshape(*batch, task.width, -1))
    flat = jnp.concatenate(columns, axis=-1).reshape(*batch, -1)
    if task.trains_bias:
        shape = (*batch, math.prod(task.outputs))
        offset = jnp.zeros(shape) if parameters.offset is None else parameters.offset.reshape(shape)
        flat = jnp.concatenate([flat, offset], axis=-1)
    return _finite(flat)


def rows(task: "Population", vector: Any) -> Any:
    """The parameters of each neuron (…, n, q), without the offset; NumPy arrays stay NumPy arrays."""
    hidden = task.size - (math.prod(task.outputs) if task.trains_bias else 0)
    return vector[..., :hidden].reshape(*vector.shape[:-1], task.width, -1)


def weights(task: "Population", vector: Any) -> tuple[Any, Any]:
    """Incoming and outgoing weights."""
    found = rows(task, vector)
    if task.fixed_outgoing is not None:
        return found[..., : task.dim], task.fixed_outgoing
    outgoing = found[..., task.dim + task.trains_bias :]
    return found[..., : task.dim], outgoing.reshape((*found.shape[:-1], *task.outputs))


def parts(task: "Population", vector: Any) -> tuple[Any, Any, Any, Any]:
    """See `Population.parts`."""
    w, a = weights(task, vector)
    if not task.trains_bias:
        return w, task.fixed_bias, a, None
    offset = vector[..., -math.prod(task.outputs) :].reshape((*vector.shape[:-1], *task.outputs))
    return w, rows(task, vector)[..., task.dim], a, offset


def _checked_vector(task: "Population", vector: ArrayLike) -> Float[Array, "*batch P"]:
    array = jnp.asarray(vector, float)
    if array.ndim not in (1, 2) or array.shape[-1] != task.size:
        raise ValueError(
            f"A flat parameter vector of this task has length {task.size}; received shape {array.shape}. "
            "Or pass a TwoLayer(incoming, outgoing)."
        )
    return _finite(array)


def _finite(vector: Array) -> Array:
    if not isinstance(vector, jax.core.Tracer) and not np.all(np.isfinite(np.asarray(vector))):
        bad = int(np.sum(~np.isfinite(np.asarray(vector))))
        raise ValueError(f"Parameters must be finite; received {bad} NaN or infinite entries.")
    return vector
