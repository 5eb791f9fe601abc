"""Random tasks with samples, with and without weight decay."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from understudy.papers.promises import plain_losses as plain
from understudy.papers.promises.instances import STARTS, Instance
from understudy.papers.promises.random_points import find_critical, kept, random_starts


def two_layer_data(
    rng: np.random.Generator, *, activation: str, width: int, outputs: int = 0, cost: str = "squared", samples: int = 40
) -> Instance:
    """A two-layer network with a constant input on data of a random network like it, with noise."""
    from understudy.networks import TwoLayer
    from understudy.papers.few_neurons.tailored import log_cosh
    from understudy.tasks.empirical import Empirical, squared

    x = np.concatenate([rng.normal(size=(samples, 2)), np.ones((samples, 1))], axis=1)
    m = max(outputs, 1)
    sigma = plain.SIGMAS[activation]
    clean = np.asarray(sigma(jnp.asarray(x @ rng.normal(size=(3, width))))) @ rng.normal(size=(width, m))
    y = clean + 0.1 * rng.normal(size=(samples, m))
    chosen, written = (squared, plain.square_cost) if cost == "squared" else (log_cosh, plain.log_cosh_cost)

    def made(n: int) -> Empirical:
        example = TwoLayer(np.zeros((n, 3)), np.zeros((n, outputs) if outputs else n))
        return Empirical(example, x, y if outputs else y[:, 0], activation=activation, cost=chosen)

    arrays = (jnp.asarray(x), jnp.asarray(y), jnp.full(samples, 1 / samples))
    loss = plain.PlainSamples(*arrays, 0.0, sigma, (3, width, m), "layers", written)
    return Instance(made(width), loss, made(width - 1))


def deep_data(rng: np.random.Generator, *, activation: str, widths: Sequence[int], samples: int = 40) -> Instance:
    """A deep network with biases on data of a random network like it, with noise."""
    from understudy.networks import Deep
    from understudy.tasks.empirical import Empirical

    x = rng.normal(size=(samples, widths[0]))
    teacher = Deep.glorot(widths, seed=int(rng.integers(2**31)), bias=0.5)
    y = np.asarray(teacher(jnp.asarray(x), activation)) + 0.1 * rng.normal(size=(samples, widths[-1]))

    def made(sizes: Sequence[int]) -> Empirical:
        return Empirical(Deep.glorot(sizes), x, y, activation=activation)

    arrays = (jnp.asarray(x), jnp.asarray(y), jnp.full(samples, 1 / samples))
    loss = plain.PlainSamples(*arrays, 0.0, plain.SIGMAS[activation], tuple(widths), "deep", plain.square_cost)
    return Instance(made(widths), loss, made([widths[0], widths[1] - 1, *widths[2:]]))


def regularised(
    rng: np.random.Generator, *, activation: str, widths: Sequence[int], penalty: float, samples: int = 20
) -> Instance:
    """A deep network with weight decay on random data: with a dead neuron added, or with ReLU made critical by its
    targets.

    Most critical points of ReLU networks with weight decay have dead neurons or sit on kinks, where there is no
    Hessian.
    """
    from understudy.tasks.regularised import Regularised

    x = rng.normal(size=(samples, widths[0]))
    y = np.sin(x @ rng.normal(size=(widths[0], widths[-1])) * 1.5) + 0.3 * rng.normal(size=(samples, widths[-1]))
    known = None
    if activation == "relu":
        known, y = _made_critical(rng, x, widths, penalty)
    task = Regularised(x, y, tuple(widths[1:-1]), penalty=penalty, activation=activation)
    arrays = (jnp.asarray(x), jnp.asarray(y), jnp.full(samples, 1 / samples))
    loss = plain.PlainSamples(*arrays, penalty, plain.SIGMAS[activation], tuple(widths), "rows", plain.square_cost)
    if known is not None:
        return Instance(task, loss, extras=[known], searched=bool(rng.random() < 0.1), shortest=1e-4, analytic=False)
    smaller = task.with_hidden((widths[1] - 1, *widths[2:-1]))
    points = kept(*find_critical(smaller, jnp.asarray(random_starts(rng, STARTS, smaller.size))), lambda p: p, 4)
    wider = [smaller.widened(jnp.asarray(point), task.widths[1:-1])[1] for point in points]
    return Instance(task, loss, extras=[np.asarray(point) for point in wider])


def _made_critical(
    rng: np.random.Generator, x: np.ndarray, widths: Sequence[int], penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """A random two-layer ReLU network with one output, and targets for which it is critical.

    The residuals r solve Jᵀr = -λNθ, J the derivative of the outputs. Stretching a neuron changes no output, so it must
    not change the norm either: outgoing weights are as long as incoming vectors.
    """
    w = rng.normal(size=(widths[1], widths[0] + 1))
    a = np.linalg.norm(w, axis=1) * rng.choice([-1.0, 1.0], size=len(w))
    c = 0.5 * rng.normal()
    inputs = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    hidden = inputs @ w.T
    active = np.maximum(hidden, 0.0)
    by_w = ((hidden > 0) * a)[:, :, None] * inputs[:, None, :]
    jacobian = np.concatenate([by_w.reshape(len(x), -1), active, np.ones((len(x), 1))], axis=1)
    theta = np.concatenate([w.ravel(), a, [c]])
    residual = 10 ** rng.uniform(-1, 0.5) * rng.normal(size=len(x))
    for _ in range(2):  # twice, for rounding
        missing = -penalty * len(x) * theta - jacobian.T @ residual
        residual = residual + np.linalg.lstsq(jacobian.T, missing, rcond=1e-12)[0]
    return theta, (active @ a + c - residual)[:, None]
