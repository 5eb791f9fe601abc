"""Where the flow goes from near a point: push both ways along a direction, follow the flow, certify and name its end.

A destination is named after its function, not its weights: parts of split neurons, permutations and signs do not
matter. Known functions are listed in a catalogue. New ones are added when they are found, so that every end has a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from understudy.dynamics.divergence import find_divergence
from understudy.dynamics.flow import FlowOptions, Trajectory, follow
from understudy.points.certificate import Certificate, certify
from understudy.points.infinity import Escape, describe_escape, escape_by_scale
from understudy.points.plateaus import nearest_critical
from understudy.points.small_losses import refined_loss
from understudy.tasks.task import Task

_SAME_FUNCTION = 1e-6
"""Two functions are one if their mean squared distance is below this share of the larger of their losses."""

_SAME_LOSS = 1e-9
"""Relative difference of losses up to which two points may be one up to symmetry."""

_PERFECT = 1e-18
"""Loss per mean squared target up to which a destination is a global minimum: rounding squared, with a reserve."""


@dataclass(frozen=True)
class Destination:
    """One push and the end of its flow.

    - `origin`: the position of its start; `sign`: +1 or -1 along the direction.
    - `parameters`, `loss`, `certificate`: the end; `distance`: how far the flow has moved the parameters.
    - `name`: of the function reached; `escape`: how the run goes to infinity, if it does.
    """

    origin: int
    sign: int
    parameters: Any = field(repr=False)
    loss: float
    certificate: Certificate = field(repr=False)
    name: str
    distance: float
    escape: Escape | None
    trajectory: Trajectory = field(repr=False)

    @property
    def kind(self) -> str:
        """The certificate's verdict."""
        return self.certificate.kind


@dataclass
class Catalogue:
    """Names of functions: known ones, and new ones in the order in which they are found (`new 1`, `new 2`, …).

    A symmetry of the task can turn one point into another that computes another function, such as a copy of another
    teacher. Such points have the same loss and the same Hessian spectrum, and share a name: `new 1, up to symmetry`.
    """

    task: Task
    known: dict[str, Any] = field(default_factory=dict)

    def name(self, parameters: Any, loss: float, prefix: str = "new") -> str:
        """The name of the function that these parameters compute; a new function is added."""
        if loss - self.task.lower_bound <= _PERFECT * self.task.target_scale:
            return "global minimum"
        allowed = _SAME_FUNCTION * (abs(loss) or self.task.target_scale)
        for name, other in self.known.items():
            if self.task.function_distance(parameters, other) <= allowed:
                return name
        if prefix == "new" and (twin := self._equivalent(parameters, loss)) is not None:
            return f"{twin}, up to symmetry"
        fresh = f"{prefix} {1 + sum(n.startswith(prefix) for n in self.known)}"
        self.known[fresh] = parameters
        return fresh

    def _equivalent(self, parameters: Any, loss: float) -> str | None:
        """The first known point with this loss and this Hessian spectrum, if there is one."""
        for name, other in self.known.items():
            try:
                one, two = self.task.flatten(other), self.task.flatten(parameters)
            except ValueError:  # a network of another width
                continue
            if abs(float(self.task.loss(one)) - loss) <= _SAME_LOSS * abs(loss):
                first, second = self._spectrum(one), self._spectrum(two)
                if np.abs(first - second).max() <= _SAME_FUNCTION * np.abs(first).max():
                    return name
        return None

    def _spectrum(self, vector: Any) -> np.ndarray:
        return np.linalg.eigvalsh(np.asarray(self.task.prepared(vector).hessian(vector)))


def least_direction(task: Task, parameters: Any) -> tuple[float, Float[np.ndarray, " P"]]:
    """The least eigenvalue of the Hessian and its unit eigenvector, signed so that its largest entry is positive."""
    local, origin, values, vectors = _spectrum_at(task, task.flatten(parameters))
    direction = np.asarray(jax.jvp(local.point, (origin,), (jnp.asarray(vectors[:, 0]),))[1])
    return float(values[0]), direction * np.sign(direction[np.argmax(np.abs(direction))])


def _spectrum_at(task: Task, vector: Any) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """The chart at a point, the point in it, and eigenvalues and eigenvectors of the Hessian there."""
    local, origin = task.prepared(vector).chart(vector)
    hessian = np.asarray(local.hessian(origin))
    return local, origin, *np.linalg.eigh((hessian + hessian.T) / 2)


