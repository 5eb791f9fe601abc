"""Forces, ranks and gradient of a network on many inputs, read in chunks: no array over all inputs is formed.

Let M = Z^σ_{ℓ-1} (c × N) and Mᵀ = QR. R (c × c) is updated chunk by chunk, and so is G_ℓ = Λ_ℓ Mᵀ = ∂C/∂W_ℓ. These
two hold what is asked for (see `forces` for the formulas): with W = W_ℓ, Ŵ = W R⁺R and P the projection onto the rows
of M,

  Z_ℓ = W RᵀQᵀ,   attraction 2λ Ŵ (M⁺)ᵀ = 2λ Ŵ R⁺Qᵀ,   repulsion Λ_ℓ P = G_ℓ R⁺Qᵀ.

Q has orthonormal columns: norms, angles of rows and singular values are those of the matrices before Qᵀ. Unlike the
Gram matrix M Mᵀ, R keeps all digits of small singular values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.activations import activate
from understudy.regularised.forces import signals
from understudy.regularised.kinks import KINK, balancing_gates, plain_gates
from understudy.regularised.representation import RANK, activations_before, output_cost, to_representations
from understudy.tasks.regularised import Regularised

CHUNK = 4096
"""Inputs per chunk: several times as many as a layer usually has neurons, so that updating R costs little more than one
factorisation."""


class Chunks:
    """A regularised problem on many inputs, as `Regularised` tasks on some of them; each weighs 1/N of the whole.

    `options` are the arguments of `Regularised` after the hidden widths.
    """

    def __init__(self, inputs: Any, targets: Any, hidden: Sequence[int], *, size: int = CHUNK, **options: Any) -> None:
        self.inputs, self.targets, self.hidden, self.options = inputs, targets, hidden, options
        self.size, self.samples = size, len(inputs)

    def take(self, chosen: Any) -> Regularised:
        """The task on these inputs."""
        x, y = self.inputs[chosen], self.targets[chosen]
        return Regularised(x, y, self.hidden, weights=np.full(len(x), 1 / self.samples), **self.options)

    def __iter__(self) -> Iterator[Regularised]:
        for begin in range(0, self.samples, self.size):
            yield self.take(slice(begin, begin + self.size))


@dataclass
class LayerSums:
    """What is kept of the ℓ-th weight matrix W (n_ℓ × c).

    - `factor`: R, at most c rows, with Mᵀ = QR for the activations M (c × N) that the layer reads.
    - `gradient` (n_ℓ × c): ∂C/∂W, without the penalty.
    - `largest` (n_ℓ,): the largest |σ(z)| of each neuron.
    """

    weights: np.ndarray
    factor: np.ndarray
    gradient: np.ndarray
    largest: np.ndarray

    def representation(self) -> np.ndarray:
        """W Rᵀ, the rows of Z_ℓ up to an isometry."""
        return self.weights @ self.factor.T

    def least_weights(self) -> np.ndarray:
        """Ŵ, the least weights with the same Z_ℓ."""
        return self.weights @ np.linalg.pinv(self.factor, rcond=RANK) @ self.factor

    def forces(self, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        """Attraction and repulsion up to an isometry."""
        inverse = np.linalg.pinv(self.factor, rcond=RANK)
        return 2 * penalty * self.least_weights() @ inverse, self.gradient @ inverse

    def onto_inputs(self, forces: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Forces (n_ℓ × N') on some inputs, from those up to the isometry and the activations M of these inputs."""
        return forces @ (np.linalg.pinv(self.factor.T, rcond=RANK) @ before)


@dataclass
class Sums:
    """Sums over all inputs: the cost C, one `LayerSums` per weight matrix, and slopes chosen at kinks.

    `kinked` are the inputs with a hidden pre-activation of zero, and `gates` (H,) the slopes of |z| on them.
    """

    cost: float
    layers: list[LayerSums]
    kinked: np.ndarray
    gates: np.ndarray | None


def sum_over(chunks: Chunks, parameters: Any) -> Sums:
    """Read all inputs, chunk by chunk: twice if the activation has kinks, which are found relative to the largest z."""
    first = chunks.take(slice(0, 1))
    weights = [np.asarray(w) for w in first.unflatten(first.flatten(parameters))]
    layers = [LayerSums(w, np.zeros((0, w.shape[1])), np.zeros(w.shape), np.zeros(len(w))) for w in weights]
    scales = _scales(chunks, parameters) if first.kinked else None
    total, begin, kinked = 0.0, 0, []
    for chunk in chunks:
        found = to_representations(chunk, parameters)
        gates, smooth = None, np.ones(chunk.samples, bool)
        if scales is not None:
            hidden = list(zip(found[:-1], scales, strict=True))
            gates = np.concatenate([plain_gates(chunk, z, scale).ravel() for z, scale in hidden])
            for z, scale in hidden:
                smooth &= ~np.any((np.abs(z) <= KINK * scale) & (scale > 0), axis=0)
        kinked.append(begin + np.flatnonzero(~smooth))
        slopes = signals(chunk, parameters, gates, layers=found)
        for layer, below, slope in zip(layers, activations_before(chunk, found), slopes, strict=True):
            layer.factor = np.asarray(np.linalg.qr(np.concatenate([layer.factor, below.T]), mode="r"))
            layer.gradient += (slope * smooth) @ below.T
        for layer, z in zip(layers[:-1], found[:-1], strict=True):
            np.maximum(layer.largest, np.abs(activate(chunk.activation, z)).max(axis=1), out=layer.largest)
        total += float(output_cost(chunk, jnp.asarray(found[-1])))
        begin += chunk.samples
    places = np.concatenate(kinked)
    if not len(places):
        return Sums(total, layers, places, None)
    few = chunks.take(places)
    gates = balancing_gates(few, parameters, scales=scales, rest=[layer.gradient for layer in layers])
    found = to_representations(few, parameters)
    slopes = signals(few, parameters, gates, layers=found)
    for layer, below, slope in zip(layers, activations_before(few, found), slopes, strict=True):
        layer.gradient += slope @ below.T
    return Sums(total, layers, places, gates)


def _scales(chunks: Chunks, parameters: Any) -> list[np.ndarray]:
    """The largest |z| of every hidden neuron over all inputs, (n_ℓ, 1) per layer."""
    largest: list[np.ndarray] | None = None
    for chunk in chunks:
        sizes = [np.abs(z).max(axis=1, keepdims=True) for z in to_representations(chunk, parameters)[:-1]]
        largest = sizes if largest is None else [np.maximum(a, b) for a, b in zip(largest, sizes, strict=True)]
    assert largest is not None
    return largest
