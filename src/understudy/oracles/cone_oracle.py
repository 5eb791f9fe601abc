"""The exact oracle over the generators (zzᵀ, σ(z)σ(z)ᵀ) of the cone of covariances, for few inputs.

For a positively homogeneous σ and symmetric R₁, R₂ it finds

  max ⟨R₁, zzᵀ⟩ + ⟨R₂, σ(z)σ(z)ᵀ⟩   over   z = Bᵀw, ‖w‖ = 1,

with B (c × N) fixed. On the closed cell of a sign pattern of z the objective is a quadratic form wᵀQw. A maximiser over
the cell lies in the relative interior of one of its faces {z_i = 0 for i ∈ I}. The face spans a subspace, in which the
only local maxima of the Rayleigh quotient are the leading eigenvectors. So the maximum is the largest leading
eigenvalue over all sign vectors in {-, 0, +}^N whose leading eigenvector has these signs: 3^N small eigenproblems, N ≤
9 or so. Where the inputs span only r dimensions, every cell is a cone that its extreme rays generate, and on a ray
r - 1 independent inputs vanish. So the sign vectors are those of rays, with some of the zeros turned to + or -: about
2 (N choose r - 1) 3^(r-1) of them. A leading eigenspace of more than one dimension is counted without checking signs,
so the value stays an upper bound.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from understudy.activations import Activation, PiecewiseLinear

MOST_INPUTS = 9
"""3⁹ = 19 683 eigenproblems of at most 9 × 9: a third of a second per call."""

MOST_SIGNS = 60_000
"""The same for more inputs, which span few dimensions: about a second."""


def sign_vectors(count: int, rank: int) -> int:
    """About how many sign vectors `count` inputs in `rank` dimensions have."""
    return 2 * math.comb(count, max(rank - 1, 0)) * 3 ** max(rank - 1, 0)


@dataclass(frozen=True)
class Maximum:
    """`upper` bounds the maximum, `value` is reached at the unit vector `direction`; equal up to ties and rounding."""

    value: float
    upper: float
    direction: np.ndarray


class ConeOracle:
    """The oracle for one matrix B (c × N) and a positively homogeneous activation of degree one."""

    def __init__(self, basis: np.ndarray, activation: Activation):
        if not isinstance(activation, PiecewiseLinear):
            raise ValueError(
                f"The cone of covariances needs a positively homogeneous activation of degree one; received "
                f"{activation.name}. Use relu, abs or linear."
            )
        basis = np.asarray(basis, float)
        count = basis.shape[1]
        # Work in the column space of B, because directions orthogonal to all inputs do not matter.
        left, singular, _ = np.linalg.svd(basis, full_matrices=False)
        self._frame = left[:, singular > 1e-13 * max(singular.max(initial=0.0), 1e-300)]
        self._inner = self._frame.T @ basis
        if count > MOST_INPUTS and sign_vectors(count, len(self._inner)) > MOST_SIGNS:
            raise ValueError(
                f"The exact oracle enumerates sign vectors of N ≤ {MOST_INPUTS} inputs, or of more that span few "
                f"dimensions; received N = {count} inputs in {len(self._inner)} dimensions. Take fewer inputs. "
                "minimise_globally has other oracles: oracle='caps' or 'relaxation' for bounds, 'local' for a search "
                "that certifies nothing."
            )
        self._slopes = (activation.slope - activation.kink, activation.slope + activation.kink)
        self._faces = list(self._find_faces() if count <= MOST_INPUTS else self._faces_at_rays())

    def _faces_at_rays(self):  # type: ignore[no-untyped-def]
        """The same as `_find_faces`, from the rays. Parallel inputs count as one, and zero inputs as none."""
        size = len(self._inner)
        lines, members = self._lines()
        found: dict[bytes, set[bytes]] = {}
        for chosen in itertools.combinations(range(lines.shape[1]), size - 1):
            _, singular, right = np.linalg.svd(lines[:, chosen].T, full_matrices=True)
            if len(singular) and singular[-1] <= 1e-12:
                continue  # these inputs do not determine a ray; others that do contain it
            z = right[-1] @ lines
            zero = np.flatnonzero(np.abs(z) <= 1e-12)
            if len(zero) > MOST_INPUTS:
                raise ValueError(f"{len(zero)} inputs lie in one plane: too many sign vectors for the exact oracle.")
            for turned in itertools.product([-1, 0, 1], repeat=len(zero)):
                signs = np.sign(z)
                signs[zero] = turned
                for side in (signs @ members, -signs @ members):
                    pattern = side.astype(np.int8)
                    found.setdefault((pattern == 0).tobytes(), set()).add(pattern.tobytes())
        for zeros, patterns in found.items():
            on = np.frombuffer(zeros, bool)
            space = np.eye(size)
            if on.any():
                _, singular, right = np.linalg.svd(self._inner[:, on].T, full_matrices=True)
                space = right[int(np.sum(singular > 1e-12 * max(singular.max(initial=0.0), 1e-300))) :].T
            if space.shape[1]:
                yield space, np.stack([np.frombuffer(pattern, np.int8) for pattern in patterns]).astype(float)

    def _lines(self) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors (r × M) of the lines of the inputs, and the sign of each input (M × N) along its line."""
        lengths = np.linalg.norm(self._inner, axis=0)
        units = self._inner / np.where(lengths > 0, lengths, 1.0)
        kept: list[int] = []
        members: list[np.ndarray] = []
        for i in np.flatnonzero(lengths > 1e-13 * lengths.max()):
            cosines = units[:, i] @ units[:, kept]
            near = np.flatnonzero(np.abs(np.abs(cosines) - 1) <= 1e-14)
            row = np.zeros(len(lengths))
            if len(near):
                members[int(near[0])][i] = np.sign(cosines[near[0]])
                continue
            row[i] = 1.0
            kept.append(int(i))
            members.append(row)
        return units[:, kept], np.stack(members)

    def _find_faces(self):  # type: ignore[no-untyped-def]
        """(orthonormal basis of the face's subspace, signs of the inputs: 0 on the face) for every subset of zeros."""
        size, count = self._inner.shape
        for zeros in itertools.product([False, True], repeat=count):
            on = np.array(zeros)
            if on.any():
                _, singular, right = np.linalg.svd(self._inner[:, on].T, full_matrices=True)
                rank = int(np.sum(singular > 1e-12 * max(singular.max(initial=0.0), 1e-300)))
                space = right[rank:].T
            else:
                space = np.eye(size)
            if space.shape[1] == 0:
                continue
            hidden = np.linalg.norm(space.T @ self._inner, axis=0) <= 1e-12 * np.abs(self._inner).max()
            if np.any(hidden & ~on):
                continue  # these inputs vanish on the subspace, too, so it belongs to a larger set of zeros
            free = np.flatnonzero(~on)
            signs = np.zeros((2 ** len(free), count))
            signs[:, free] = np.array(list(itertools.product([-1.0, 1.0], repeat=len(free))))
            yield space, signs

    def maximise(self, plain: np.ndarray, activated: np.ndarray) -> Maximum:
        """The maximum for R₁ = `plain` and R₂ = `activated` (N × N, symmetric)."""
        best, upper, where = -np.inf, -np.inf, self._frame[:, 0]
        for space, signs in self._faces:
            seen = space.T @ self._inner
            slopes = np.where(signs > 0, self._slopes[1], np.where(signs < 0, self._slopes[0], 0.0))
            scaled = seen[None] * slopes[:, None, :]
            forms = seen @ plain @ seen.T + scaled @ activated @ np.swapaxes(scaled, 1, 2)
            values, vectors = np.linalg.eigh((forms + np.swapaxes(forms, 1, 2)) / 2)
            lead, top = values[:, -1], vectors[:, :, -1]
            size = np.abs(values).max(axis=1)
            tied = (lead - values[:, -2] <= 1e-9 * size) if values.shape[1] > 1 else np.zeros(len(lead), bool)
            z = top @ seen
            slack = 1e-9 * np.abs(z).max(axis=1, keepdims=True)
            for turn in (1.0, -1.0):
                inside = np.all((turn * z * signs >= -slack), axis=1)
                if inside.any():
                    i = int(np.argmax(np.where(inside, lead, -np.inf)))
                    upper = max(upper, float(lead[i]))
                    if float(lead[i]) > best:
                        best, where = float(lead[i]), self._frame @ (turn * space @ top[i])
            if tied.any():
                upper = max(upper, float(lead[tied].max()))
        return Maximum(best, upper, where / np.linalg.norm(where))
