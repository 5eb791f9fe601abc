"""The symmetries of a `Population` task: maps of the parameters that leave its loss unchanged."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.neurons import Neurons
from understudy.tasks.population_layout import weights
from understudy.tasks.symmetries import Symmetries, of_students, turns_of_teacher
from understudy.tasks.symmetry import rescaling_tangents, rotation_tangents

if TYPE_CHECKING:
    from understudy.tasks.population import Population


def fixed_directions(task: "Population") -> Float[Array, "k d"]:
    """Directions that rotations must not change: the teachers' vectors and the mean of the inputs."""
    v = task.teacher.incoming
    return v if task.mean is None else jnp.concatenate([v, task.mean[None]])


def outside_symmetries(task: "Population", vector: Float[Array, " P"]) -> int:
    """See `Population.outside_symmetries`."""
    w = np.asarray(weights(task, jnp.asarray(vector))[0])
    v = np.asarray(fixed_directions(task))
    rest = w - w @ np.linalg.pinv(v) @ v
    return int(np.sum(np.linalg.svd(rest, compute_uv=False) > 1e-9 * (1 + np.abs(w).max())))


def tangents(task: "Population", vector: Float[Array, " P"]) -> Float[Array, "q P"]:
    """See `Population.symmetry_tangents`."""
    w, c, a, _ = task.parts(vector)
    outputs = math.prod(task.outputs) if task.trains_outgoing else 0
    fixed, found = fixed_directions(task), [jnp.zeros((0, task.size))]
    offset = ((0, 0), (0, math.prod(task.outputs) if task.trains_bias else 0))
    if task.trains_outgoing and task.activation.homogeneity is not None and task.fixed_bias is None:
        wide = w if c is None else jnp.concatenate([w, c[:, None]], axis=1)
        rows = rescaling_tangents(wide, a.reshape(task.width, -1), task.activation.homogeneity)
        found.append(jnp.pad(rows, offset))
    if task.root is None and task.dim >= fixed.shape[0] + 2:
        found.append(jnp.pad(rotation_tangents(w, fixed, outputs + task.trains_bias), offset))
    return jnp.concatenate(found)


def symmetries(task: "Population", neurons: Neurons) -> Symmetries:
    """See `Population.symmetries`; `neurons` are the students at any point."""
    found = of_students(neurons)
    if task.fixed_bias is not None and np.any(np.asarray(task.fixed_bias) != 0):
        shared = np.stack([found.kinds, np.unique(np.asarray(task.fixed_bias), return_inverse=True)[1]], axis=1)
        found = replace(found, flip=None, kinds=np.unique(shared, axis=0, return_inverse=True)[1].reshape(-1))
    if task.root is not None:
        return replace(found, dim=task.dim, turns=np.eye(task.dim)[None], beyond=np.zeros((0, task.dim)))
    turns, beyond = turns_of_teacher(task.teacher, None if task.mean is None else np.asarray(task.mean))
    return replace(found, dim=task.dim, turns=turns, beyond=beyond)


_OFF = 1e-10
"""A neuron whose part of the function is this small a share of the strongest teacher's is off. Searches end within
about 1e-6 of such a point in either weight."""


def balanced(task: "Population", vector: Float[Array, " P"]) -> Float[Array, " P"]:
    """See `Population.balanced`."""
    degree = task.activation.homogeneity
    if not task.trains_outgoing or degree is None or task.biased:
        return vector
    w, a = weights(task, vector)
    flat = a.reshape(task.width, -1)
    norms, lengths = jnp.linalg.norm(w, axis=1), jnp.linalg.norm(flat, axis=1)
    # A neuron that is off keeps the loss at any length of its incoming vector: it gets that of the teachers.
    longest = jnp.max(jnp.linalg.norm(task.teacher.incoming, axis=1))
    strongest = jnp.max(jnp.abs(task.teacher.outgoing)) * longest**degree
    off = (norms > 0) & (lengths * norms**degree <= _OFF * strongest)
    alive = (norms > 0) & (lengths > 0) & ~off
    ratio = jnp.where(alive, jnp.where(alive, lengths, 1.0) / jnp.where(alive, norms, 1.0), 1.0)
    factor = jnp.where(off, longest / jnp.where(off, norms, 1.0), ratio ** (1 / (1 + degree)))
    rows = jnp.concatenate([w * factor[:, None], flat / factor[:, None] ** degree], axis=1)
    return rows.reshape(-1)
