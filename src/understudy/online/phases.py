"""The error that label noise leaves, over learning rates and numbers of students."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from understudy.networks import Teacher, TwoLayer
from understudy.online.asymptotics import asymptotic_error
from understudy.online.run import Online
from understudy.tasks.population import Population


@dataclass(frozen=True)
class Phases:
    """Asymptotic errors over (learning rate, number of students).

    - `rates`, `widths`: the axes; `noise`: standard deviation of the label noise.
    - `errors` (rates, widths): E(f - f*)² for α → ∞ to first order in noise²; NaN where the perfect student is not
      stable.
    - `growth_rates` (rates, widths): the largest growth rate of the noiseless equations at the perfect student. It is
      positive where the student is not stable.
    """

    rates: np.ndarray
    widths: np.ndarray
    noise: float
    errors: np.ndarray
    growth_rates: np.ndarray


def asymptotic_phases(teacher: Teacher, widths: Sequence[int], rates: Sequence[float], *, noise: float) -> Phases:
    """`asymptotic_error` around the perfect student for every pair of a learning rate and a number of students.

    All outgoing weights are fixed at 1. The first students equal the teachers, and superfluous students have zero
    incoming vectors. Other students with zero loss, such as pairs of opposite ones, leave other errors.

    **Arguments**

    - `teacher`: has outgoing weights 1 and a smooth activation with σ(0) = 0, so that superfluous students can be
      silent.
    - `widths`: numbers of students, none smaller than the number of teachers.
    - `rates`: learning rates η.
    - `noise`: positive; without noise the error is zero wherever the perfect student is stable.

    >>> import understudy as us
    >>> phases = asymptotic_phases(us.Teacher.orthonormal(2), [2, 3], [0.1, 100.0], noise=0.1)
    >>> bool(phases.errors[0, 0] < phases.errors[0, 1]), np.isnan(phases.errors[1]).tolist()
    (True, [True, True])

    **Reference**: compare Goldt et al. 2019, who study how this error grows with superfluous students.
    """
    k = len(teacher.incoming)
    _check(teacher, widths, rates, noise)
    found = np.empty((len(rates), len(widths), 2))
    for j, width in enumerate(widths):
        incoming = np.zeros((width, teacher.incoming.shape[1]))
        incoming[:k] = np.asarray(teacher.incoming)
        perfect = TwoLayer(incoming, np.ones(width))
        task = Population(teacher, width, outgoing=1.0)
        for i, rate in enumerate(rates):
            error = asymptotic_error(Online(task, float(rate), noise=noise), perfect)
            found[i, j] = error.linear_response, error.growth_rate
    return Phases(np.asarray(rates, float), np.asarray(widths), noise, found[..., 0], found[..., 1])


def _check(teacher: Teacher, widths: Sequence[int], rates: Sequence[float], noise: float) -> None:
    k = len(teacher.incoming)
    if not np.array_equal(np.asarray(teacher.outgoing), np.ones(k)):
        raise ValueError("The phase diagram needs a committee: a teacher with one output and outgoing weights 1.")
    if teacher.activation.smoothness == 0 or abs(float(teacher.activation(jnp.zeros(())))) > 1e-15:
        raise ValueError(
            f"The phase diagram needs a smooth activation with σ(0) = 0; received {teacher.activation.name}. Try erf."
        )
    if not len(widths) or min(widths) < k:
        raise ValueError(f"widths are numbers of students, none below the {k} teachers; received {list(widths)}.")
    if not len(rates) or not (np.all(np.isfinite(rates)) and min(rates) > 0):
        raise ValueError(f"rates are positive learning rates; received {list(rates)}.")
    if not noise > 0:
        raise ValueError(f"noise must be positive, because no error remains without noise; received {noise!r}.")
