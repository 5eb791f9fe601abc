"""Descents in representations: random starts moved downhill, and the projected gradient method of Sec. 3.3."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from understudy.dynamics.descent import descend
from understudy.regularised.representation import (
    RIDGE,
    Layers,
    Representations,
    project,
    representation_loss,
    to_representations,
    to_weights,
)
from understudy.tasks.regularised import Regularised


def random_representations(
    task: Regularised, seeds: Sequence[int], *, steps: int = 2000, best: int | None = None
) -> list[Layers]:
    """Starts for `optimise`: representations of random networks, moved downhill by Adam on L^r with a ridge.

    `best`: return only this many, those with the least L(Ψ_γ(Z)), in ascending order.
    """
    ridge = RIDGE * float(jnp.mean(jnp.sum(task.entry**2, axis=0)))
    space = Representations(task, jnp.asarray(ridge))
    begin = jnp.stack([space.flatten(to_representations(task, v)) for v in task.starts(seeds)])
    points, _ = descend(space, begin, steps, 2e-2)
    ends = [tuple(np.asarray(z) for z in space.unflatten(p)) for p in points]
    if best is None:
        return ends
    losses = [float(task.loss(to_weights(task, layers, ridge=ridge))) for layers in ends]
    return [ends[i] for i in np.argsort(losses)[:best]]


def projected_gradient(
    task: Regularised, layers: Sequence[np.ndarray], *, steps: int = 1000, rate: float = 1e-2, ridge: float = 1e-8
) -> tuple[Layers, np.ndarray]:
    """Z ← P_𝒵(Z - η ∇L^r(Z)) (Sec. 3.3), with η halved where the loss would rise. Returns the end and the losses.

    Gradients use the ridge; the losses are exact.
    """
    space = Representations(task, jnp.asarray(ridge))
    here = project(task, layers)
    losses = [representation_loss(task, here)]
    for _ in range(steps):
        slope = space.unflatten(space.gradient(space.flatten(here)))
        while rate > 1e-14:
            trial = project(task, [z - rate * np.asarray(g) for z, g in zip(here, slope, strict=True)])
            loss = representation_loss(task, trial)
            if loss < losses[-1]:
                here, rate = trial, 1.3 * rate
                losses.append(loss)
                break
            rate /= 2
        else:
            break
    return here, np.array(losses)
