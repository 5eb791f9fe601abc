"""Kinds of tasks that have certificates: a random task of each, its loss written plainly, and critical points of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.papers.promises import plain_losses as plain
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

    `narrow`: the task with a neuron less, whose points can be split; `proxy`, `narrow_proxy`: nearly the same losses, cheap to
    search; `extras`: points known otherwise, all there are unless `searched`; `radial`: zero
    modes of the plain loss that the task does not have; `shortest`, `longest`: norms of incoming vectors (or, with
    data, sizes of pre-activations) between which the loss has derivatives and the plain one is exact.
    """

    task: Task
    loss: Callable[[Any], Any]
    narrow: Task | None = None
    proxy: Task | None = None
    narrow_proxy: Task | None = None
    extras: Sequence[np.ndarray] = ()
    radial: int = 0
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
    """About twenty critical points: searched from random starts, also after a descent, split, with a dead neuron, known."""
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
    from understudy.tasks.regularised import Regularised

    if isinstance(instance.task, Regularised):
        hidden = np.abs(np.asarray(instance.task.hidden_values(jnp.asarray(vector))))
        return bool(hidden.min() >= instance.shortest)
    network = instance.task.unflatten(jnp.asarray(vector))
    if not hasattr(network, "incoming"):
        return True
    norms = np.linalg.norm(np.asarray(network.incoming), axis=1)
    return bool(norms.min() >= instance.shortest and norms.max() <= instance.longest)


def _from_narrow(instance: Instance, rng: np.random.Generator) -> list[Point]:
    """Critical points of the narrower network with a neuron split at a random μ, sometimes at 0 or 1, or with a dead one."""
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


# -- population -------------------------------------------------------------------------------------------------------


def population(
    rng: np.random.Generator,
    *,
    activation: str,
    width: int,
    teachers: int,
    dim: int,
    outputs: int = 0,
    fixed: bool = False,
    tilted: bool = False,
    teacher_activation: str | None = None,
    orthonormal: bool = False,
) -> Instance:
    """A student of random unit teachers; `tilted` inputs have a random covariance; `orthonormal` teachers half of the time."""
    import understudy as us

    v = rng.normal(size=(teachers, dim))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    b = rng.uniform(0.5, 1.5, size=(teachers, max(outputs, 1))) * rng.choice([-1.0, 1.0], size=(teachers, 1))
    straight = orthonormal and rng.random() < 0.5
    if straight:
        v, b = np.linalg.qr(rng.normal(size=(dim, dim)))[0][:teachers], np.ones((teachers, 1))
    mixing = rng.normal(size=(dim, dim)) / np.sqrt(dim)
    covariance = 0.5 * np.eye(dim) + mixing @ mixing.T if tilted else None
    teacher = us.Teacher(v, b if outputs else b[:, 0], teacher_activation or activation)
    weights = np.ones(width) if fixed else None
    on_grid = (activation in plain.SIGMAS and activation != "relu") or ":" in activation

    def made(n: int) -> us.Population:
        outgoing: Any = "trained" if weights is None else weights[:n]
        task = us.Population(teacher, n, activation=activation, outgoing=outgoing, covariance=covariance)
        # One resolution for all points, so that nothing is compiled again as norms grow.
        return task.prepared(jnp.full(task.size, 2.5 / np.sqrt(dim))) if on_grid else task

    loss: plain.PlainSamples | plain.PlainPopulation
    if on_grid:
        loss = _on_grid(v, b, activation, teacher_activation or activation, width)
    else:
        loss = plain.PlainPopulation(
            jnp.asarray(v),
            jnp.asarray(b),
            jnp.eye(dim) if covariance is None else jnp.asarray(covariance),
            None if weights is None else jnp.asarray(weights)[:, None],
            plain.PAIRS[activation],
            width,
        )
    task = made(width)
    extras = [_copy_average(task, v, width, rng) for _ in range(2)] if straight and not fixed else ()
    narrow = made(width - 1) if not fixed and width > 1 else None
    shortest = 1e-3 if activation == "relu" else 0.0
    proxy, narrow_proxy = (_proxy(v, b, teacher, activation, n) if on_grid else None for n in (width, width - 1))
    longest = 2.2 if on_grid else np.inf
    return Instance(task, loss, narrow, proxy, narrow_proxy, extras, shortest=shortest, longest=longest)


