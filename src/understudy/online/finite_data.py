"""Finite data instead of one pass: how the minima of a population loss move when they are fitted on N samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

from understudy.dynamics import FlowOptions, follow
from understudy.networks import TwoLayer
from understudy.points import Certificate, certify
from understudy.tasks.empirical import Empirical
from understudy.tasks.population import Population


@dataclass(frozen=True)
class MovedMinimum:
    """A minimum of the population loss, followed on N samples.

    - `samples`: N; `distance`: how far the parameters moved (Euclidean).
    - `training_loss`, `population_loss`: of the end; `start_loss`: the population loss of the minimum itself.
    - `certificate`: of the end as a point of the loss on the samples; `network`: the end.
    """

    samples: int
    distance: float
    training_loss: float
    population_loss: float
    start_loss: float
    certificate: Certificate = field(repr=False)
    network: TwoLayer = field(repr=False)

    @property
    def kind(self) -> str:
        """What the end is: `"minimum"`, `"strict saddle"`, …"""
        return self.certificate.kind


def sampled(task: Population, samples: int, *, seed: int = 0, noise: float = 0.0) -> Empirical:
    """The loss of the task on N inputs x ~ N(0, I), labelled by the teacher, with label noise if given.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2), width=2)
    >>> sampled(task, 10).inputs.shape
    (10, 2)
    """
    if task.root is not None or not task.trains_outgoing:
        raise ValueError("Samples are drawn for tasks with isotropic inputs and trained outgoing weights.")
    if samples < 1:
        raise ValueError(f"samples must be a positive whole number; received {samples!r}.")
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((samples, task.dim))
    y = np.asarray(task.teacher.network(jnp.asarray(x), task.teacher.activation))
    example = TwoLayer(np.zeros((task.width, task.dim)), np.zeros((task.width, *task.outputs)))
    return Empirical(example, x, y + noise * rng.standard_normal(y.shape), activation=task.activation)


def follow_on_samples(
    task: Population, minimum: TwoLayer, samples: Sequence[int], *, seed: int = 0, noise: float = 0.0
) -> list[MovedMinimum]:
    """Follow the gradient flow on N samples from a minimum of the population loss to its end, for each N.

    The first N samples of one sequence are used, so larger sets contain the smaller ones. The minimum moves by about
    N^(-½). If N is small the minimum may vanish, and the flow goes elsewhere: see `distance` and `certificate`.
    """
    start_loss = float(task.loss(minimum))
    largest = sampled(task, max(samples), seed=seed, noise=noise)
    found = []
    for count in samples:
        data = Empirical(minimum, largest.inputs[:count], largest.targets[:count], activation=task.activation)
        vector = np.asarray(data.flatten(minimum))
        _, run = next(iter(follow(data, vector[None], FlowOptions(snapshots=0, max_time=1e8))))
        end = data.unflatten(jnp.asarray(run.vector))
        found.append(
            MovedMinimum(
                samples=int(count),
                distance=float(np.linalg.norm(run.vector - vector)),
                training_loss=float(run.loss),
                population_loss=float(task.loss(end)),
                start_loss=start_loss,
                certificate=certify(data, run.vector),
                network=end,
            )
        )
    return found
