"""The loss on finite data, for any network that is a pytree and any twice-differentiable cost."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation
from understudy.networks import Deep, TwoLayer
from understudy.tasks import split_terms
from understudy.tasks import starts as drawing
from understudy.tasks import two_layer_samples as samples
from understudy.tasks.neurons import Described, Neurons, describe_neurons
from understudy.tasks.task import Evaluation, Task

Cost = Callable[[Array, Array], Array]


def squared(prediction: Array, target: Array) -> Array:
    """Σ_o (f_o - y_o)², without a factor ½."""
    return jnp.sum((prediction - target) ** 2)


class Empirical(Task):
    """L(θ) = Σ_s p_s cost(f(x_s|θ), y_s), p_s = 1/N unless weights are given.

    **Arguments**

    - `network`: an example of the parameters, callable as `network(x, activation)` (`TwoLayer`, `Deep`, or your own
      Equinox module); only its structure is used.
    - `inputs` (N, d), `targets` (N,) or (N, m), `weights` (N,): the data; quadrature nodes and weights work too.
    - `cost(prediction, target)`: the cost of one sample, twice differentiable; the squared distance unless given.

    For `TwoLayer` networks gradient and Hessian are written out (see `two_layer_samples`); for others they come from
    automatic differentiation. The flat vector has the arrays of the network one after another, as JAX orders them.
    """

    inputs: Float[Array, "N d"]
    targets: Float[Array, " N *m"]
    weights: Float[Array, " N"]
    activation: Activation = eqx.field(static=True)
    cost: Cost = eqx.field(static=True)
    unravel: Callable[[Array], Any] = eqx.field(static=True)
    length: int = eqx.field(static=True)
    network_type: type = eqx.field(static=True)

    def __init__(
        self,
        network: Any,
        inputs: ArrayLike,
        targets: ArrayLike,
        *,
        activation: str | Activation,
        cost: Cost = squared,
        weights: ArrayLike | None = None,
    ):
        x, y = np.asarray(inputs, float), np.asarray(targets, float)
        if x.ndim != 2 or len(x) == 0 or len(y) != len(x):
            raise ValueError(
                f"Data are inputs (N, d) with N ≥ 1 and as many targets; received shapes {x.shape} and {y.shape}."
            )
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(y))):
            raise ValueError("Inputs and targets must be finite; received NaN or infinite entries.")
        p = np.full(len(x), 1 / len(x)) if weights is None else np.asarray(weights, float)
        if p.shape != (len(x),):
            raise ValueError(f"{len(x)} samples need {len(x)} weights; received shape {p.shape}.")
        self.inputs, self.targets, self.weights = jnp.asarray(x), jnp.asarray(y), jnp.asarray(p)
        self.activation, self.cost = activations.get(activation), cost
        vector, self.unravel = ravel_pytree(network)
        self.length = vector.shape[0]
        self.network_type = type(network)
        output = np.shape(jax.eval_shape(lambda n: n(self.inputs, self.activation), network))
        if output != y.shape:
            raise ValueError(f"The network's outputs have shape {output} where the targets have {y.shape}.")

    @property
    def size(self) -> int:
        return self.length

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        """Random networks: every parameter N(0, init_std²), or Glorot's variances for matrices and zero biases.

        A two-layer network is drawn as by `Population`: the same seed gives the same student.
        """
        example = jax.eval_shape(self.unravel, jax.ShapeDtypeStruct((self.length,), float))
        if self.is_two_layer:
            n, d = example.incoming.shape
            w, a = drawing.two_layer(seeds, n, d, example.outgoing.shape[1:], init, init_std)
            return jnp.asarray(np.concatenate([w.reshape(len(w), -1), a.reshape(len(a), -1)], axis=1))
        drawing.check_init(init, init_std)
        if init == "gaussian":
            return super().starts(seeds, init, init_std)
        shapes = [leaf.shape for leaf in jax.tree.leaves(example)]
        return jnp.asarray(np.stack([drawing.glorot(seed, shapes) for seed in drawing.seed_numbers(seeds)]))

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        if not isinstance(parameters, (np.ndarray, jax.Array)):
            parameters = self._ravel(parameters)
        if parameters.ndim not in (1, 2) or parameters.shape[-1] != self.length:
            raise ValueError(
                f"This task has {self.length} parameters; received {parameters.shape}. Pass a network like the one the "
                "task was made with, or its flat vector."
            )
        return jnp.asarray(parameters, float)

    def _ravel(self, network: Any) -> Array:
        """A network as a flat vector; a network with one more axis in front of every array is a batch."""
        example = jax.eval_shape(self.unravel, jax.ShapeDtypeStruct((self.length,), float))
        ranks = [
            jnp.ndim(x) - len(y.shape) for x, y in zip(jax.tree.leaves(network), jax.tree.leaves(example), strict=False)
        ]
        ravel = lambda n: ravel_pytree(n)[0]  # noqa: E731
        return jax.vmap(ravel)(network) if ranks and set(ranks) == {1} else ravel(network)

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Any:
        return self.unravel(vector) if vector.ndim == 1 else jax.vmap(self.unravel)(vector)

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        outputs = self.unravel(vector)(self.inputs, self.activation)
        return self.weights @ jax.vmap(self.cost)(outputs, self.targets)

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        if not self.is_two_layer:
            return super().value_and_gradient(vector)
        w, a = self._weights(vector)
        loss, by_w, by_a = samples.gradient(self._costs, self.activation, self.inputs, self.weights, w, a)
        return loss, jnp.concatenate([by_w.ravel(), by_a.ravel()])

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        if not self.is_two_layer:
            return super().evaluate(vector)
        w, a = self._weights(vector)
        loss, by_w, by_a, hessian = samples.evaluate(self._costs, self.activation, self.inputs, self.weights, w, a)
        return Evaluation(loss, jnp.concatenate([by_w.ravel(), by_a.ravel()]), hessian)

    @property
    def is_two_layer(self) -> bool:
        """Whether the network is a `TwoLayer`, for which derivatives are written out."""
        return self.network_type is TwoLayer

    # -- what is known ------------------------------------------------------------------------------------------------

    @property
    def lower_bound(self) -> float:
        """Zero for squared costs with weights ≥ 0; nothing is known about other costs."""
        return 0.0 if self.cost is squared and bool(np.all(np.asarray(self.weights) >= 0)) else -np.inf

    @property
    def target_scale(self) -> float:
        """Σ_s p_s ‖y_s‖²."""
        return float(self.weights @ jnp.sum(self.targets.reshape(len(self.targets), -1) ** 2, axis=1))

    def neurons(self, vector: Float[Array, " P"] | np.ndarray) -> Neurons | None:
        if not self.is_two_layer:
            return None
        w, a = (np.asarray(x) for x in self._weights(jnp.asarray(vector)))
        places = [np.asarray(x) for x in self._weights(jnp.arange(self.length, dtype=float))]
        return Neurons(w, a, np.concatenate(places, axis=1).astype(int), self.activation)

    def describe(self, vectors: np.ndarray) -> Described:
        if not self.is_two_layer:
            return {}
        networks = jax.vmap(self.unravel)(jnp.asarray(vectors))
        return describe_neurons(np.asarray(networks.incoming), np.asarray(networks.outgoing))

    def function_distance(self, first: Any, second: Any) -> float:
        """Σ_s p_s ‖f(x_s) - g(x_s)‖² of two networks of any kind."""
        gap = _outputs(first, self.inputs, self.activation) - _outputs(second, self.inputs, self.activation)
        return float(self.weights @ jnp.sum(gap.reshape(len(gap), -1) ** 2, axis=1))

    def for_network(self, network: Any) -> "Empirical":
        return Empirical(
            network, self.inputs, self.targets, activation=self.activation, cost=self.cost, weights=self.weights
        )

    def split_terms(self, parameters: Any, neuron: int, layer: int = 0) -> tuple[np.ndarray, np.ndarray]:
        network = self.unflatten(self.flatten(parameters))
        if not isinstance(network, (TwoLayer, Deep)):
            return super().split_terms(parameters, neuron, layer)
        widths = [network.width] if isinstance(network, TwoLayer) else [len(b) for b in network.biases[:-1]]
        split_terms.check(neuron, widths, layer)
        y, v = split_terms.of_samples(self, network, jnp.asarray(neuron), layer)
        return np.asarray(y), np.asarray(v)

    def _weights(self, vector: Array) -> tuple[Array, Array]:
        network = self.unravel(vector)
        return network.incoming, network.outgoing.reshape(network.width, -1)

    def _costs(self, predictions: Float[Array, "N m"]) -> samples.Costs:
        """Cost, slope and curvature at each sample."""
        if self.cost is not squared:
            return samples.costs(self.cost, predictions, self.targets)
        error = predictions - self.targets.reshape(predictions.shape)
        curvature = jnp.broadcast_to(2 * jnp.eye(error.shape[1])[None], (*error.shape, error.shape[1]))
        return samples.Costs(jnp.sum(error**2, axis=1), 2 * error, curvature)


@eqx.filter_jit
def _outputs(network: Any, inputs: Array, activation: Any) -> Array:
    return jax.lax.map(lambda x: network(x, activation), inputs, batch_size=4096)