def _on_grid(v: np.ndarray, b: np.ndarray, student: str, teacher: str, width: int) -> plain.PlainSamples:
    points, weights = plain.plane_grid()
    targets = np.asarray(_sigma(teacher)(jnp.asarray(points @ v.T))) @ b
    arrays = (jnp.asarray(points), jnp.asarray(targets), jnp.asarray(weights))
    return plain.PlainSamples(*arrays, 0.0, _sigma(student), (2, width, 1), "neurons", plain.square_cost)


def _proxy(v: np.ndarray, b: np.ndarray, teacher: Any, activation: str, width: int) -> Task:
    """The task on a coarse grid, wrong by 1e-7, with samples instead of quadratures."""
    from understudy.networks import TwoLayer
    from understudy.tasks.empirical import Empirical

    points, weights = plain.plane_grid(step=0.6, reach=6.0)
    targets = (np.asarray(teacher.activation(points @ v.T)) @ b)[:, 0]
    example = TwoLayer(np.zeros((width, 2)), np.zeros(width))
    return Empirical(example, points, targets, activation=activation, weights=weights)


def _half_tanh(x: Any) -> Any:
    return jnp.tanh(x / 2)


def _sigma(name: str) -> Callable[[Any], Any]:
    return _half_tanh if name == "tanh:0.5" else plain.SIGMAS[name]


