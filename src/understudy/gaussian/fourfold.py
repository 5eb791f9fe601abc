"""Averages over four correlated Gaussians: the second moment of the gradient of one sample."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import Activation, Erf, PiecewiseLinear, Polynomial
from understudy.gaussian.four_erf import erf_averages
from understudy.gaussian.four_piecewise import piecewise_averages
from understudy.gaussian.four_quadrature import quadrature_averages

DEFAULT_NODES = 32
"""Relative errors near 3e-5 for tanh neurons of norm 1, 2e-3 for norm 1.4; below 1e-8 for softplus and sigmoid up to
1.4."""
LARGEST_DEGREE = 12
"""Polynomials up to this degree: exact from twice as many nodes on each of four lines."""
_AT_ONCE = 1 << 18
"""Numbers held for one batch of pairs."""


def nodes_for(student: Activation, teacher: Activation, nodes: int | None = None) -> int:
    """Nodes per line: 0 where none are needed, twice the degree for polynomials, else `nodes` or the default.

    Raises ValueError for pairs of activations without a rule: a kinked neuron with a smooth one.
    """
    pair = (student, teacher)
    if all(isinstance(s, Erf) for s in pair) or all(isinstance(s, PiecewiseLinear) for s in pair):
        return 0
    kinked = [s.name for s in pair if s.smoothness == 0]
    if kinked:
        raise ValueError(
            f"The average over four Gaussians needs both activations kinked or both smooth; received {student.name} "
            f"(student) and {teacher.name} (teacher). Replace {kinked[0]} by a smooth activation such as 'softplus:4'."
        )
    if all(isinstance(s, Polynomial | PiecewiseLinear) for s in pair):
        degree = max(s.growth for s in pair)
        if degree > LARGEST_DEGREE:
            raise ValueError(
                f"The average over four Gaussians is computed for polynomials up to degree {LARGEST_DEGREE}; received "
                f"{student.name} and {teacher.name}. Lower the degree."
            )
        return max(2 * degree, 2) if nodes is None else max(nodes, 2 * degree)
    return DEFAULT_NODES if nodes is None else nodes


def is_exact(student: Activation, teacher: Activation) -> bool:
    """Whether the average is exact to rounding, rather than a quadrature with an estimated error."""
    families = ((Erf,), (PiecewiseLinear,), (Polynomial, PiecewiseLinear))
    kinked = [s for s in (student, teacher) if s.smoothness == 0]
    return any(all(isinstance(s, family) for s in (student, teacher)) for family in families) and (
        not kinked or all(isinstance(s, PiecewiseLinear) for s in (student, teacher))
    )


def gradient_moments(
    student: Activation,
    teacher: Activation,
    covariance: Float[Array, "M M"],
    weights: Float[Array, "n M"],
    nodes: int,
) -> Float[Array, "n n"]:
    r"""E[σ'(x_i)σ'(x_j) (Σ_l weights_il σ_l(x_l)) (Σ_m weights_jm σ_m(x_m))] for x ~ N(0, covariance), traceable.

    The first n of the M neurons are students, whose slopes σ' appear; the others are teachers. With weights a_i (a, -b)
    and Δ = f - f*, this is a_i a_j E[σ'(x_i)σ'(x_j)Δ²]: what one sample adds to the overlap of two students.

    **Arguments**

    - `student`, `teacher`: the activations; `nodes`: what `nodes_for` returns for them.
    - `covariance`: of all pre-activations, students first; any rank.

    erf in closed form, piecewise linear ones (ReLU) up to one integral over an interval, polynomials and smooth ones
    by Gauss rules (see `four_erf`, `four_piecewise`, `four_quadrature`).
    """
    n, count = weights.shape
    averages, held = _rule(student, teacher, n, count, nodes)
    upper = np.triu_indices(n)

    def one(pair: tuple[Array, Array]) -> Array:
        i, j = pair
        return weights[i] @ averages(covariance, i, j) @ weights[j]

    pairs = (jnp.asarray(upper[0]), jnp.asarray(upper[1]))
    batch = max(1, min(len(upper[0]), _AT_ONCE // held))
    found = jax.lax.map(one, pairs, batch_size=batch) if batch > 1 else jax.lax.map(one, pairs)
    return jnp.zeros((n, n)).at[upper].set(found).at[upper[1], upper[0]].set(found)


def _rule(
    student: Activation, teacher: Activation, n: int, count: int, nodes: int
) -> tuple[Callable[[Array, Array, Array], Array], int]:
    """The averages of one pair of students with every pair of neurons, and how many numbers they hold in memory."""
    if isinstance(student, Erf) and isinstance(teacher, Erf):
        return erf_averages, count**2
    if isinstance(student, PiecewiseLinear) and isinstance(teacher, PiecewiseLinear):
        slopes = jnp.asarray([student.slope] * n + [teacher.slope] * (count - n))
        if student.kink == teacher.kink == 0:
            scale = student.slope**2 * slopes[:, None] * slopes[None, :]
            return lambda c, i, j: scale * c, count**2
        kinks = jnp.asarray([student.kink] * n + [teacher.kink] * (count - n))
        own = (student.slope, student.kink)
        return lambda c, i, j: piecewise_averages(c, i, j, own, slopes, kinks), 64 * count**2
    return lambda c, i, j: quadrature_averages(c, i, j, n, student, teacher, nodes), nodes**3 * count
