"""The loss on finite data, for any network that is a pytree and any twice-differentiable cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation, PiecewiseLinear
from understudy.networks import Deep, Teacher, TwoLayer
from understudy.numbers import real_array
from understudy.tasks import costs, probing, split_terms
from understudy.tasks import starts as drawing
from understudy.tasks import two_layer_samples as samples
from understudy.tasks.costs import Cost
from understudy.tasks.costs import squared as squared
from understudy.tasks.imitation import Imitation, imitate_network
from understudy.tasks.neurons import Described, Neurons, describe_neurons
from understudy.tasks.split_terms import SplitTerms
from understudy.tasks.task import Evaluation, Task
from understudy.tasks.units import Units, natural_size, natural_units, units_from_starts


class Empirical(Task):
    """L(θ) = Σ_s p_s cost(f(x_s|θ), y_s) over N samples s, with p_s = 1/N unless weights are given.

    **Arguments**

    - `network`: an example of the parameters, callable as `network(x, activation)` (`TwoLayer`, `Deep`, or your own
      Equinox module). Only its structure is used. Its floating-point arrays are trained, everything else is kept.
    - `inputs` (N, d), `targets` (N,) or (N, m), `weights` (N,): the data. Quadrature nodes and weights work too.
    - `cost`: `"squared"` (Σ_o (f_o - y_o)²), `"cross-entropy"` (targets: class labels 0, 1, … (N,) or probabilities),
      `"logistic"` (targets: 0 and 1, or ±1), or a twice differentiable function of one prediction and its target.

    For `TwoLayer` networks without biases the gradient and the Hessian are coded by hand (see `two_layer_samples`). For
    other networks they come from automatic differentiation. The flat vector contains the arrays of the network in the
    order of JAX's pytrees.

    With a kinked activation (ReLU, abs) the loss has kinks where a pre-activation is zero on a sample. The task finds
    them if the network applies the given activation outside of its own `vmap`, `scan` and `jit` (see `kinks`).

    >>> task = Empirical(TwoLayer([[0.0]], [0.0]), [[1.0], [2.0]], [1.0, -1.0], activation="tanh")
    >>> float(task.loss(TwoLayer([[0.0]], [0.0])))
    1.0
    """

    inputs: Float[Array, "N d"]
    targets: Float[Array, " N *m"]
    weights: Float[Array, " N"]
    activation: Activation = eqx.field(static=True)
    cost: Cost = eqx.field(static=True)
    unravel: Callable[[Array], Any] = eqx.field(static=True)
    length: int = eqx.field(static=True)
    network_type: type = eqx.field(static=True)
    hidden_count: int | None = eqx.field(static=True)

    def __init__(
        self,
        network: Any,
        inputs: ArrayLike,
        targets: ArrayLike,
        *,
        activation: str | Activation,
        cost: str | Cost = "squared",
        weights: ArrayLike | None = None,
    ):
        x, y = real_array(inputs, "Inputs"), np.asarray(targets)
        if x.ndim != 2 or len(x) == 0 or np.shape(y)[:1] != (len(x),):
            raise ValueError(
                f"Data are inputs (N, d) with N ≥ 1 and as many targets; received shapes {x.shape} and {y.shape}."
            )
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(real_array(y, "Targets")))):
            raise ValueError("Inputs and targets must be finite; received NaN or infinite entries.")
        p = np.full(len(x), 1 / len(x)) if weights is None else np.asarray(weights, float)
        if p.shape != (len(x),):
            raise ValueError(f"{len(x)} samples need {len(x)} weights; received shape {p.shape}.")
        self.inputs, self.weights = jnp.asarray(x), jnp.asarray(p)
        self.activation, self.cost = activations.get(activation), costs.get(cost)
        self.length, self.unravel = _ravelled(network)
        self.network_type = type(network)
        output = _output_shape(network, self.inputs, self.activation)
        self.targets = jnp.asarray(costs.targets_for(self.cost, y, output))
        smooth = self.activation.smoothness > 0
        self.hidden_count = 0 if smooth else probing.count_hidden(network, self.inputs, self.activation)

    @property
    def size(self) -> int:
        return self.length

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        """Random networks: every parameter N(0, init_std²), or Glorot's variances for matrices and zero biases.

        A two-layer network is drawn as in `Population`: the same seed gives the same student. All of this is in natural
        units; see `units`.
        """
        return Units(self._lengths(), 1.0).scale(self._draw(seeds, init, init_std))

    def _draw(self, seeds: int | Sequence[int], init: str, init_std: float) -> Float[Array, "seeds P"]:
        shapes = [leaf.shape for leaf in self._shapes()]
        if self.is_two_layer:
            (n, d), outgoing = shapes
            w, a = drawing.two_layer(seeds, n, d, outgoing[1:], init, init_std)
            return jnp.asarray(np.concatenate([w.reshape(len(w), -1), a.reshape(len(a), -1)], axis=1))
        drawing.check_init(init, init_std)
        if init == "gaussian":
            return super().starts(seeds, init, init_std)
        return jnp.asarray(np.stack([drawing.glorot(seed, shapes) for seed in drawing.seed_numbers(seeds)]))

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        if self.is_two_layer and isinstance(parameters, (tuple, list)) and np.ndim(parameters[0]) >= 2:
            parameters = TwoLayer(*parameters)
        if isinstance(parameters, (tuple, list)):
            parameters = np.asarray(parameters, float)
        if not isinstance(parameters, (np.ndarray, jax.Array)):
            parameters = self._ravel(parameters)
        if parameters.ndim not in (1, 2) or parameters.shape[-1] != self.length:
            raise ValueError(
                f"This task has {self.length} parameters; received {parameters.shape}. Pass a network like the one the "
                "task was made with, or its flat vector."
            )
        return jnp.asarray(parameters, float)

    def _ravel(self, network: Any) -> Array:
        """A network as a flat vector. If every array has one more leading axis, the network is a batch."""
        trained = eqx.filter(network, eqx.is_inexact_array)
        ranks = [jnp.ndim(x) - len(y.shape) for x, y in zip(jax.tree.leaves(trained), self._shapes(), strict=False)]
        ravel = lambda n: ravel_pytree(n)[0]  # noqa: E731
        return jax.vmap(ravel)(trained) if ranks and set(ranks) == {1} else ravel(trained)

    def _shapes(self) -> list[jax.ShapeDtypeStruct]:
        """Shapes of the trained arrays, in the order of the flat vector."""
        example = eqx.filter_eval_shape(self.unravel, jax.ShapeDtypeStruct((self.length,), jnp.float64))
        return [leaf for leaf in jax.tree.leaves(example) if isinstance(leaf, jax.ShapeDtypeStruct)]

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Any:
        return self.unravel(vector) if vector.ndim == 1 else eqx.filter_vmap(self.unravel)(vector)

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self._mean_cost(self.unravel(vector)(self.inputs, self.activation))

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
        """Whether the network is a `TwoLayer` without biases, whose derivatives are coded by hand."""
        if self.network_type is not TwoLayer:
            return False
        example = jax.eval_shape(self.unravel, jax.ShapeDtypeStruct((self.length,), float))
        return example.bias is None and example.offset is None

    # -- what is known ------------------------------------------------------------------------------------------------

    @property
    def lower_bound(self) -> float:
        """Zero for the named costs with weights ≥ 0; -inf for other costs."""
        return 0.0 if costs.is_bounded(self.cost) and bool(np.all(np.asarray(self.weights) >= 0)) else -np.inf

    @property
    def target_scale(self) -> float:
        """Σ_s p_s ‖y_s‖²."""
        return float(self.weights @ jnp.sum(self.targets.reshape(len(self.targets), -1) ** 2, axis=1))

    def units(self, vectors: Float[Array, "*batch P"] | np.ndarray) -> Units:
        """Weights of the first layer in units of one over the inputs, those of the last in units of the targets.

        The loss is in units of the targets' mean square (squared cost), or of the sum of all weights p (named costs).
        Lengths are known for `TwoLayer` and `Deep` networks. For your own network they are measured at the starts, and
        for your own cost the loss is.
        """
        height = None
        if costs.is_bounded(self.cost):
            height = self.target_scale if self.cost is squared else float(jnp.sum(jnp.abs(self.weights)))
        known = self.network_type in (TwoLayer, Deep)
        if known and height is not None:
            return natural_units(self._lengths(), height)
        measured = units_from_starts(self, vectors, height)
        return natural_units(
            self._lengths() if known else measured.lengths, measured.loss if height is None else height
        )

    def _lengths(self) -> np.ndarray:
        """Natural sizes of the parameters."""
        inputs = natural_size(float(jnp.sqrt(jnp.mean(self.inputs**2))))
        total, outputs = float(jnp.sum(jnp.abs(self.weights))), 1.0
        if self.cost is squared and total > 0:
            outputs = natural_size(float(np.sqrt(max(self.target_scale, 0.0) / total)))
        return self._layers(1 / inputs, outputs)

    def _layers(self, first: float, last: float) -> np.ndarray:
        """Sizes of all parameters, given those of the first and of the last layer; 1 for networks of other kinds."""
        if self.network_type not in (TwoLayer, Deep) or first == last == 1:
            return np.ones(self.length)
        ones = self.unravel(jnp.ones(self.length))
        if isinstance(ones, TwoLayer):
            offset = None if ones.offset is None else ones.offset * last
            return np.asarray(self._ravel(TwoLayer(ones.incoming * first, ones.outgoing * last, ones.bias, offset)))
        weights, biases = list(ones.weights), list(ones.biases)
        weights[0], weights[-1] = weights[0] * first, weights[-1] * last * (first if len(weights) == 1 else 1.0)
        biases[-1] = biases[-1] * last
        return np.asarray(self._ravel(Deep(tuple(weights), tuple(biases))))

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        """Rescalings of each hidden neuron of a `TwoLayer` or `Deep` network, if the activation is homogeneous."""
        degree = self.activation.homogeneity
        if degree is None or self.network_type not in (TwoLayer, Deep):
            return jnp.zeros((0, self.size))
        network = self.unravel(vector)
        tangents = [
            ravel_pytree(_rescaling(network, layer, neuron, degree))[0]
            for layer, width in enumerate(network.hidden_widths)
            for neuron in range(width)
        ]
        return jnp.stack(tangents) if tangents else jnp.zeros((0, self.size))

    # -- kinks --------------------------------------------------------------------------------------------------------

    @property
    def kinked(self) -> bool:
        """Whether the loss has kinks at zero pre-activations that the task can find."""
        return bool(self.hidden_count) and isinstance(self.activation, PiecewiseLinear)

    def kinks(self, parameters: Any) -> list[str]:
        if self.activation.smoothness == 0 and not self.kinked:
            return [
                f"{self.activation.name} has kinks, and the pre-activations of {self.network_type.__name__} cannot be "
                "seen: the loss may have a kink here"
            ]
        return super().kinks(parameters)

    def hidden_values(self, vector: Float[Array, " P"]) -> Float[Array, " H"]:
        if not self.kinked:
            return jnp.zeros(0)
        return probing.hidden_values(self.unravel(vector), self.inputs, self.activation)

    def gated_value(
        self, vector: Float[Array, " P"], gates: Float[Array, " H"], offsets: Float[Array, " H"]
    ) -> Float[Array, ""]:
        return self._mean_cost(self._gated(vector, gates, offsets)[0]) if self.kinked else self.value(vector)

    def gated_hidden(self, vector: Float[Array, " P"], gates: Float[Array, " H"]) -> Float[Array, " H"]:
        return self._gated(vector, gates, None)[1] if self.kinked else jnp.zeros(0)

    def _gated(self, vector: Array, gates: Array, offsets: Array | None) -> tuple[Array, Array]:
        assert isinstance(self.activation, PiecewiseLinear)
        return probing.gated(self.unravel(vector), self.inputs, self.activation, gates, offsets)

    def smoothed_value(self, vector: Float[Array, " P"], width: float | Float[Array, ""]) -> Float[Array, ""]:
        if not isinstance(self.activation, PiecewiseLinear) or not self.kinked:
            return self.value(vector)
        return self._mean_cost(probing.smoothed(self.unravel(vector), self.inputs, self.activation, width))

    def _mean_cost(self, outputs: Array) -> Float[Array, ""]:
        return self.weights @ jax.vmap(self.cost)(outputs, self.targets)

    # -- meaning ------------------------------------------------------------------------------------------------------

    def neurons(self, vector: Float[Array, " P"] | np.ndarray) -> Neurons | None:
        if not self.is_two_layer:
            return None
        w, a = (np.asarray(x) for x in self._weights(jnp.asarray(vector)))
        places = [np.asarray(x) for x in self._weights(jnp.arange(self.length, dtype=float))]
        return Neurons(w, a, np.concatenate(places, axis=1).astype(int), self.activation)

    def describe(self, vectors: np.ndarray, teacher: Teacher | None = None) -> Described:
        if not self.is_two_layer:
            return {}
        networks = jax.vmap(self.unravel)(jnp.asarray(vectors))
        v = None if teacher is None else np.asarray(teacher.incoming)
        return describe_neurons(np.asarray(networks.incoming), np.asarray(networks.outgoing), v)

    def function_distance(self, first: Any, second: Any) -> float:
        """Σ_s p_s ‖f(x_s) - g(x_s)‖² of two networks of any kind."""
        gap = _outputs(first, self.inputs, self.activation) - _outputs(second, self.inputs, self.activation)
        return float(self.weights @ jnp.sum(gap.reshape(len(gap), -1) ** 2, axis=1))

    def for_network(self, network: Any) -> "Empirical":
        return Empirical(
            network, self.inputs, self.targets, activation=self.activation, cost=self.cost, weights=self.weights
        )

    def split_terms(self, parameters: Any, neuron: int, layer: int = 0) -> SplitTerms:
        network = self.unflatten(self.flatten(parameters))
        if not isinstance(network, (TwoLayer, Deep)):
            return super().split_terms(parameters, neuron, layer)
        split_terms.check(neuron, network.hidden_widths, layer)
        y, v = split_terms.of_samples(self, network, jnp.asarray(neuron), layer)
        return SplitTerms(np.asarray(y), np.asarray(v))

    def imitation(self, teacher: Any = None, layer: int = 0) -> Imitation:
        if self.network_type not in (TwoLayer, Deep):
            return super().imitation(teacher, layer)
        return imitate_network(self, teacher, layer)

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


_BLOCK = 4096
"""Samples that are sent through a network at once where only outputs are needed."""


def _outputs(network: Any, inputs: Array, activation: Activation) -> Array:
    blocks = [inputs[i : i + _BLOCK] for i in range(0, len(inputs), _BLOCK)]
    return jnp.concatenate([_block(network, block, activation) for block in blocks])


@eqx.filter_jit
def _block(network: Any, inputs: Array, activation: Activation) -> Array:
    return network(inputs, activation)


def _rescaling(network: Any, layer: int, neuron: int, degree: int) -> Any:
    """The direction in which one neuron's incoming weights grow and its outgoing ones shrink, keeping the function."""
    still, hidden = jax.tree.map(jnp.zeros_like, network), network.hidden(layer)
    alone = jax.tree.map(lambda x: jnp.zeros_like(x).at[neuron].set(x[neuron]), hidden)
    return still.with_hidden(alone._replace(outgoing=-degree * alone.outgoing), layer)


