"""An instance: a random task with its loss written plainly, and critical points of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.papers.promises.random_points import (
    CRITICAL,
    FARTHEST,
    POLISHING,
    dead_neuron,
    find_critical,
    kept,
    random_starts,
)
from understudy.tasks.task import Task

STARTS = 24
"""Starts of each search."""


@dataclass(frozen=True)
class Instance:
    """A random task, the same loss written plainly, and what is known of its points.

    `narrow`: the task with a neuron less, whose points can be split; `proxy`, `narrow_proxy`: nearly the same losses,
    cheap to search; `extras`: points known otherwise, all there are unless `searched`; `radial`: zero modes of the
    plain loss that the task does not have; `analytic`: whether the loss is; `shortest`, `longest`: norms of incoming
    vectors (or, with data, sizes of pre-activations) between which the loss has derivatives and the plain one is exact.
    """

    task: Task
    loss: Callable[[Any], Any]
    narrow: Task | None = None
    proxy: Task | None = None
    narrow_proxy: Task | None = None
    extras: Sequence[np.ndarray] = ()
    radial: int = 0
    analytic: bool = True
    searched: bool = True
    shortest: float = 0.0
    longest: float = np.inf
    tidy: Callable[[np.ndarray], np.ndarray] = field(default=lambda point: point)


@dataclass(frozen=True)
class Point:
    """A critical point, with where it comes from."""

    source: str
    vector: np.ndarray


def points_of(instance: Instance, rng: np.random.Generator) -> list[Point]:
    """About twenty critical points: searched from random starts, also after a descent, split, with a dead neuron,
    known."""
    from understudy.dynamics.descent import descend

    task = instance.task
    known = [Point("known", p) for p in instance.extras if np.linalg.norm(np.asarray(task.gradient(p))) <= CRITICAL]
    if not instance.searched:
        return [p for p in known if _has_derivatives(instance, p.vector)]
    cheap = instance.proxy or task
    starts = _starts(instance, rng)
    found = [Point("search", p) for p in kept(*_search(task, cheap, starts), instance.tidy, 10)]
    lower, _ = descend(cheap, _starts(instance, rng), 200, 3e-2)
    found += [Point("descent", p) for p in kept(*_search(task, cheap, lower, downhill=True), instance.tidy, 10)]
    if instance.narrow is not None:
        found += _from_narrow(instance, rng)
    return [p for p in found + known if _has_derivatives(instance, p.vector)]


def _starts(instance: Instance, rng: np.random.Generator) -> Any:
    return jnp.asarray(np.stack([instance.tidy(v) for v in random_starts(rng, STARTS, instance.task.size)]))


def _search(task: Task, cheap: Task, starts: Any, *, downhill: bool = False) -> tuple[Any, Any]:
    """Critical points from these starts: on the cheap loss first, where there is one, then polished."""
    points, norms = find_critical(cheap, starts, downhill=downhill)
    if cheap is task:
        return points, norms
    near = jnp.where(jnp.abs(points) <= FARTHEST, points, 0.0)  # what ran away is of no use
    return find_critical(task, task.flatten(cheap.unflatten(near)), POLISHING)


def _has_derivatives(instance: Instance, vector: np.ndarray) -> bool:
    hidden = np.abs(np.asarray(instance.task.hidden_values(jnp.asarray(vector))))
    if hidden.min(initial=np.inf) < instance.shortest:
        return False
    neurons = instance.task.neurons(vector)
    if neurons is None:
        return True
    norms = np.linalg.norm(neurons.incoming, axis=1)
    return bool(norms.min() >= instance.shortest and norms.max() <= instance.longest)


def _from_narrow(instance: Instance, rng: np.random.Generator) -> list[Point]:
    """Critical points of the narrower network with a neuron split at a random μ, sometimes at 0 or 1, or with a dead
    one."""
    from understudy.dynamics.descent import descend
    from understudy.networks import Deep, TwoLayer
    from understudy.surgery import split

    narrow, task = instance.narrow, instance.task
    assert narrow is not None
    cheap = instance.narrow_proxy or narrow
    starts = jnp.asarray(random_starts(rng, STARTS, narrow.size))
    lower, _ = descend(cheap, starts, 200, 3e-2)
    lowest = kept(*_search(narrow, cheap, lower, downhill=True), instance.tidy, 3)
    vectors = lowest + kept(*_search(narrow, cheap, starts), instance.tidy, 3)
    found: list[Point] = []
    for index, vector in enumerate(vectors):
        network = narrow.unflatten(jnp.asarray(vector))
        width = network.width if isinstance(network, TwoLayer) else len(network.biases[0])
        neuron = int(rng.integers(width))
        end = rng.random() < 0.2
        mu = float(rng.integers(2)) if end else float(rng.uniform(-1, 2))
        wide = split(network, {neuron: [mu, 1 - mu]}, layer=0)
        found.append(Point("split at the end" if end else "split", np.asarray(task.flatten(wide))))
        if index == 0 and isinstance(network, TwoLayer) and network.outgoing.ndim == 1:
            dead = _with_dead(instance, network, rng)
            found += [] if dead is None else [Point("dead", dead)]
        assert isinstance(network, (TwoLayer, Deep))
    return found


def _with_dead(instance: Instance, network: Any, rng: np.random.Generator) -> np.ndarray | None:
    from understudy.networks import TwoLayer

    task = instance.task

    def with_new(w: np.ndarray) -> TwoLayer:
        return TwoLayer(np.concatenate([network.incoming, w[None]]), np.concatenate([network.outgoing, [0.0]]))

    marked = TwoLayer(np.zeros((network.width + 1, network.dim)), np.eye(network.width + 1)[-1])
    place = int(np.argmax(np.asarray(task.flatten(marked))))
    found = dead_neuron(task, with_new, place, network.dim, rng)
    return None if found is None else np.asarray(task.flatten(found))