def push(task: Task, parameters: Any, direction: int = 0, sign: int = 1, size: float = 1e-3) -> Float[np.ndarray, " P"]:
    """Move a point a little along an eigenvector of its Hessian.

    **Arguments**

    - `parameters`: a network or a flat vector.
    - `direction`: which eigenvector, counted from the least eigenvalue. It is signed so that its largest entry is
      positive. `sign`: 1 or -1, along it or against it.
    - `size`: length of the step, relative to 1 + the norm of the parameters.

    Returns the flat vector.
    """
    vector = task.flatten(parameters)
    local, origin, _, vectors = _spectrum_at(task, vector)
    if not 0 <= direction < len(vectors):
        raise ValueError(f"There are directions 0 to {len(vectors) - 1}; received {direction}.")
    axis = vectors[:, direction]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    length = size * (1 + np.linalg.norm(np.asarray(vector)))
    return np.asarray(local.point(origin + sign * length * jnp.asarray(axis)))


def follow_pushes(
    task: Task,
    points: Sequence[Any],
    directions: Sequence[np.ndarray],
    *,
    size: float = 1e-3,
    catalogue: Catalogue | None = None,
    options: FlowOptions | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> list[Destination]:
    """Push every point by ± `size` along its direction and follow the flow to its end.

    **Arguments**

    - `points`: networks or flat vectors; `directions`: unit vectors in flat parameters, as from `least_direction`.
    - `catalogue`: names of known functions; new functions are added to it.
    - `watch(finished, total)` is called when a run ends.

    The result has two destinations for each point: first the push along +, then along -.
    """
    if len(points) != len(directions) or not points:
        raise ValueError(
            f"Each point needs a direction; received {len(points)} points and {len(directions)} directions."
        )
    catalogue = Catalogue(task) if catalogue is None else catalogue
    starts = [np.asarray(task.flatten(p)) for p in points]
    pushes = [
        (jnp.asarray(v), s * size * jnp.asarray(d)) for v, d in zip(starts, directions, strict=True) for s in (1, -1)
    ]
    pushed = np.stack([np.asarray(task.retract(point, step)) for point, step in pushes])
    ended: dict[int, Trajectory] = {}
    # One run at a time: runs to infinity take twenty times as many steps as the others, and need finer quadrature.
    for index, trajectory in follow(task, pushed, options, lanes=1):
        ended[index] = trajectory
        if watch is not None:
            watch(len(ended), len(pushed))
    found = []
    for index in range(len(pushed)):
        end = ended[index]
        divergence = find_divergence(end, task)
        escape = describe_escape(task, end, divergence) if divergence is not None else escape_by_scale(end)
        vector, loss = (end.vector, end.loss) if escape is not None else _polished(task, end)
        parameters = task.unflatten(jnp.asarray(vector))
        if escape is not None:
            name = catalogue.name(parameters, loss, "infinity")
            words = escape.words
        else:
            name, words = catalogue.name(parameters, loss), None
        certificate = certify(task, vector, diverging=words)
        distance = float(np.linalg.norm(vector - starts[index // 2]))
        sign = 1 if index % 2 == 0 else -1
        found.append(Destination(index // 2, sign, parameters, loss, certificate, name, distance, escape, end))
    return found


def _polished(task: Task, end: Trajectory) -> tuple[np.ndarray, float]:
    """The limit of a run that stopped without a jump: Newton's method on the gradient, if it stays next to the end.

    On a line of minima no jump is justified, and the flow leaves errors of 1e-14 / (least curvature) across the line.
    """
    if end.ending in ("polished", "settled"):
        return end.vector, refined_loss(task, end.vector, end.loss)
    prepared = task.prepared(jnp.asarray(end.vector))
    vector, residual = nearest_critical(prepared, end.vector, steps=20)
    near = np.linalg.norm(vector - end.vector) <= 1e-3 * (1 + np.linalg.norm(end.vector))
    if not near or residual > end.gradient_norm:
        return end.vector, refined_loss(task, end.vector, end.loss)
    return vector, refined_loss(task, vector, float(prepared.loss(jnp.asarray(vector))))
