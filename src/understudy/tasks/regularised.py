"""The L2-regularised loss of a fully connected network of any depth on finite data.

Notation of Jacot, Golikov, Hongler, Gabriel 2022 (Jacot et al. 2022 elsewhere), Section 2: Z_ℓ = W_ℓ Z^σ_{ℓ-1} are the
pre-activations of all N inputs (n_ℓ × N), Z^σ_ℓ = (σ(Z_ℓ); β 1ᵀ) the activations with a constant row β, and
L_λ(W) = C(Z_L) + λ Σ_ℓ ‖W_ℓ‖².
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy import activations
from understudy.activations import Activation, PiecewiseLinear
from understudy.networks import Deep, HiddenLayer
from understudy.tasks import costs
from understudy.tasks import regularised_surgery as surgery
from understudy.tasks import starts as drawing
from understudy.tasks.costs import COSTS as COSTS
from understudy.tasks.costs import Cost, squared
from understudy.tasks.costs import cross_entropy as cross_entropy
from understudy.tasks.imitation import Imitation
from understudy.tasks.split_terms import SplitTerms
from understudy.tasks.task import ON_KINK, Task
from understudy.tasks.units import Units, natural_size, natural_units
from understudy.tasks.zero_neurons import ZeroNeurons

Weights = tuple[Float[Array, "*batch _ _"], ...]


class Regularised(Task):
    """L_λ(W) = Σ_s p_s cost(f_W(x_s), y_s) + λ Σ_ℓ ‖W_ℓ‖² over N samples s, with p_s = 1/N unless weights are given.

    **Arguments**

    - `inputs` (N, n_0), `targets` (N, n_L): the data. Targets of the cross-entropy may be class labels 0, 1, … (N,).
    - `hidden`: widths n_1 … n_{L-1} of the hidden layers.
    - `penalty`: λ > 0.
    - `bias`: β, the constant row of every activation. With β = 0 the weight matrices have no column for it.
    - `cost`: `"squared"` (Σ_o (f_o - y_o)²), `"cross-entropy"`, `"logistic"`, or a convex function of one prediction
      and target.

    Parameters are the tuple (W_1, …, W_L). W_ℓ has shape (n_ℓ, n_{ℓ-1} + 1), and its last column multiplies β.

    **Reference**: Jacot et al. 2022, Section 2.1.

    >>> task = Regularised([[1.0], [-1.0]], [[1.0], [1.0]], (2,), penalty=0.1, bias=0.0)
    >>> float(task.loss((jnp.zeros((2, 1)), jnp.zeros((1, 2)))))
    1.0
    """

    entry: Float[Array, "c N"]
    targets: Float[Array, "N m"]
    sample_weights: Float[Array, " N"]
    penalty: float
    bias: float = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)
    cost: Cost = eqx.field(static=True)

    def __init__(
        self,
        inputs: Any,
        targets: Any,
        hidden: Sequence[int],
        *,
        penalty: float,
        bias: float = 1.0,
        activation: str | Activation = "relu",
        cost: str | Cost = "squared",
        weights: Any = None,
    ):
        x = np.asarray(inputs, float)
        self.cost = costs.get(cost)
        y = np.asarray(targets)
        if y.ndim == 1:
            y = costs.one_hot(y) if self.cost is cross_entropy else y[:, None]
        y = np.asarray(y, float)
        if x.ndim != 2 or y.ndim != 2 or len(x) == 0 or len(x) != len(y):
            raise ValueError(
                f"Data are inputs (N, d) and targets (N, m) with N ≥ 1; received shapes {x.shape} and {y.shape}."
            )
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(y))):
            raise ValueError("Inputs and targets must be finite; received NaN or infinite entries.")
        y = costs.targets_for(self.cost, y, y.shape)
        if not hidden or any(int(n) < 1 for n in hidden):
            raise ValueError(f"At least one hidden layer of at least one neuron is needed; received {tuple(hidden)}.")
        if not (np.isfinite(penalty) and penalty > 0):
            raise ValueError(f"The penalty λ must be positive; received {penalty!r}.")
        if not (np.isfinite(bias) and bias >= 0):
            raise ValueError(f"The bias β must be zero or positive; received {bias!r}.")
        p = np.full(len(x), 1 / len(x)) if weights is None else np.asarray(weights, float)
        if p.shape != (len(x),) or not np.all(p >= 0):
            raise ValueError(f"{len(x)} samples need {len(x)} weights ≥ 0; received {weights!r}.")
        rows = [x.T, np.full((1, len(x)), bias)] if bias else [x.T]
        self.entry = jnp.asarray(np.concatenate(rows))
        self.targets, self.sample_weights = jnp.asarray(y), jnp.asarray(p)
        self.penalty, self.bias = float(penalty), float(bias)
        self.widths = (x.shape[1], *(int(n) for n in hidden), y.shape[1])
        self.activation = activations.get(activation)

    @property
    def depth(self) -> int:
        """Number L of weight matrices."""
        return len(self.widths) - 1

    @property
    def samples(self) -> int:
        """Number N of inputs."""
        return self.entry.shape[1]

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Shapes of W_1 … W_L."""
        extra = 1 if self.bias else 0
        columns = (self.entry.shape[0], *(n + extra for n in self.widths[1:-1]))
        return tuple(zip(self.widths[1:], columns, strict=True))

    @property
    def size(self) -> int:
        return sum(rows * columns for rows, columns in self.shapes)

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        if isinstance(parameters, (tuple, list)):
            found = tuple(np.shape(w)[-2:] for w in parameters)
            if found != self.shapes:
                raise ValueError(f"The weight matrices of this task have shapes {self.shapes}; received {found}.")
            # NumPy outside compiled code: JAX would compile for every new shape.
            outside = not any(isinstance(w, jax.core.Tracer) for w in parameters)
            parts = [np.asarray(w, float) if outside else jnp.asarray(w, float) for w in parameters]
            flat = [w.reshape(*w.shape[:-2], -1) for w in parts]
            return jnp.asarray(np.concatenate(flat, axis=-1)) if outside else jnp.concatenate(flat, axis=-1)
        vector = jnp.asarray(parameters, float)
        if vector.ndim not in (1, 2) or vector.shape[-1] != self.size:
            raise ValueError(f"This task has {self.size} parameters; received an array of shape {vector.shape}.")
        return vector

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Weights:
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])[:-1]
        parts = jnp.split(vector, ends, axis=-1)
        return tuple(w.reshape(*w.shape[:-1], *shape) for w, shape in zip(parts, self.shapes, strict=True))

    def activate(
        self,
        hidden: Float[Array, "n N"],
        gate: Float[Array, "n N"] | None = None,
        offset: Float[Array, "n N"] | None = None,
    ) -> Float[Array, "_ N"]:
        """Z^σ = (σ(Z); β 1ᵀ). With a `gate` s, slope·z + kink·|z| becomes slope·z + kink·(s∘z + offset)."""
        if gate is None:
            active = self.activation(hidden)
        else:
            slope, kink = self.slopes
            active = slope * hidden + kink * (gate * hidden + (0.0 if offset is None else offset))
        return jnp.concatenate([active, jnp.full((1, self.samples), self.bias)]) if self.bias else active

    def activate_smoothed(self, hidden: Float[Array, "n N"], width: float | Float[Array, ""]) -> Float[Array, "_ N"]:
        """Z^σ with slope·z + kink·|z| replaced by slope·z + kink·√(z² + width²)."""
        slope, kink = self.slopes
        active = slope * hidden + kink * jnp.sqrt(hidden**2 + width**2)
        return jnp.concatenate([active, jnp.full((1, self.samples), self.bias)]) if self.bias else active

    @property
    def slopes(self) -> tuple[float, float]:
        """(slope, kink) of a piecewise linear activation."""
        if not isinstance(self.activation, PiecewiseLinear):
            raise TypeError(f"{self.activation.name} has no kinks: only piecewise linear activations have gates.")
        return self.activation.slope, self.activation.kink

    def representations(self, vector: Float[Array, " P"]) -> tuple[Float[Array, "_ N"], ...]:
        """Φ(W) = (Z_1, …, Z_L), traceable."""
        return self._propagate(vector)

    def _propagate(self, vector: Array, gates: Array | None = None, offsets: Array | None = None) -> tuple[Array, ...]:
        found, active = [], self.entry
        gate = None if gates is None else self.split_hidden(gates)
        offset = None if offsets is None else self.split_hidden(offsets)
        for layer, matrix in enumerate(self.unflatten(vector)):
            found.append(matrix @ active)
            if layer < self.depth - 1:
                active = self.activate(
                    found[-1], None if gate is None else gate[layer], None if offset is None else offset[layer]
                )
        return tuple(found)

    def output_cost(self, output: Float[Array, "m N"]) -> Float[Array, ""]:
        """C(Z_L) = Σ_s p_s cost(column s, y_s)."""
        return self.sample_weights @ jax.vmap(self.cost)(output.T, self.targets)

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self.output_cost(self.representations(vector)[-1]) + self.penalty * jnp.dot(vector, vector)

    # Where the loss has kinks -----------------------------------------------------------------------------------------

    @property
    def kinked(self) -> bool:
        """Whether the loss has kinks, at zero pre-activations of hidden neurons."""
        return isinstance(self.activation, PiecewiseLinear) and self.activation.kink != 0

    def hidden_values(self, vector: Float[Array, " P"]) -> Float[Array, " H"]:
        """All hidden pre-activations as one vector. The loss is smooth where none of them is zero."""
        return jnp.concatenate([z.ravel() for z in self.representations(vector)[:-1]])

    def split_hidden(self, values: Float[Array, " H"]) -> tuple[Float[Array, "_ N"], ...]:
        """A vector over hidden pre-activations as one n_ℓ × N matrix per layer."""
        sizes = [n * self.samples for n in self.widths[1:-1]]
        parts = jnp.split(values, np.cumsum(sizes)[:-1])
        return tuple(p.reshape(-1, self.samples) for p in parts)

    def gated_value(
        self, vector: Float[Array, " P"], gates: Float[Array, " H"], offsets: Float[Array, " H"]
    ) -> Float[Array, ""]:
        """The loss with |z| replaced by s·z + e. It is smooth, and equals the loss for gates s = sign z and e = 0.

        The derivative with respect to the offset e is the force on |z|, the strength of the kink.
        """
        output = self._propagate(vector, gates, offsets)[-1]
        return self.output_cost(output) + self.penalty * jnp.dot(vector, vector)

    def gated_hidden(self, vector: Float[Array, " P"], gates: Float[Array, " H"]) -> Float[Array, " H"]:
        """Hidden pre-activations of the gated network."""
        return jnp.concatenate([z.ravel() for z in self._propagate(vector, gates)[:-1]])

    def dead(self, vector: Float[Array, " P"], share: float = 1e-5) -> tuple[np.ndarray, np.ndarray]:
        """Which parameters (P,) and hidden pre-activations (H,) belong to dead neurons.

        A neuron is dead if the product of its incoming and outgoing norms is at most `share` of the largest in the
        layer.
        """
        weights = [np.asarray(w) for w in self.unflatten(vector)]
        masks = [np.zeros(w.shape, bool) for w in weights]
        hidden = []
        for layer, width in enumerate(self.widths[1:-1]):
            product = np.linalg.norm(weights[layer], axis=1) * np.linalg.norm(weights[layer + 1][:, :width], axis=0)
            gone = product <= share * product.max()
            masks[layer][gone] = True
            masks[layer + 1][:, :width][:, gone] = True
            hidden.append(np.repeat(gone, self.samples))
        return np.concatenate([m.ravel() for m in masks]), np.concatenate(hidden)

    def zero_neurons(self, vector: Float[Array, " P"] | np.ndarray) -> ZeroNeurons | None:
        """Neurons of the last hidden layer whose weights are zero to rounding; only for kinked activations.

        Other activations have derivatives there.
        """
        if not self.kinked:
            return None
        point = jnp.asarray(vector)
        layers, weights = self.representations(point), [np.asarray(w) for w in self.unflatten(point)]
        width = self.widths[-2]
        sizes = np.maximum(np.linalg.norm(weights[-2], axis=1), np.linalg.norm(weights[-1][:, :width], axis=0))
        gone = np.flatnonzero(sizes <= ON_KINK * max(float(np.abs(vector).max()), 1e-300))
        if not len(gone):
            return None
        places = self.unflatten(jnp.arange(self.size, dtype=float))
        before, after = (np.asarray(w).astype(int) for w in places[-2:])
        parameters = np.zeros(self.size, bool)
        parameters[before[gone].ravel()] = parameters[after[:, gone].ravel()] = True
        hidden = [np.zeros(z.shape, bool) for z in layers[:-1]]
        hidden[-1][gone] = True
        below = self.entry if self.depth == 2 else self.activate(layers[-3])
        return ZeroNeurons(
            parameters=parameters,
            hidden=np.concatenate([z.ravel() for z in hidden]),
            inputs=np.asarray(below),
            pulls=np.asarray(jax.grad(self.output_cost)(layers[-1])),
            incoming=before[gone[0]],
            outgoing=after[:, gone[0]],
            penalty=self.penalty,
            activation=self.activation,
            convex=self.depth == 2,
        )

    def smoothed_value(self, vector: Float[Array, " P"], width: float | Float[Array, ""]) -> Float[Array, ""]:
        """The loss with |z| replaced by √(z² + width²) in every hidden neuron."""
        active, output = self.entry, self.entry
        for layer, matrix in enumerate(self.unflatten(vector)):
            output = matrix @ active
            if layer < self.depth - 1:
                active = self.activate_smoothed(output, width)
        return self.output_cost(output) + self.penalty * jnp.dot(vector, vector)

    # What is known ----------------------------------------------------------------------------------------------------

    @property
    def lower_bound(self) -> float:
        """Zero for the named costs, which are not negative; -inf for other costs."""
        return 0.0 if costs.is_bounded(self.cost) else -np.inf

    @property
    def target_scale(self) -> float:
        """Σ_s p_s ‖y_s‖²."""
        return float(self.sample_weights @ jnp.sum(self.targets**2, axis=1))

    def units(self, vectors: Float[Array, "*batch P"] | np.ndarray | None = None) -> Units:
        """The penalty ties all weights together, so that they share one length.

        Homogeneous networks of L layers scale outputs by the L-th power of it; for others it is 1. The loss is in units
        of the targets' mean square (squared cost), or of the sum of all weights p.
        """
        total = float(jnp.sum(self.sample_weights))
        length = outputs = hidden = 1.0
        if self.cost is squared and total > 0:
            outputs = natural_size(float(np.sqrt(self.target_scale / total)))
        if self.activation.homogeneity == 1:
            inputs = natural_size(float(jnp.sqrt(jnp.mean(self.entry**2))))
            length = (outputs / inputs) ** (1 / self.depth)
            hidden = length * inputs
        return natural_units(np.full(self.size, length), total * outputs**2, hidden)

    def function_distance(self, first: Any, second: Any) -> float:
        """Σ_s p_s ‖f(x_s) - g(x_s)‖² of the outputs."""
        gap = self.representations(self.flatten(first))[-1] - self.representations(self.flatten(second))[-1]
        return float(jnp.sum(gap**2, axis=0) @ self.sample_weights)

    # Ways to other forms ----------------------------------------------------------------------------------------------

    def network(self, parameters: Any) -> Deep:
        """The same function as a network with ordinary biases b_ℓ = β W_ℓ[:, last] (not for a reduced task)."""
        if self.entry.shape[0] != self.widths[0] + (1 if self.bias else 0):
            raise ValueError("A reduced task works in rotated coordinates: lift its parameters to the full task first.")
        weights = self.unflatten(self.flatten(parameters))
        if not self.bias:
            return Deep(weights, tuple(jnp.zeros(w.shape[0]) for w in weights))
        return Deep(tuple(w[:, :-1] for w in weights), tuple(self.bias * w[:, -1] for w in weights))

    def reduced(self) -> "tuple[Regularised, Callable[[Any], Weights]]":
        """The same problem with at most N input rows, and the map back to parameters of this task.

        Components of W_1 orthogonal to the data only add to the penalty (W̃_1 of Section 3.1). So with Z^σ_0 = QR the
        minima are those of the problem with inputs R, and W_1 = W'_1 Qᵀ.
        """
        entry = np.asarray(self.entry)
        basis, singular, _ = np.linalg.svd(entry, full_matrices=False)
        basis = basis[:, singular > 1e-13 * singular[0]]
        if basis.shape[1] == entry.shape[0]:
            return self, lambda parameters: self.unflatten(self.flatten(parameters))
        smaller = eqx.tree_at(lambda t: t.entry, self, jnp.asarray(basis.T @ entry))

        def lift(parameters: Any) -> Weights:
            first, *others = smaller.unflatten(smaller.flatten(parameters))
            return (first @ jnp.asarray(basis.T), *others)

        return smaller, lift

    def starts(
        self, seeds: int | Sequence[int], init: str = "glorot", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        """Random starts, one per seed, in natural units: entries N(0, init_std²), or Glorot's as in `glorot_starts`."""
        drawing.check_init(init, init_std)
        drawn = self.glorot_starts(seeds) if init == "glorot" else super().starts(seeds, init, init_std)
        return self.units().scale(drawn)

    def glorot_starts(self, seeds: int | Sequence[int], scale: float = 1.0) -> Float[Array, "seeds P"]:
        """W_ℓ with entries N(0, scale² · 2/(n_{ℓ-1} + n_ℓ)), one network per seed."""
        return jnp.asarray(np.stack([drawing.glorot(s, self.shapes, scale) for s in drawing.seed_numbers(seeds)]))

    def with_hidden(self, hidden: Sequence[int]) -> "Regularised":
        """The same problem for networks with these hidden widths."""
        # `eqx.tree_at` cannot replace a static field.
        copy = object.__new__(Regularised)
        for name in Regularised.__dataclass_fields__:
            object.__setattr__(copy, name, getattr(self, name))
        object.__setattr__(copy, "widths", (self.widths[0], *(int(n) for n in hidden), self.widths[-1]))
        return copy

    # Surgery: see `regularised_surgery` -------------------------------------------------------------------------------

    def hidden_layer(self, parameters: Any, layer: int = 0) -> HiddenLayer:
        """One hidden layer; the column of W_ℓ that multiplies β counts as one more incoming weight."""
        return surgery.hidden_layer(self, parameters, layer)

    def with_hidden_layer(
        self, parameters: Any, hidden: HiddenLayer, layer: int = 0
    ) -> 'tuple[Regularised, Float[Array, " P"]]':
        return surgery.with_hidden_layer(self, parameters, hidden, layer)

    def split(
        self, parameters: Any, parts: Mapping[int, Sequence[float]], layer: int = 0
    ) -> 'tuple[Regularised, Float[Array, " P"]]':
        return surgery.split(self, parameters, parts, layer)

    def split_terms(self, parameters: Any, neuron: int, layer: int = 0) -> SplitTerms:
        return surgery.split_terms(self, parameters, neuron, layer)

    def imitation(self, teacher: Any = None, layer: int = 0) -> Imitation:
        return surgery.imitation(self, teacher, layer)

    def widened(self, parameters: Any, hidden: Sequence[int]) -> 'tuple[Regularised, Float[Array, " P"]]':
        """The task with wider hidden layers, and the same network in it with dead neurons added (Prop. 6's proof)."""
        if len(hidden) != self.depth - 1 or any(new < old for new, old in zip(hidden, self.widths[1:-1], strict=True)):
            raise ValueError(f"Hidden widths {self.widths[1:-1]} can only grow; received {tuple(hidden)}.")
        other = self.with_hidden(hidden)
        new = [np.zeros(shape) for shape in other.shapes]
        for layer, w in enumerate(np.asarray(w) for w in self.unflatten(self.flatten(parameters))):
            known = w.shape[1] - 1 if self.bias and layer else w.shape[1]  # the bias column is last in later layers
            new[layer][: len(w), :known] = w[:, :known]
            new[layer][: len(w), new[layer].shape[1] - (w.shape[1] - known) :] = w[:, known:]
        return other, other.flatten(tuple(new))
