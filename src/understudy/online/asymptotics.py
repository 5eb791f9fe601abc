r"""The error that label noise leaves for α → ∞, around a student that equals its teacher.

Such a point y* is a fixed point of the noiseless equations F. Noise drives the student overlaps by noise²η²N, where
N_ij = a_i·a_j E[σ'_i σ'_j]. To first order in noise² the state settles at y* - J⁻¹ noise²η²N with J = F'(y*). The loss
there is ∇L times this shift: `linear_response`, for every η for which y* is stable.

For η → 0 only the d - O(1) directions outside the span of all neurons matter. There Q⊥ obeys
dQ⊥ = -η(AQ⊥ + Q⊥A) + η²noise²A with A = N, so that L = tr AQ⊥ = (η noise²/2) tr A:

L∞ ≈ (η noise²/2) Σ_i ‖a_i‖² E[σ'(w_i·x)²]: `small_rate`.

For soft committee machines (erf, outgoing weights 1, M unit teachers, L superfluous students at zero) this is
(η noise²/π)(L + M/√3). This is our derivation; compare Goldt et al. 2019, whose generalisation error is L∞/2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from understudy.gaussian import Covariance, pair_partials
from understudy.networks import TwoLayer
from understudy.online import equations
from understudy.online.overlaps import Overlaps, unpack_rows
from understudy.online.run import Online


class AsymptoticError(NamedTuple):
    """E‖f - f*‖² for α → ∞ around a perfect student.

    - `linear_response`: to first order in noise², for this η; NaN if the point is not stable.
    - `small_rate`: to first order in η as well.
    - `growth_rate`: the largest real part of an eigenvalue of the noiseless equations there; at most 0 if stable.
    """

    linear_response: float
    small_rate: float
    growth_rate: float


def asymptotic_error(online: Online, perfect: TwoLayer | Overlaps) -> AsymptoticError:
    """The error that label noise leaves around a student that equals its teacher.

    **Arguments**

    - `online`: the equations. If the learning rate is a schedule, its value at α = 0 is used.
    - `perfect`: a student with zero loss. For ReLU the Jacobian does not exist there, and only `small_rate` is given.

    >>> import numpy as np, understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2), width=2, outgoing=1.0)
    >>> error = asymptotic_error(us.Online(task, 0.01, noise=0.1), us.TwoLayer(np.eye(2), np.ones(2)))
    >>> float(round(error.small_rate / (0.01 * 0.1**2 / np.pi * 2 / np.sqrt(3)), 12))
    1.0
    """
    point = online.flatten(perfect)
    loss = online.loss(point)
    if loss > 1e-9:
        raise ValueError(
            f"The asymptotic error is known around a student that equals its teacher; this one has loss {loss:.3g}."
        )
    rates = online.rates(0.0)
    eta, noise = float(rates.incoming), float(rates.noise)
    q, _, a = (part[0] for part in unpack_rows(online.problem, point[None]))
    norms = jnp.asarray(np.diagonal(q))
    own = Covariance(norms, norms, norms, jnp.zeros_like(norms))
    resolution = online.resolution(point)
    slopes = np.asarray(pair_partials(online.problem.student, online.problem.student, own).q12)
    small = eta * noise**2 / 2 * float(np.sum(a.reshape(len(slopes), -1) ** 2, axis=1) @ slopes)
    quiet = rates._replace(noise=np.float64(0.0))
    jacobian = np.asarray(equations.jacobian(online.problem, point, quiet, resolution))
    if not np.all(np.isfinite(jacobian)):
        return AsymptoticError(float("nan"), small, float("nan"))
    growth = float(np.linalg.eigvals(jacobian).real.max())
    if growth > 1e-9 * float(np.abs(jacobian).max()):
        return AsymptoticError(float("nan"), small, growth)
    still = np.asarray(equations.slope(online.problem, point, quiet, resolution))
    driven = np.asarray(equations.slope(online.problem, point, rates, resolution)) - still
    shift = -np.linalg.lstsq(jacobian, driven, rcond=1e-10)[0]
    gradient = np.asarray(jax.jacfwd(lambda v: equations.loss(online.problem, v, resolution))(jnp.asarray(point)))
    return AsymptoticError(float(gradient @ shift), small, growth)
