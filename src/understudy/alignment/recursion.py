"""How each layer acts on the output: gates, fan-out maps V_l, and the mixtures A_l and B_l of Tian 2020, Lemma 1.

In a region of inputs where no gate switches, the output of a ReLU network is an affine function of the activations of
any layer, f_L = V_l f_l + c_l, with

    V_{l-1} = V_l D_l W_l,    c_{l-1} = c_l + V_l D_l b_l,    V_L = I, c_L = 0,

D_l the diagonal of gates (the last layer has none). For a student and a teacher (*) of the same depth the gradient of
-½‖f*_L - f_L‖² with respect to the pre-activations of layer l is, sample by sample,

    g_l = D_l [A_l f*_l - B_l f_l],    A_l = V_lᵀV*_l,    B_l = V_lᵀV_l,

with activations and maps extended by the constant node: f_l by 1 and V_l by the column c_l. Weights are those of
`Deep`, which are transposed relative to the paper. Everything is computed for all samples at once.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy import activations
from understudy.activations import Activation, PiecewiseLinear
from understudy.networks import Deep
from understudy.networks.dense import affine


class LayerView(NamedTuple):
    """One layer l ≥ 1 of a network, for S samples.

    **Attributes**

    - `activations`: f_l, (S, n); the outputs for the last layer.
    - `gates`: the diagonal of D_l, (S, n); 0 or 1 for ReLU, ones for the last layer.
    - `fan_out`: V_l, (S, C, n), and `offset`: c_l, (S, C), so that f_L = V_l f_l + c_l.
    """

    activations: Float[Array, "S n"]
    gates: Float[Array, "S n"]
    fan_out: Float[Array, "S C n"]
    offset: Float[Array, "S C"]


def view(network: Deep, inputs: Float[Array, "S d"], activation: str | Activation = "relu") -> tuple[LayerView, ...]:
    """All layers 1, …, L of a network on these inputs, in this order.

    The activation is piecewise linear with its kink at 0 (relu, abs, linear): σ(z) = D z.
    """
    sigma = activations.get(activation)
    if not isinstance(sigma, PiecewiseLinear):
        raise ValueError(f"The recursion is for piecewise linear activations, such as relu; received {sigma.name!r}.")
    return _view(network, jnp.asarray(inputs, float), sigma)


@eqx.filter_jit
def _view(network: Deep, inputs: Array, sigma: PiecewiseLinear) -> tuple[LayerView, ...]:
    forward, x = [], inputs
    for l, (w, b) in enumerate(zip(network.weights, network.biases, strict=True), start=1):
        z = affine(x, w, b)
        # An input on the boundary itself counts as inactive: the gate is I[z > 0].
        gate = jnp.where(z > 0, sigma.slope + sigma.kink, sigma.slope - sigma.kink)
        gate = jnp.ones_like(z) if l == network.depth else gate
        x = gate * z
        forward.append((x, gate))
    samples, outputs = x.shape
    fan_out = jnp.broadcast_to(jnp.eye(outputs), (samples, outputs, outputs))
    offset = jnp.zeros((samples, outputs))
    views = []
    for (f, gate), w, b in zip(reversed(forward), reversed(network.weights), reversed(network.biases), strict=True):
        views.append(LayerView(f, gate, fan_out, offset))
        gated = fan_out * gate[:, None, :]
        fan_out, offset = gated @ w, offset + gated @ b
    return tuple(reversed(views))


def mixtures(student: LayerView, teacher: LayerView) -> tuple[Float[Array, "S n1 m1"], Float[Array, "S n1 n1"]]:
    """A_l and B_l of one layer, (S, n + 1, m + 1) and (S, n + 1, n + 1).

    The constant node is last in every axis. Without biases its rows and columns are zero.
    """
    v, u = _extended(student), _extended(teacher)
    return jnp.einsum("sck,scj->skj", v, u), jnp.einsum("sck,scj->skj", v, v)


def _extended(layer: LayerView) -> Float[Array, "S C n1"]:
    return jnp.concatenate([layer.fan_out, layer.offset[:, :, None]], axis=2)


def backpropagated(student: tuple[LayerView, ...], teacher: tuple[LayerView, ...]) -> tuple[Float[Array, "S _"], ...]:
    """g_l of every layer by Lemma 1, without forming the mixtures: D_l V_lᵀ[(V*_l f*_l + c*_l) - (V_l f_l + c_l)]."""
    if len(student) != len(teacher) or student[-1].activations.shape != teacher[-1].activations.shape:
        raise ValueError(
            f"Student and teacher must have the same depth, outputs and samples; received depths {len(student)} and "
            f"{len(teacher)}, outputs {student[-1].activations.shape} and {teacher[-1].activations.shape}."
        )
    return tuple(_gradient(s, t) for s, t in zip(student, teacher, strict=True))


def _gradient(student: LayerView, teacher: LayerView) -> Float[Array, "S n"]:
    residue = _reached(teacher) - _reached(student)
    return student.gates * jnp.einsum("sck,sc->sk", student.fan_out, residue)


def _reached(layer: LayerView) -> Float[Array, "S C"]:
    return jnp.einsum("sck,sk->sc", layer.fan_out, layer.activations) + layer.offset


def importance(layer: LayerView) -> Float[Array, " n"]:
    """√E[β_kk], the root mean square of ‖v_k‖ over samples; for two layers, the fan-out norm (Tian 2020, Fig. 9)."""
    return jnp.sqrt(jnp.mean(jnp.sum(layer.fan_out**2, axis=1), axis=0))
