"""Points of tasks whose nature is known by construction, in ordinary and in other units."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.networks import Deep, TwoLayer
from understudy.networks.teacher import Teacher
from understudy.papers.promises.natures import Known
from understudy.tasks.empirical import Empirical
from understudy.tasks.population import Population
from understudy.tasks.regularised import Regularised
from understudy.tasks.sphere import Sphere

ACTIVATIONS = ("erf", "relu", "abs", "quadratic", "hermite:3", "softplus", "tanh")


class Kinked(eqx.Module):
    """A user's own network Σ_i a_i max(w_i·x, 0), of which nothing is known but its outputs."""

    weights: Float[Array, "n d"]
    outgoing: Float[Array, " n"]

    def __call__(self, x: Float[Array, "*samples d"], activation: Any = None) -> Float[Array, "*samples"]:
        """The outputs."""
        return jax.nn.relu(x @ self.weights.T) @ self.outgoing


def points(seed: int, each: int) -> Iterator[Known]:
    """`each` points of every kind."""
    rng = np.random.default_rng([seed, 2])
    for kind in (_zero_loss, _zero_loss_on_data, _splits, _kinks, _at_zero, _spheres):
        for index in range(each):
            yield kind(rng, index)


def _copies(rng: np.random.Generator, teacher: TwoLayer, extra: int) -> TwoLayer:
    """The teacher's neurons with outgoing weights shared out among copies (some shares zero or negative), in random
    order.

    Some of the `extra` neurons have no outgoing weight and any incoming vector, or cancel each other.
    """
    rows = [(w, a) for w, a in zip(np.asarray(teacher.incoming), np.asarray(teacher.outgoing), strict=True)]
    for _ in range(extra):
        if rng.random() < 0.3:
            rows.append((rng.normal(size=teacher.dim) * np.abs(rows[0][0]).max(), 0.0))
            continue
        i = int(rng.integers(teacher.width))
        w, a = rows[i]
        share = float(rng.choice([0.0, 0.25, 0.5, -1.0, 2.0]))
        rows[i] = (w, (1 - share) * a)
        rows.append((w, share * a))
    rows = [rows[i] for i in rng.permutation(len(rows))]
    return TwoLayer(np.stack([w for w, _ in rows]), np.array([a for _, a in rows]))


def _zero_loss(rng: np.random.Generator, index: int) -> Known:
    """Population losses at points that compute the teacher's function: global minima."""
    activation = ACTIVATIONS[index % len(ACTIVATIONS)]
    k, d = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    other = index % 3 == 2 and activation in ("erf", "relu", "abs", "quadratic")
    unit = 10.0 ** int(rng.integers(-9, 10)) if other else 1.0
    v = rng.normal(size=(k, d))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    b = unit * rng.uniform(0.5, 1.5, size=k) * rng.choice([-1.0, 1.0], size=k)
    student = _copies(rng, TwoLayer(v, b), int(rng.integers(0, 4)))
    task = Population(Teacher(v, b, activation), student.width)
    words = f"{activation}, {k} teachers, {student.width} students, outputs in units of {unit:.0e}"
    return Known("zero loss" + (", other units" if other else ""), words, task, student, "minimum", regular=True)


def _zero_loss_on_data(rng: np.random.Generator, index: int) -> Known:
    """Networks on data that they have made: global minima, also where neurons sit on kinks."""
    unit, length = (10.0 ** rng.integers(-9, 10, size=2)) if index % 3 == 2 else np.ones(2)
    x = rng.normal(size=(12, 3)) / length
    if index % 2:
        network: Any = Deep.glorot((3, 4, 2), seed=int(rng.integers(1000)), bias=0.3)
        task: Any = Empirical(network, x * length, network(jnp.asarray(x * length), "tanh"), activation="tanh")
        return Known("zero loss on data", "deep tanh", task, network, "minimum")
    w = length * rng.normal(size=(3, 3))
    if index % 4 == 0:
        w[0] -= (w[0] @ x[0]) / (x[0] @ x[0]) * x[0]  # a sample on the kink of a neuron
    network = TwoLayer(w, unit * rng.normal(size=3))
    task = Empirical(network, x, network(jnp.asarray(x), "relu"), activation="relu")
    words = f"ReLU, inputs in units of {1 / length:.0e}, outputs in units of {unit:.0e}"
    return Known("zero loss on data", words, task, network, "minimum")


