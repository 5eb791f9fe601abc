"""Gradient and exact Hessian products of a two-layer student without biases, from the second partials of its pairs.

For a direction (δw, δa) the entries of the covariance change by δq11_i = 2 w_i·δw_i and δq12_ij = δw_i·u_j + w_i·δu_j,
with partners u_j: students, which move, then teachers, which do not. The gradient of `unbiased` is linear in the
partials of G, and these change by second partials times δq (see `pairs`). Everything that does not depend on the
direction is computed once. A product then consists of four matrix products and six passes over tables: small problems
spend most of their time between passes.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.gaussian import Partials
from understudy.tasks.unbiased import Terms, gradient, terms

if TYPE_CHECKING:
    from understudy.tasks.population import Population


def linearised(task: "Population", vector: Array) -> tuple[Array, Callable[[Array], Float[Array, " P"]]]:
    """The gradient at a point, and its derivative along any direction: a product with the Hessian.

    Smooth activations, isotropic inputs.
    """
    t = terms(task, vector, curved=True)
    n, d = task.width, task.dim
    g, weight, b = _joined(t)
    m = b.shape[1] if task.trains_outgoing else 0
    a = t.a.reshape(n, -1)
    students = jax.tree.map(lambda x: x[:, :n], g)
    partners = jnp.pad(jnp.concatenate([p.vectors for p in t.partners]), ((0, 0), (0, m)))
    own, across, mixed = jnp.pad(t.w, ((0, 0), (0, m))), weight * g.q12q12, weight * g.q11q12
    others = len(b) - n
    back = jnp.pad(weight[:, :n] * students.q12q22, ((0, 0), (0, others)))
    stiff = weight[:, :n] * students.q12 + jnp.diag(t.along())
    # What δq11 and δa contribute to the coefficient of w_i and to ∂L/∂a; what δq12 contributes.
    radial = t.weight_own * t.own.qq + jnp.sum(weight * g.q11q11, axis=1)
    small = 2 * jnp.diag(radial) + weight[:, :n] * students.q12q12 / 2
    rows = 2 * mixed[:, None, :]
    if m:
        toward = t.own.q[:, None] * a + g.q11 @ b
        turning = 4 * (a[:, :, None] * students.q11[:, None, :] + toward[:, :, None] * jnp.eye(n)[:, None, :])
        turning = jnp.swapaxes(turning, 1, 2).reshape(n, n * m)
        values = 2 * (students.value + jnp.diag(t.own.value))
        small = jnp.block([[small, turning], [turning.T / 2, jnp.kron(values, jnp.eye(m))]])
        rows = jnp.concatenate([rows, 2 * g.q12[:, None, :] * b.T[None]], axis=1)

    def product(direction: Array) -> Array:
        moving = direction.reshape(n, d + m)
        change = moving @ partners.T
        change = change + jnp.pad(change[:, :n].T, ((0, 0), (0, others)))
        along = 2 * jnp.sum(own * moving, axis=1)
        tables = across * change + mixed * along[:, None] + back * jnp.pad(along, (0, others))[None]
        if m:
            da = moving[:, d:]
            both = da @ b.T + a @ jnp.pad(da, ((0, others), (0, 0))).T
            tables = tables + 2 * g.q12 * both
            along = jnp.concatenate([along, da.ravel()])
        turned = small @ along
        by_pairs = jnp.sum(rows * change[:, None, :], axis=2)
        incoming = stiff @ moving + tables @ partners + (turned[:n] + by_pairs[:, 0])[:, None] * own
        if not m:
            return incoming.ravel()
        outgoing = turned[n:].reshape(n, m) + by_pairs[:, 1:]
        return jnp.where(jnp.arange(d + m) < d, incoming, jnp.pad(outgoing, ((0, 0), (d, 0)))).ravel()

    return gradient(task, t), product


def _joined(t: Terms) -> tuple[Partials, Array, Array]:
    """Partials and weights of all pairs and the outgoing weights of all partners, students first."""
    if len(t.partners) == 1:
        only = t.partners[0]
        return only.pairs.partials, only.weight, only.outgoing.reshape(len(only.vectors), -1)
    tables = [(p.pairs.partials, p.weight) for p in t.partners]
    partials, weight = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *tables)
    return partials, weight, jnp.concatenate([p.outgoing.reshape(len(p.vectors), -1) for p in t.partners])
