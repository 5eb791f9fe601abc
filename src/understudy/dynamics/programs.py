"""Compiled functions of tasks that are called many times.

Tasks are flattened once rather than at each call, which would cost as much as a gradient.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from understudy.tasks.task import Task

Kind = tuple[Any, tuple[Any, ...]]
"""What a compiled function depends on: the structure of a task, and its leaves with None in place of arrays."""


def taken_apart(task: Task) -> tuple[list[Any], Kind]:
    """The arrays of a task, and its kind."""
    leaves, structure = jax.tree.flatten(task)
    arrays = [leaf for leaf in leaves if eqx.is_array(leaf)]
    return arrays, (structure, tuple(None if eqx.is_array(leaf) else leaf for leaf in leaves))


def put_together(kind: Kind, arrays: list[Any]) -> Task:
    """The inverse of `taken_apart`, traceable."""
    structure, fixed = kind
    left = iter(arrays)
    return jax.tree.unflatten(structure, [next(left) if leaf is None else leaf for leaf in fixed])