def _splits(rng: np.random.Generator, index: int) -> Known:
    """The best erf neuron for k orthonormal teachers, split at μ.

    It wants to specialise (Y is negative on directions orthogonal to it): inside (0, 1) its halves may go apart,
    outside they may not, and at the ends the cubic term a_2 δᵀYδ decides.
    """
    from understudy.theory import one_neuron

    k = int(rng.integers(3, 6))
    best = one_neuron("erf", teachers=k)
    end = index % 3 == 2
    mu = (
        float(rng.integers(2))
        if end
        else float(rng.uniform(0.1, 0.9))
        if index % 3 == 0
        else float(rng.uniform(1.2, 3))
    )
    unit = 10.0 ** int(rng.integers(-9, 10)) if index % 2 else 1.0
    w = np.full(k, best.norm * best.correlation)
    point = TwoLayer(np.stack([w, w]), unit * best.outgoing * np.array([1 - mu, mu]))
    task = Population(Teacher(np.eye(k), np.full(k, unit), "erf"), 2)
    nature = "non-strict saddle" if end else "strict saddle" if mu < 1 else "minimum"
    return Known("splits", f"k = {k}, μ = {mu:.2f}, outputs in units of {unit:.0e}", task, point, nature)


def _kinks(rng: np.random.Generator, index: int) -> Known:
    """A sample on the kink of a neuron, with a residual that wants the neuron to see it: the loss falls linearly to
    that side.

    All other samples are met exactly, and the derivative of max(z, 0) at 0 is taken as 0: gradient zero, Hessian not
    negative.
    """
    w = rng.normal(size=(2, 3))
    x = rng.normal(size=(9, 3))
    x[0] = np.cross(rng.normal(size=3), w[0])
    x[0] -= (x[0] @ w[0]) / (w[0] @ w[0]) * w[0]
    x[0] *= -np.sign(x[0] @ w[1]) if x[0] @ w[1] else 1.0  # the other neuron does not see it
    w[0] -= (w[0] @ x[0]) / (x[0] @ x[0]) * x[0]
    a = rng.uniform(0.5, 1.5, size=2)
    network = Kinked(jnp.asarray(w), jnp.asarray(a))
    y = np.array(network(jnp.asarray(x)))
    y[0] = max(float(y[0]), 0.0) + rng.uniform(0.5, 1.5)
    made: Any = network if index % 2 else TwoLayer(w, a)
    task = Empirical(made, x, y, activation="relu")
    return Known("kinks", "own module" if index % 2 else "two layers", task, made, "not a minimum")


def _at_zero(rng: np.random.Generator, index: int) -> Known:
    """The zero network with weight decay λ: near it L = L_0 - 2m·wa + λ(|w|² + a²) + O(4), m = ⟨yx⟩: its sign is that
    of λ - |m|."""
    x, y = rng.normal(size=(10, 2)), rng.normal(size=(10, 1))
    length = float(np.linalg.norm((y * x).mean(axis=0)))
    share = float(rng.choice([rng.uniform(0.1, 0.9), rng.uniform(1.1, 2.0)]))
    task = Regularised(x, y, (1,), penalty=share * length, bias=0.0, activation="tanh")
    nature = "minimum" if share > 1 else "strict saddle"
    return Known("zero with weight decay", f"λ = {share:.2f} |m|", task, np.zeros(task.size), nature, regular=True)


def _spheres(rng: np.random.Generator, index: int) -> Known:
    """Students on the sphere: copies of all teachers, or orthogonal to them, where -Σ (x·v)^ρ is flat to order ρ."""
    degree = int(rng.choice([3, 4]))
    basis = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    if index % 2:
        rows = basis[:2][rng.permutation(2)]
        task = Sphere(basis[:2], 2, activation=f"hermite:{degree}")
        return Known("sphere", f"copies, ρ = {degree}", task, rows, "minimum", regular=True)
    rows = rng.normal(size=(2, 3)) @ basis[2:]
    task = Sphere(basis[:2], 2, activation=f"hermite:{degree}", loss="correlation")
    point = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return Known("sphere", f"orthogonal, ρ = {degree}", task, point, "non-strict saddle")