def _copy_average(task: Any, v: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """A copy-average point: a random partition of the teachers, students in random order and with random signs."""
    from understudy.networks import TwoLayer
    from understudy.theory import copy_average

    cuts = np.sort(rng.choice(np.arange(1, len(v)), size=width - 1, replace=False))
    sizes = [int(s) for s in np.diff(np.concatenate([[0], cuts, [len(v)]]))]
    point = copy_average("erf", partition=sizes)
    order, signs = rng.permutation(width), rng.choice([-1.0, 1.0], size=width)
    w = np.asarray(point.incoming)[order] @ v[rng.permutation(len(v))]
    return np.asarray(task.flatten(TwoLayer(signs[:, None] * w, signs * np.asarray(point.outgoing)[order])))


# -- data -------------------------------------------------------------------------------------------------------------


def two_layer_data(
    rng: np.random.Generator, *, activation: str, width: int, outputs: int = 0, cost: str = "squared", samples: int = 40
) -> Instance:
    """A two-layer network with a constant input on data of a random network like it, with noise."""
    from understudy.networks import TwoLayer
    from understudy.tasks.empirical import Empirical, squared
    from understudy.tasks.tailored import log_cosh

    x = np.concatenate([rng.normal(size=(samples, 2)), np.ones((samples, 1))], axis=1)
    m = max(outputs, 1)
    sigma = _sigma(activation)
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
    loss = plain.PlainSamples(*arrays, 0.0, _sigma(activation), tuple(widths), "deep", plain.square_cost)
    return Instance(made(widths), loss, made([widths[0], widths[1] - 1, *widths[2:]]))


def regularised(
    rng: np.random.Generator, *, activation: str, widths: Sequence[int], penalty: float, samples: int = 20
) -> Instance:
    """A deep network with weight decay on random data: with a dead neuron added, or with ReLU made critical by its targets.

    Most critical points of ReLU networks with weight decay have dead neurons or sit on kinks, where there is no Hessian.
    """
    from understudy.tasks.regularised import Regularised

    x = rng.normal(size=(samples, widths[0]))
    y = np.sin(x @ rng.normal(size=(widths[0], widths[-1])) * 1.5) + 0.3 * rng.normal(size=(samples, widths[-1]))
    known = None
    if activation == "relu":
        known, y = _made_critical(rng, x, widths, penalty)
    task = Regularised(x, y, tuple(widths[1:-1]), penalty=penalty, activation=activation)
    arrays = (jnp.asarray(x), jnp.asarray(y), jnp.full(samples, 1 / samples))
    loss = plain.PlainSamples(*arrays, penalty, _sigma(activation), tuple(widths), "rows", plain.square_cost)
    if known is not None:
        return Instance(task, loss, extras=[known], searched=bool(rng.random() < 0.1), shortest=1e-4)
    smaller = task.with_hidden((widths[1] - 1, *widths[2:-1]))
    points = kept(*find_critical(smaller, jnp.asarray(random_starts(rng, STARTS, smaller.size))), lambda p: p, 4)
    wider = [smaller.widened(jnp.asarray(point), task.widths[1:-1])[1] for point in points]
    return Instance(task, loss, extras=[np.asarray(point) for point in wider])


def _made_critical(
    rng: np.random.Generator, x: np.ndarray, widths: Sequence[int], penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """A random two-layer ReLU network with one output, and targets for which it is critical.

    The residuals r solve Jᵀr = -λNθ, J the derivative of the outputs. Stretching a neuron changes no output, so it must not
    change the norm either: outgoing weights are as long as incoming vectors.
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


# -- sphere -----------------------------------------------------------------------------------------------------------


def sphere(rng: np.random.Generator, *, width: int, teachers: int, dim: int, degree: int, loss: str) -> Instance:
    """Students on the unit sphere with random teachers, orthonormal ones half of the time."""
    from understudy.tasks.sphere import Sphere

    v = rng.normal(size=(teachers, dim))
    if rng.random() < 0.5 and teachers <= dim:
        v = np.linalg.qr(rng.normal(size=(dim, dim)))[0][:teachers]
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    task = Sphere(v, width, activation=f"hermite:{degree}", loss=loss)  # type: ignore[arg-type]
    written = plain.PlainSphere(jnp.asarray(v), 1.0 if loss == "squared" else 0.0, degree)

    def unit(point: np.ndarray) -> np.ndarray:
        rows = point.reshape(width, dim)
        for _ in range(2):
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return rows.ravel()

    return Instance(task, written, radial=width, tidy=unit)


MAKERS: dict[str, Callable[..., Instance]] = {
    "population": population,
    "two-layer data": two_layer_data,
    "deep data": deep_data,
    "regularised": regularised,
    "sphere": sphere,
}

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "erf": ("population", {"activation": "erf", "width": 3, "teachers": 4, "dim": 4, "orthonormal": True}),
    "erf, fixed outgoing": (
        "population",
        {"activation": "erf", "width": 3, "teachers": 4, "dim": 4, "fixed": True, "orthonormal": True},
    ),
    "erf, two outputs, tilted inputs": (
        "population",
        {"activation": "erf", "width": 2, "teachers": 3, "dim": 3, "outputs": 2, "tilted": True},
    ),
    "erf, more dimensions than neurons": (
        "population",
        {"activation": "erf", "width": 2, "teachers": 3, "dim": 8},
    ),
    "relu": ("population", {"activation": "relu", "width": 2, "teachers": 3, "dim": 3}),
    "relu, fixed outgoing": (
        "population",
        {"activation": "relu", "width": 3, "teachers": 3, "dim": 3, "fixed": True},
    ),
    "quadratic": ("population", {"activation": "quadratic", "width": 2, "teachers": 3, "dim": 2}),
    "softplus": ("population", {"activation": "softplus", "width": 2, "teachers": 3, "dim": 2}),
    "tanh": ("population", {"activation": "tanh:0.5", "width": 3, "teachers": 3, "dim": 2}),
    "gelu from softplus": (
        "population",
        {"activation": "gelu", "width": 2, "teachers": 3, "dim": 2, "teacher_activation": "softplus"},
    ),
    "data, two layers": ("two-layer data", {"activation": "softplus", "width": 2}),
    "data, two outputs, log cosh": (
        "two-layer data",
        {"activation": "tanh", "width": 2, "outputs": 2, "cost": "log cosh"},
    ),
    "data, deep": ("deep data", {"activation": "tanh", "widths": [2, 2, 2, 1]}),
    "regularised, deep tanh": ("regularised", {"activation": "tanh", "widths": [2, 2, 2, 1], "penalty": 0.01}),
    "regularised, relu": ("regularised", {"activation": "relu", "widths": [2, 2, 1], "penalty": 0.003}),
    "sphere, squared": ("sphere", {"width": 3, "teachers": 3, "dim": 3, "degree": 4, "loss": "squared"}),
    "sphere, correlation": ("sphere", {"width": 2, "teachers": 2, "dim": 5, "degree": 3, "loss": "correlation"}),
}


def make(kind: str, rng: np.random.Generator) -> Instance:
    """A random task of that kind."""
    maker, settings = KINDS[kind]
    return MAKERS[maker](rng, **settings)
