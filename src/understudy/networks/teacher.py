"""Teachers: fixed networks whose function a student learns."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation
from understudy.networks import TwoLayer
from understudy.numbers import real_array


class Teacher(eqx.Module):
    """A fixed two-layer network f*(x) = Σ_j b_j σ(v_j·x + c_j) + c_0.

    **Arguments**

    - `incoming`: the v_j, shape (k, d); they may be linearly dependent.
    - `outgoing`: the b_j, shape (k,) or (k, m).
    - `activation`: σ, by name or object.
    - `bias`: the c_j, shape (k,). Default: no biases.
    - `offset`: c_0, a number or shape (m,). Default: no offset.

    >>> Teacher.orthonormal(3, dim=5).width
    3
    """

    incoming: Float[Array, "k d"]
    outgoing: Float[Array, " k *m"]
    activation: Activation = eqx.field(static=True)
    bias: Float[Array, " k"] | None
    offset: Float[Array, " *m"] | None

    def __init__(
        self,
        incoming: ArrayLike,
        outgoing: ArrayLike,
        activation: str | Activation,
        bias: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ):
        v = real_array(incoming, "The teacher's incoming weights")
        b = real_array(outgoing, "The teacher's outgoing weights")
        if v.ndim != 2 or 0 in v.shape:
            raise ValueError(
                f"A teacher's incoming vectors form a matrix (k, d) with k, d ≥ 1; received shape {v.shape}."
            )
        if b.ndim not in (1, 2) or b.shape[0] != v.shape[0]:
            raise ValueError(
                f"A teacher with {v.shape[0]} neurons needs outgoing weights of shape ({v.shape[0]},) or "
                f"({v.shape[0]}, outputs); received shape {b.shape}."
            )
        c = None if bias is None else real_array(bias, "The teacher's biases")
        if c is not None and c.shape != (v.shape[0],):
            raise ValueError(
                f"A teacher with {v.shape[0]} neurons needs biases of shape ({v.shape[0]},); received {c.shape}."
            )
        shift = None if offset is None else real_array(offset, "The teacher's offset")
        if shift is not None and shift.shape != b.shape[1:]:
            raise ValueError(f"The offset needs the shape {b.shape[1:]} of one output; received {shift.shape}.")
        arrays = {"incoming weights": v, "outgoing weights": b, "biases": c, "offset": shift}
        for name, array in ((name, array) for name, array in arrays.items() if array is not None):
            if not np.all(np.isfinite(array)):
                where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
                raise ValueError(f"The teacher's {name} must be finite; received {array[where]} at {where}.")
        self.incoming, self.outgoing = jnp.asarray(v), jnp.asarray(b)
        self.activation = activations.get(activation)
        self.bias = None if c is None else jnp.asarray(c)
        self.offset = None if shift is None else jnp.asarray(shift)
        if c is None and self.activation.smoothness == 0 and np.any(np.linalg.norm(v, axis=1) == 0):
            raise ValueError(
                f"With {self.activation.name} a teacher neuron with a zero incoming vector contributes nothing; "
                f"neuron {int(np.argmin(np.linalg.norm(v, axis=1)))} has one. Leave it out."
            )

    @property
    def width(self) -> int:
        """Number k of hidden neurons."""
        return self.incoming.shape[0]

    @property
    def dim(self) -> int:
        """Input dimension d."""
        return self.incoming.shape[1]

    @property
    def network(self) -> TwoLayer:
        """The teacher's parameters as a network."""
        return TwoLayer(self.incoming, self.outgoing, self.bias, self.offset)

    @property
    def is_unit_orthonormal(self) -> bool:
        """Whether v_i·v_j = δ_ij and every b_j = 1, to rounding: the setting of the closed-form theory."""
        incoming = np.asarray(self.incoming)
        gram = incoming @ incoming.T
        unit = np.allclose(gram, np.eye(self.width), rtol=0, atol=1e-13)
        plain = self.bias is None and self.offset is None
        return bool(plain and unit and self.outgoing.ndim == 1 and np.all(np.asarray(self.outgoing) == 1))

    @staticmethod
    def orthonormal(
        width: int, dim: int | None = None, activation: str | Activation = "erf", outgoing: ArrayLike = 1.0
    ) -> "Teacher":
        """A teacher with v_j = e_j, the first `width` coordinate vectors. Outgoing weights are 1 unless given."""
        width, dim = _count("width", width), _count("dim", width if dim is None else dim)
        if dim < width:
            raise ValueError(
                f"{width} orthonormal vectors need at least {width} dimensions; received dim={dim}. "
                f"Raise dim or lower the teacher's width."
            )
        return Teacher(np.eye(width, dim), _outgoing(outgoing, width), activation)

    @staticmethod
    def angular(
        angles: ArrayLike, activation: str | Activation = "softplus", outgoing: ArrayLike = 1.0, norms: ArrayLike = 1.0
    ) -> "Teacher":
        """A teacher with neurons at given angles (radians) in the plane: v_j = norm_j (cos φ_j, sin φ_j)."""
        phi = np.atleast_1d(np.asarray(angles, float))
        lengths = np.asarray(norms, float)
        if phi.ndim != 1 or lengths.shape not in ((), phi.shape):
            raise ValueError(
                f"Give one angle for each neuron and one norm for each or for all; received angles of shape "
                f"{phi.shape} and norms of shape {lengths.shape}."
            )
        incoming = np.stack([lengths * np.cos(phi), lengths * np.sin(phi)], axis=1)
        return Teacher(incoming, _outgoing(outgoing, len(phi)), activation)

    @staticmethod
    def random(
        width: int,
        dim: int,
        activation: str | Activation = "erf",
        *,
        seed: int = 0,
        outgoing: ArrayLike = 1.0,
        unit: bool = True,
    ) -> "Teacher":
        """A teacher with Gaussian incoming vectors of unit norm. If `unit` is false, entries have variance 1/d."""
        width, dim = _count("width", width), _count("dim", dim)
        v = np.random.default_rng(seed).normal(size=(width, dim)) / np.sqrt(dim)
        if unit:
            v /= np.linalg.norm(v, axis=1, keepdims=True)
        return Teacher(v, _outgoing(outgoing, width), activation)


def _outgoing(outgoing: ArrayLike, width: int) -> np.ndarray:
    """Repeat one number for all neurons. `Teacher` checks arrays."""
    weights = np.asarray(outgoing, float)
    return np.full(width, weights) if weights.ndim == 0 else weights


def _count(name: str, value: int) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer; received {value!r}.")
    return int(value)
