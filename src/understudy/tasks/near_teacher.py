"""The network next to a student that computes the teacher's function.

The loss of a student that has recovered its teacher is a difference of sums of order one, so rounding hides losses
below 1e-15. But there is a point next to it whose loss is zero because of its weights: every student neuron is a
teacher neuron (or has no outgoing weight). From the way to this point the loss follows to full relative precision; see
`points.small_losses.refined_loss`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from understudy.networks import TwoLayer

if TYPE_CHECKING:
    from understudy.tasks.population import Population

_NEAR = 1e-3
"""Largest distance of a neuron from its image, relative to the larger of both. Taylor's formula needs a short way."""


def nearby_teacher(task: "Population", vector: Any) -> Float[np.ndarray, " P"] | None:
    """The point next to `vector` that computes the teacher's function up to the rounding of its weights, or None.

    Students next to a teacher neuron (up to a sign or a scale that the activation allows) become this neuron. The
    outgoing weights of all students at one teacher get its outgoing weight as their sum. Other students get the
    outgoing weight zero, if theirs is small.
    """
    if task.activation != task.teacher.activation:
        return None
    w, c, a, _ = task.parts(np.asarray(vector))
    n, f = task.width, task.teacher
    rows = np.column_stack([w, np.zeros(n) if c is None else np.broadcast_to(np.asarray(c), (n,))])
    targets = np.column_stack([f.incoming, np.zeros(f.width) if f.bias is None else f.bias])
    a, b = (
        np.broadcast_to(np.asarray(a), (n, *task.outputs)).reshape(n, -1),
        np.asarray(f.outgoing).reshape(f.width, -1),
    )
    offset = np.zeros(task.outputs) if f.offset is None else np.asarray(f.offset)
    if not task.trains_bias and np.any(offset != 0):
        return None

    scales = _scales(task, rows, targets)
    images = scales[:, :, None] * targets[None]
    lengths = np.maximum(np.linalg.norm(rows, axis=1)[:, None], np.linalg.norm(targets, axis=1)[None])
    gaps = np.linalg.norm(rows[:, None] - images, axis=2) / np.where(lengths > 0, lengths, 1.0)
    if not task.trains_bias:  # then a bias cannot follow
        gaps = np.where(images[:, :, -1] == rows[:, None, -1], gaps, np.inf)
    closest = np.argmin(gaps, axis=1)
    near = gaps[np.arange(n), closest] <= _NEAR
    moved = np.where(near[:, None], images[np.arange(n), closest], rows)
    outgoing = _outgoing(a, b, _shares(task, scales, closest, near), task.trains_outgoing)
    if outgoing is None:
        return None
    biases, level = (moved[:, -1], offset) if task.trains_bias else (None, None)
    point = TwoLayer(moved[:, :-1], outgoing.reshape(n, *task.outputs), biases, level)
    return np.asarray(task.flatten(point))


def _scales(task: "Population", rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The factor (n, k) by which a teacher neuron is multiplied to come closest to a student with the same function."""
    products = rows @ targets.T
    squares = np.sum(targets**2, axis=1)
    free = task.activation.homogeneity is not None and task.trains_outgoing
    if free and (task.trains_bias or not np.any(targets[:, -1])):
        ratios = products / np.where(squares > 0, squares, 1.0)
        return ratios if task.activation.parity is not None else np.maximum(ratios, 0.0)
    signs = np.where(products < 0, -1.0, 1.0)
    return signs if task.activation.parity is not None else np.ones_like(signs)


def _shares(task: "Population", scales: np.ndarray, closest: np.ndarray, near: np.ndarray) -> np.ndarray:
    """g (n, k): student i with outgoing weight 1 contributes g_ij times the activation of teacher j."""
    degree = task.activation.homogeneity
    factors = np.abs(scales) ** (0 if degree is None else degree)
    if task.activation.parity == "odd":
        factors = factors * np.sign(scales)
    chosen = near[:, None] & (closest[:, None] == np.arange(scales.shape[1])[None])
    return np.where(chosen, factors, 0.0)


def _outgoing(a: np.ndarray, b: np.ndarray, shares: np.ndarray, trained: bool) -> np.ndarray | None:
    """The closest outgoing weights whose sums over students are those of the teachers; None if none are near."""
    alone = ~np.any(shares != 0, axis=1)
    moved = np.where(alone[:, None], 0.0, a)
    missing = b - shares.T @ moved
    squares = np.sum(shares**2, axis=0)
    moved = moved + shares @ (missing / np.where(squares > 0, squares, 1.0)[:, None])
    unreached = np.any((squares == 0)[:, None] & (b != 0))
    if unreached or np.abs(moved - a).max() > (_NEAR * np.abs(b).max() if trained else 0.0):
        return None
    return moved
