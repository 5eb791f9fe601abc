"""All data about a point that findings need, computed once."""

from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from understudy.points.copies import join_copies
from understudy.points.criticality import Spectrum, approach, spectrum
from understudy.points.flats import FlatFamily, flat_families
from understudy.points.surroundings import EPS, Surroundings, outside_hessian

_GROWN = 4.0
"""How many times larger the eigenvalues that may be zero may be where Newton's method ends."""

_SMALLER = 0.25
"""How small the gradient must be after Newton's step across the zero modes, relative to the one before the step."""


@dataclass(frozen=True)
class Case:
    """A point with its spectrum, flat families and remaining gradient, in natural units.

    - `around`: the surroundings of the point, or of a degenerate critical point next to it that Newton's method found
      at the distance `travelled`; `astray`: the reason, in words, if Newton's method found none.
    - `families`, `explained`: function-preserving directions, and how many zero modes they explain.
    - `extra`: eigenvalues of each of the `outside` input directions that the task leaves out.
    - `limit`: the largest gradient norm of a critical point; `noise`: how much of a gradient entry may be noise.
    """

    around: Surroundings
    spectrum: Spectrum
    families: list[FlatFamily]
    explained: int
    extra: np.ndarray
    outside: int
    limit: float
    noise: float
    diverging: str | None
    travelled: float = 0.0
    astray: str = ""

    @property
    def values(self) -> np.ndarray:
        """All eigenvalues, ascending."""
        return np.sort(np.concatenate([self.spectrum.values, self.extra]))

    @property
    def multiplicities(self) -> np.ndarray:
        """How often each of them occurs."""
        counts = np.concatenate([np.ones(len(self.spectrum.values), int), np.full(len(self.extra), self.outside)])
        return counts[np.argsort(np.concatenate([self.spectrum.values, self.extra]), kind="stable")]

    @property
    def inertia(self) -> tuple[int, int, int]:
        """Numbers of negative, zero and positive eigenvalues."""
        values, counts, threshold = self.values, self.multiplicities, self.spectrum.threshold
        index = int(counts[values < -threshold].sum())
        zeros = int(counts[np.abs(values) <= threshold].sum())
        return index, zeros, int(counts.sum()) - index - zeros

    @property
    def unexplained(self) -> int:
        """Zero modes that no family explains."""
        return max(0, self.inertia[1] - self.explained)

    @property
    def unexplained_modes(self) -> np.ndarray:
        """An orthonormal basis (columns) of the zero modes across all families."""
        null = self.spectrum.vectors[:, self.spectrum.zero]
        if not self.families:
            return null
        rows = np.concatenate([f.tangents for f in self.families])
        left, singular, _ = np.linalg.svd(null.T @ (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T)
        return null @ left[:, int(np.sum(singular > 1e-8)) :]

    @cached_property
    def step_across(self) -> np.ndarray:
        """Newton's step in the directions that are not zero modes."""
        stiff = self.spectrum.vectors[:, ~self.spectrum.zero]
        return -stiff @ ((stiff.T @ self.around.gradient) / self.spectrum.values[~self.spectrum.zero])

    @cached_property
    def slopes(self) -> np.ndarray:
        """Slopes along the zero modes, where they are smaller: here, or after Newton's step in the other directions.

        A point off its critical point by s has slopes of the order of s times the third derivatives. They are not
        evidence against a critical point nearby.
        """
        found, gradient = self.spectrum, self.around.gradient
        zero = found.zero
        here = np.abs(found.vectors[:, zero].T @ gradient)
        if zero.all() or not np.any(here > self.noise_along):
            return here
        there = self.around.evaluate(self.step_across)[1]
        settled = np.abs(found.vectors[:, zero].T @ there)
        return np.minimum(here, np.where(np.isfinite(settled), settled, here))

    @cached_property
    def noise_along(self) -> np.ndarray:
        """The rounding of these slopes; measured with more effort where slopes here are above it."""
        null = self.spectrum.vectors[:, self.spectrum.zero]
        noise = self.around.along(null)
        if np.any(np.abs(null.T @ self.around.gradient) > noise):
            noise = np.maximum(noise, self.around.along_by_many(null))
        return noise


def study(around: Surroundings, outside: int, tolerance: float, diverging: str | None) -> Case:
    """The case of a point. If eigenvalues change too much within Newton's step, that of the degenerate point nearby."""
    case = _at(around, outside, tolerance, diverging)
    if diverging or np.linalg.norm(around.gradient) > case.limit:
        return case
    if case.unexplained and (joined := join_copies(around)) is not None:
        there = Surroundings(around.task, joined)
        travelled = float(np.linalg.norm((joined - around.vector) / around.lengths))
        together = _at(there, outside, tolerance, diverging)
        # Where copies are a saddle, students at a small angle to each other can be a minimum next to it.
        if together.inertia[0] <= case.inertia[0]:
            return replace(together, travelled=travelled)
    if not case.spectrum.unsure:
        return case
    if not np.any(case.slopes > case.noise_along):
        return _settled(case, outside, tolerance)
    found = approach(around)
    if found.offset is None:
        return replace(case, astray=found.reason)
    there = Surroundings(around.task, around.place(found.offset))
    if not there.finite or there.kinked or _has_grown(case.spectrum, around.evaluate(found.offset)[2]):
        return case
    return replace(_at(there, outside, tolerance, diverging), travelled=float(np.linalg.norm(found.offset)))


def _settled(case: Case, outside: int, tolerance: float) -> Case:
    """The case after Newton's step across the zero modes, if the gradient is much smaller there and nothing is unsure.

    A gradient above rounding moves the point off a flat set, and makes small curvatures of its zero modes.
    """
    around, offset = case.around, case.step_across
    there = Surroundings(around.task, around.place(offset))
    if not there.finite or there.kinked:
        return case
    before, after = (np.linalg.norm(x.gradient) * x.unit for x in (around, there))
    if not after < _SMALLER * before:
        return case
    settled = _at(there, outside, tolerance, None)
    return case if settled.spectrum.unsure else replace(settled, travelled=float(np.linalg.norm(offset)))


def _has_grown(here: Spectrum, hessian: np.ndarray) -> bool:
    """Whether eigenvalues that may be zero here are much larger where Newton's method ends.

    A degenerate critical point is where they vanish. Where a line of critical points changes from minima to saddles,
    a step along it leads to a point of either kind.
    """
    sizes = np.sort(np.abs(np.linalg.eigvalsh(hessian)))
    return bool(sizes[: int(here.zero.sum())].max(initial=0.0) > _GROWN * here.threshold)


def _at(around: Surroundings, outside: int, tolerance: float, diverging: str | None) -> Case:
    found = spectrum(around)
    reach = (
        EPS * float(np.abs(found.values).max(initial=0.0)) * (1 + float(np.abs(around.vector / around.lengths).max()))
    )
    families = flat_families(around)
    explained = _explained(families, found)
    extra = np.zeros(0)
    if outside:
        block = np.asarray(outside_hessian(around.task, jnp.asarray(around.vector)))
        lengths = around.incoming_lengths(len(block))
        extra = np.linalg.eigvalsh(lengths[:, None] * block * lengths / around.unit)
        turning = around.task.outside_symmetries(jnp.asarray(around.vector))
        explained += outside * min(turning, int(np.sum(np.abs(extra) <= found.threshold)))
    return Case(
        around=around,
        spectrum=found,
        families=families,
        explained=explained,
        extra=extra,
        outside=outside,
        limit=max(tolerance, 1e3 * reach),
        noise=1e3 * reach,
        diverging=diverging,
    )


def _explained(families: list[FlatFamily], found: Spectrum) -> int:
    """Dimension of the part of the null space that the families' tangents span."""
    null = found.vectors[:, found.zero]
    if not families or null.shape[1] == 0:
        return 0
    rows = np.concatenate([f.tangents / np.linalg.norm(f.tangents, axis=1, keepdims=True) for f in families])
    _, singular, basis = np.linalg.svd(rows, full_matrices=False)
    basis = basis[singular > 1e-8 * singular[0]]
    return int(np.sum(np.linalg.svd(basis @ null, compute_uv=False) > 0.7))
