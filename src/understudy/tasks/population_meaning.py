"""What a point of a `Population` task means: which teachers each student copies or averages, and its table of
weights."""

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from understudy.networks import TwoLayer
from understudy.tasks.neurons import Described, describe_neurons
from understudy.tasks.population_layout import rows
from understudy.tasks.structure import Pair, Setting, Structure, read_structure

if TYPE_CHECKING:
    from understudy.tasks.population import Population


def structure(task: "Population", parameters: TwoLayer | ArrayLike) -> Structure:
    """What each student copies or averages; see `read_structure`."""
    small, point = task, task.parts(np.asarray(task.flatten(parameters)))
    if task.reducible:
        small, network, _ = task.in_span(task.unflatten(task.flatten(parameters)))
        point = network.incoming, network.bias, network.outgoing, None
    w, bias, a = np.asarray(point[0], float), point[1], np.asarray(point[2], float)
    v, b = np.asarray(small.teacher.incoming, float), np.asarray(small.teacher.outgoing, float)
    if w.ndim != 2:
        raise ValueError(f"structure looks at one point; received a batch of {len(w)}.")
    if small.root is not None:
        root = np.asarray(small.root)
        w, v = w @ root, v @ root
    biases = np.zeros(len(w)) if bias is None else np.broadcast_to(np.asarray(bias), (len(w),))
    if task.biased:  # a copy has the teacher's bias as well
        own = np.zeros(len(v)) if small.teacher.bias is None else np.asarray(small.teacher.bias)
        w, v = np.column_stack([w, biases]), np.column_stack([v, own])
    pair = Pair(w, a.reshape(len(w), -1), v, b.reshape(len(v), -1), task.activation)
    found = read_structure(pair, setting(task))
    return found if bias is None else found.with_biases(biases)


def setting(task: "Population") -> Setting | None:
    """The setting in which the theory of copies and averages applies, or None."""
    same = task.activation == task.teacher.activation
    plain = same and not task.biased and task.root is None
    applies = plain and task.trains_outgoing and task.teacher.is_unit_orthonormal
    return Setting(task.activation, task.teacher.width) if applies else None


def describe(task: "Population", vectors: np.ndarray) -> Described:
    """See `Task.describe`."""
    found, shape = np.asarray(rows(task, jnp.asarray(vectors))), (len(vectors), task.width, *task.outputs)
    fixed = task.fixed_outgoing
    a = np.broadcast_to(np.asarray(fixed), shape) if fixed is not None else None
    a = found[..., task.dim + task.trains_bias :].reshape(shape) if a is None else a
    root = None if task.root is None else np.asarray(task.root)
    described = describe_neurons(found[..., : task.dim], a, np.asarray(task.teacher.incoming), root)
    if task.trains_bias:
        output = ("output",) if task.outputs else ()
        offset = vectors[:, -math.prod(task.outputs) :].reshape(len(vectors), *task.outputs)
        described |= {"bias": (("student",), found[..., task.dim]), "offset": (output, offset)}
    return described
