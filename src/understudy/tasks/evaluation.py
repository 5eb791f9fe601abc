"""Compiled evaluations at one point, shared by all who look at one point at a time: a task is compiled once for them all."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float

from understudy.tasks.task import Evaluation, Task


@eqx.filter_jit
def evaluate_at(task: Task, vector: Float[Array, " P"]) -> Evaluation:
    """Loss, gradient and Hessian."""
    return task.evaluate(vector)


@eqx.filter_jit
def slope_at(task: Task, vector: Float[Array, " P"]) -> Float[Array, " P"]:
    """-dq/dt along the gradient flow in the coordinates of a chart (the gradient in a flat space)."""
    return task.slope(vector)


@eqx.filter_jit
def tangents_at(task: Task, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
    """Tangents of the task's continuous symmetries."""
    return task.symmetry_tangents(vector)
