"""Minibatch training of any network, all seeds in one compiled loop: a scan over the steps of an epoch for every seed.

Every array of parameters has a leading axis for the seeds. Each seed sees the data in its own order. This order depends
neither on the number of other seeds nor on interruptions of the training.

Seeds are trained one after another, each for many steps, so that its weights stay in the processor's cache. A step of
all seeds at once would fetch the weights of every network from memory at each step. `workers` threads share the seeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from understudy.dynamics.optimizers import Optimizer

Cost = Callable[[Any, Array, Array], Array]
"""cost(parameters of one network, inputs, targets): the mean cost of a batch, a number."""


@dataclass(frozen=True)
class Training:
    """The state of a training: parameters and optimizer state, both with a leading seed axis, and the steps done."""

    parameters: Any
    state: Any
    step: int = 0


def stack(networks: Sequence[Any]) -> Any:
    """Networks of equal shapes as one network with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)


class Trainer:
    """Train one network per seed on minibatches.

    **Arguments**

    - `cost`, `optimizer`: the cost to minimise, and the rule for the steps.
    - `inputs`, `targets`: (N, …), the same for all seeds; or with `own` (seeds, N, …), separate data for each seed.
    - `batch`, `steps`: samples per batch and batches per epoch. Without `steps` an epoch goes through the data once. An
      epoch takes the data in a random order drawn from (seed, epoch). If it needs more batches, it draws further
      orders. The rest of the last order is not used.
    - `workers`: threads that share the seeds; the result does not depend on it.
    """

    def __init__(
        self,
        cost: Cost,
        optimizer: Optimizer,
        inputs: np.ndarray | Array,
        targets: np.ndarray | Array,
        seeds: Sequence[int],
        *,
        batch: int,
        steps: int | None = None,
        own: bool = False,
        workers: int = 1,
    ):
        count = inputs.shape[1] if own else inputs.shape[0]
        if not 1 <= batch <= count:
            raise ValueError(f"A batch has between 1 and {count} samples, the number given; received {batch}.")
        if own and not len(inputs) == len(targets) == len(seeds):
            raise ValueError(
                f"With own data each seed has its inputs and targets; received {len(inputs)} and {len(targets)} for "
                f"{len(seeds)} seeds."
            )
        if workers < 1:
            raise ValueError(f"Training needs at least one worker; received {workers}.")
        self.cost, self.optimizer, self.seeds, self.own = cost, optimizer, list(seeds), own
        self.batch, self.count = batch, count
        self.steps = count // batch if steps is None else steps
        bounds = np.linspace(0, len(self.seeds), min(workers, len(self.seeds)) + 1).astype(int)
        self._parts = [slice(a, b) for a, b in itertools.pairwise(bounds)]
        # The data of all seeds, concatenated: batches are gathered from the whole, as slicing out one seed would copy.
        self._data = tuple(
            jnp.asarray(a).reshape(-1, *a.shape[2:]) if own else jnp.asarray(a) for a in (inputs, targets)
        )
        self._epoch_drawn: tuple[int, np.ndarray] = (-1, np.zeros(0))

    def begin(self, networks: Sequence[Any]) -> Training:
        """The initial state: seed `seeds[i]` begins with `networks[i]`."""
        if len(networks) != len(self.seeds) or not networks:
            raise ValueError(
                f"Training needs one network for each seed; received {len(networks)} and {len(self.seeds)} seeds."
            )
        parameters = stack(networks)
        return Training(parameters, jax.vmap(self.optimizer.init)(parameters))

    def advance(self, training: Training, steps: int | None = None) -> tuple[Training, np.ndarray]:
        """Train for `steps` steps (default: to the end of the epoch). Also return the mean batch cost per seed."""
        within = training.step % self.steps
        count = self.steps - within if steps is None else steps
        if not 1 <= count <= self.steps - within:
            raise ValueError(f"Of this epoch {self.steps - within} steps are left; received {steps}.")
        order = self._order(training.step // self.steps)[:, within : within + count]
        inputs, targets = self._data
        (parameters, state), costs = self.share(
            lambda parameters, state, chosen: _stretch(
                self.cost, self.optimizer.step, parameters, state, inputs, targets, chosen
            ),
            training.parameters,
            training.state,
            order,
        )
        return Training(parameters, state, training.step + count), np.asarray(costs)

    def share(self, function: Callable[..., Any], *trees: Any) -> Any:
        """Apply `function` to trees with a leading seed axis; the workers share the seeds, and results are joined."""
        jobs = [jax.tree.map(lambda leaf, p=part: leaf[p], trees) for part in self._parts]
        if len(jobs) == 1:
            return jax.block_until_ready(function(*jobs[0]))
        with ThreadPoolExecutor(len(jobs)) as pool:
            found = list(pool.map(lambda job: jax.block_until_ready(function(*job)), jobs))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *found)

    def _order(self, epoch: int) -> np.ndarray:
        """The samples in each batch of an epoch, (seeds, steps, batch). The random draw counts epochs from 1."""
        if self._epoch_drawn[0] != epoch:
            orders = []
            for number, seed in enumerate(self.seeds):
                rng = np.random.default_rng([seed, epoch + 1])
                per = self.count // self.batch  # whole batches in one order of the data
                rounds = [
                    rng.permutation(self.count)[: per * self.batch].reshape(per, self.batch)
                    for _ in range(-(-self.steps // per))
                ]
                first = number * self.count if self.own else 0
                orders.append(first + np.concatenate(rounds)[: self.steps])
            self._epoch_drawn = epoch, np.stack(orders).astype(np.int32)
        return self._epoch_drawn[1]


@eqx.filter_jit
def _stretch(
    cost: Cost,
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    parameters: Any,
    state: Any,
    x: Array,
    y: Array,
    order: Int[Array, "seeds steps batch"],
) -> tuple[tuple[Any, Any], Array]:
    def one(seed: tuple[Any, Any, Array]) -> tuple[tuple[Any, Any], Array]:
        def advance(carry: tuple[Any, Any], index: Array) -> tuple[tuple[Any, Any], Array]:
            inputs, targets = (a.at[index].get(mode="promise_in_bounds") for a in (x, y))
            value, gradient = jax.value_and_grad(cost)(carry[0], inputs, targets)
            return step(*carry, gradient), value

        network, own_state, chosen = seed
        ended, values = jax.lax.scan(advance, (network, own_state), chosen)
        return ended, jnp.mean(values)

    return jax.lax.map(one, (parameters, state, order))


def train(
    cost: Cost,
    networks: Sequence[Any],
    inputs: np.ndarray | Array,
    targets: np.ndarray | Array,
    *,
    optimizer: Optimizer,
    batch: int,
    epochs: int,
    seeds: Sequence[int],
) -> Iterator[tuple[int, Any, np.ndarray]]:
    """Train one network per seed on shared data.

    After each epoch, yield (epoch, parameters with a leading seed axis, mean batch cost of each seed).
    """
    trainer = Trainer(cost, optimizer, inputs, targets, seeds, batch=batch)
    training = trainer.begin(networks)
    for epoch in range(1, epochs + 1):
        training, costs = trainer.advance(training)
        yield epoch, training.parameters, costs