@dataclass(frozen=True, eq=False)
class _Rebuild:
    """Map a flat vector to a network of which only some leaves are trained."""

    unravel: Callable[[Array], Any]
    rest: Any

    def __call__(self, vector: Array) -> Any:
        return eqx.combine(self.unravel(vector), self.rest)


def _ravelled(network: Any) -> tuple[int, Callable[[Array], Any]]:
    """Number of trained parameters, and the map from a flat vector of them to a network."""
    trained, rest = eqx.partition(network, eqx.is_inexact_array)
    vector, unravel = ravel_pytree(trained)
    if vector.shape[0] == 0:
        raise ValueError(f"The network has no floating-point arrays to train; received {type(network).__name__}.")
    return vector.shape[0], _Rebuild(unravel, rest) if jax.tree.leaves(rest) else unravel


def _output_shape(network: Any, inputs: Array, activation: Activation) -> tuple[int, ...]:
    """Shape of the network's outputs for these inputs."""
    known: dict[type, Callable[[], int]] = {
        TwoLayer: lambda: network.dim,
        Deep: lambda: network.weights[0].shape[1],
    }
    wanted = known.get(type(network))
    if wanted is not None and wanted() != inputs.shape[1]:
        raise ValueError(f"The network takes inputs of dimension {wanted()}; received dimension {inputs.shape[1]}.")
    try:
        return eqx.filter_eval_shape(lambda n, x: n(x, activation), network, inputs).shape
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"The network cannot be called as network(x, activation) with x of shape {inputs.shape}: {error}"
        ) from error
