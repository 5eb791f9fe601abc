r"""E[σ'(x_i)σ'(x_j)σ(x_l)σ(x_m)] for erf neurons, in closed form.

With an independent z ~ N(0, 1) for each neuron, erf(x/√2) = E_z[sign(x + z)] and its derivative is E_z[2δ(x + z)]. So
the average is over u = x + z ~ N(0, C + I), where two of the u vanish:

E = 4 p(u_i = u_j = 0) E[sign u_l sign u_m | u_i = u_j = 0] = (4/π²) det^(-½) asin(C'_lm / √((1 + C'_ll)(1 + C'_mm))),

where det is the determinant of the 2 × 2 block (i, j) of C + I, and C' + I is C + I given u_i = u_j = 0. C + I is
positive definite for every C, so zero norms, identical neurons and singular C are not special cases (Saad and Solla
1995, PRE 52, 4225).
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def erf_averages(c: Float[Array, "M M"], i: Int[Array, ""], j: Int[Array, ""]) -> Float[Array, "M M"]:
    """The averages for one pair (i, j) and every pair (l, m), from the covariance of all pre-activations.

    Written without clipping, so that automatic differentiation is right at singular covariances too.
    """
    row, column = c[i], c[j]
    qi, qj, between = c[i, i], c[j, j], c[i, j]
    determinant = 1 + qi + qj + (qi * qj - between**2)
    mixed = row[:, None] * column[None, :]
    taken = (1 + qj) * row[:, None] * row[None, :] - between * (mixed + mixed.T)
    left = c - (taken + (1 + qi) * column[:, None] * column[None, :]) / determinant
    own = jnp.diagonal(left)
    gap = 1 + own[:, None] + own[None, :] + (own[:, None] * own[None, :] - left**2)
    return 4 / math.pi**2 / jnp.sqrt(determinant) * jnp.arctan2(left, jnp.sqrt(gap))
