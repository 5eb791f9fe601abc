"""Networks of least norm that fit the data: batched Adam on a penalised loss whose penalty is lowered, then L-BFGS.

The loss Σ_s ‖f(x_s) - y_s‖² + λ‖θ‖² is minimised from many starts at once while λ falls geometrically: a large penalty first lets neurons
rearrange cheaply, a small one at the end makes the network fit. As λ → 0 its minimisers approach networks of least norm with
f(x_s) = y_s: ‖θ‖² approaches the representation cost from below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from understudy.dynamics.sgd import adam

Forward = Callable[[Any, Array], Array]
"""forward(parameters of one network, inputs (N, d)): outputs (N, m)."""


class LeastNorm(NamedTuple):
    """Trained networks, one row a start: parameters with a leading axis, penalised losses, squared norms, largest errors of an output."""

    parameters: Any
    losses: np.ndarray
    norms: np.ndarray
    errors: np.ndarray

    def best(self) -> tuple[Any, int]:
        """The network with the least loss, and which one it is."""
        index = int(np.argmin(self.losses))
        return jax.tree.map(lambda p: p[index], self.parameters), index


def least_norm(
    forward: Forward,
    starts: Any,
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    penalty: float = 1e-4,
    first_penalty: float = 1.0,
    steps: int = 20_000,
    rate: float = 0.02,
) -> LeastNorm:
    """Train every start; parameters are any pytree whose leaves have a leading axis for the starts.

    The penalty falls from `first_penalty` to `penalty` over the first 80 % of the steps; the rate is constant over the first half and then follows
    a cosine to `rate`/10⁴.
    """
    if not 0 < penalty <= first_penalty:
        raise ValueError(f"0 < penalty ≤ first_penalty; received {penalty} and {first_penalty}.")
    x, y = jnp.asarray(inputs), jnp.asarray(targets)
    share = np.arange(steps) / steps
    penalties = first_penalty * (penalty / first_penalty) ** np.minimum(1.0, share / 0.8)
    rates = rate * np.where(share < 0.5, 1.0, 0.5 * (1 + np.cos(2 * np.pi * (share - 0.5))) + 1e-4)
    parameters = _train(forward, jax.tree.map(jnp.asarray, starts), x, y, jnp.asarray(penalties), jnp.asarray(rates))
    losses, norms, errors = _measure(forward, parameters, x, y, jnp.asarray(penalty))
    return LeastNorm(parameters, np.asarray(losses), np.asarray(norms), np.asarray(errors))


def polish_least_norm(
    forward: Forward, parameters: Any, inputs: np.ndarray, targets: np.ndarray, *, penalty: float, steps: int = 5000
) -> tuple[Any, float, float]:
    """One network taken to a small gradient by L-BFGS; returns it, its penalised loss and its gradient norm."""
    leaves, structure = jax.tree.flatten(parameters)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    x, y, weight = jnp.asarray(inputs), jnp.asarray(targets), jnp.asarray(penalty)

    def network(flat: np.ndarray) -> Any:
        parts = zip(np.split(flat, ends), leaves, strict=True)
        return jax.tree.unflatten(structure, [jnp.asarray(part.reshape(leaf.shape)) for part, leaf in parts])

    def both(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _value_and_gradient(forward, network(flat), x, y, weight)
        return float(value), np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(slope)])

    # ftol below half a rounding error: stop when the loss no longer falls.
    options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30}
    start = np.concatenate([np.ravel(leaf) for leaf in leaves])
    found = minimize(both, start, jac=True, method="L-BFGS-B", options=options)
    return network(found.x), float(found.fun), float(np.linalg.norm(both(found.x)[1]))


def _penalised(
    forward: Forward, parameters: Any, x: Float[Array, "N d"], y: Float[Array, "N m"], penalty: Float[Array, ""]
) -> Float[Array, ""]:
    norm = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(parameters))
    return jnp.sum((forward(parameters, x) - y) ** 2) + penalty * norm


@eqx.filter_jit
def _value_and_gradient(forward: Forward, parameters: Any, x: Array, y: Array, penalty: Array) -> tuple[Array, Any]:
    return jax.value_and_grad(lambda p: _penalised(forward, p, x, y, penalty))(parameters)


@eqx.filter_jit
def _train(forward: Forward, starts: Any, x: Array, y: Array, penalties: Array, rates: Array) -> Any:
    unit = adam(1.0, beta2=0.99, epsilon=1e-10)  # its step, shortened by the rate of the moment

    def one(parameters: Any) -> Any:
        def advance(carry: tuple[Any, Any], now: tuple[Array, Array]) -> tuple[tuple[Any, Any], None]:
            network, state = carry
            slope = jax.grad(lambda p: _penalised(forward, p, x, y, now[0]))(network)
            moved, state = unit.step(network, state, slope)
            return (jax.tree.map(lambda p, q: p + now[1] * (q - p), network, moved), state), None

        return jax.lax.scan(advance, (parameters, unit.init(parameters)), (penalties, rates))[0][0]

    return jax.vmap(one)(starts)


@eqx.filter_jit
def _measure(forward: Forward, parameters: Any, x: Array, y: Array, penalty: Array) -> tuple[Array, Array, Array]:
    def one(network: Any) -> tuple[Array, Array, Array]:
        norm = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(network))
        error = jnp.max(jnp.abs(forward(network, x) - y))
        return _penalised(forward, network, x, y, penalty), jnp.asarray(norm), error

    return jax.vmap(one)(parameters)
