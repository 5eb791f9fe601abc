"""One hidden layer of a network, neuron by neuron: the form in which surgery sees every network."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

_SUM = 1e-12
"""The sum of a neuron's coefficients may differ from one by this: the rounding of a few decimal fractions."""


class HiddenLayer(NamedTuple):
    """The neurons of one hidden layer: z ↦ Σ_i a_i σ(w_i·z + c_i), where z is the input of the layer.

    - `incoming` (n, q): the w_i; `bias` (n,): the c_i, or None for a layer without biases.
    - `outgoing` (n, m): the a_i, weights to the m neurons or outputs of the next layer.
    """

    incoming: Any
    bias: Any
    outgoing: Any

    @property
    def width(self) -> int:
        """Number n of neurons."""
        return self.incoming.shape[0]

    @property
    def rows(self) -> np.ndarray:
        """Incoming weights, one row per neuron, with the bias as last entry if there are biases."""
        w = np.asarray(self.incoming)
        return w if self.bias is None else np.column_stack([w, np.asarray(self.bias)])

    def take(self, origin: np.ndarray, coefficients: np.ndarray) -> "HiddenLayer":
        """The layer whose neuron i is neuron `origin[i]`, its outgoing weights times `coefficients[i]`."""
        bias = None if self.bias is None else self.bias[origin]
        return HiddenLayer(self.incoming[origin], bias, coefficients[:, None] * self.outgoing[origin])


@runtime_checkable
class Layered(Protocol):
    """A network with hidden layers. Surgery works on any Equinox module that has these three members."""

    @property
    def hidden_widths(self) -> tuple[int, ...]:
        """Number of neurons of each hidden layer, starting with the first."""

    def hidden(self, layer: int = 0) -> HiddenLayer:
        """One hidden layer."""

    def with_hidden(self, hidden: HiddenLayer, layer: int = 0) -> Any:
        """The network with other neurons in one hidden layer."""


def hidden_of(network: Any, layer: int = 0) -> HiddenLayer:
    """One hidden layer of a network; raises if there is none, or for a batch of networks."""
    if not isinstance(network, Layered):
        raise TypeError(
            f"Surgery takes a TwoLayer, a Deep network, or a module with hidden_widths, hidden and with_hidden (see "
            f"understudy.networks.Layered); received {type(network).__name__}."
        )
    widths = network.hidden_widths
    if not widths:
        raise ValueError("This network has no hidden layer, so there is no neuron to work on.")
    if not 0 <= layer < len(widths):
        raise ValueError(f"The network has hidden layers 0 to {len(widths) - 1}; received layer={layer}.")
    found = network.hidden(layer)
    if np.ndim(found.incoming) != 2:
        raise ValueError(f"Surgery takes one network; received a batch of {len(found.incoming)}. Take one of them.")
    return found


def split_layout(width: int, parts: Mapping[int, Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """For every neuron of the wider layer, the neuron from which it comes and its coefficient; checks `parts`.

    >>> origin, coefficients = split_layout(2, {0: [0.25, 0.75]})
    >>> origin.tolist(), coefficients.tolist()
    ([0, 0, 1], [0.25, 0.75, 1.0])
    """
    for neuron, coefficients in parts.items():
        if not 0 <= neuron < width:
            raise ValueError(f"The layer has neurons 0 to {width - 1}; cannot split neuron {neuron}.")
        values = np.asarray(coefficients, float)
        if values.ndim != 1 or len(values) < 1 or not np.all(np.isfinite(values)):
            raise ValueError(f"Neuron {neuron} needs a list of finite coefficients; received {coefficients!r}.")
        if abs(values.sum() - 1) > _SUM * max(1.0, np.abs(values).sum()):
            raise ValueError(
                f"The coefficients of neuron {neuron} must sum to one, to keep the function; {list(values)} sum to "
                f"{values.sum():.12g}."
            )
    shares = [np.asarray(parts.get(i, [1.0]), float) for i in range(width)]
    return np.repeat(np.arange(width), [len(s) for s in shares]), np.concatenate(shares)
