"""Whether a critical point is near, how far away it can be, and which eigenvalues of its Hessian are not zero."""

from dataclasses import dataclass

import numpy as np

from understudy.points.surroundings import EPS, Surroundings

_NEWTON_STEPS = 60
_SLOWEST = 0.97
"""Newton's steps toward a degenerate point of order m shrink by 1 - 1/(m - 1), less than this for orders up to 30."""


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of the Hessian in natural units, with their uncertainty.

    - `threshold`: eigenvalues of at most this size may be zero at the critical point.
    - `distance`: length of Newton's step, from the gradient or its rounding, along the eigenvectors above the
      threshold.
    - `unsure`: how many eigenvalues are above rounding but below the threshold, as they change too much within Newton's
      step.
    """

    values: np.ndarray
    vectors: np.ndarray
    threshold: float
    distance: float
    unsure: int

    @property
    def zero(self) -> np.ndarray:
        """Which eigenvalues may be zero."""
        return np.abs(self.values) <= self.threshold


def spectrum(around: Surroundings) -> Spectrum:
    """The spectrum at a point, and the threshold below which an eigenvalue may be zero at the critical point.

    The threshold has two parts: measured rounding, and the distance to the critical point. For the latter take Newton's
    step s in the directions with |eigenvalue| above the threshold, from the gradient or its rounding, and let
    D = 4 (H(θ) - H(θ - s)). If ‖|Λ|^(-½) VᵀDV |Λ|^(-½)‖ < 1 for these eigenvalues Λ and eigenvectors V, then Newton's
    method contracts, and its limit has the same signs there (Kantorovich's condition in its affine invariant form, and
    Ostrowski's theorem). Around a degenerate point of order m the eigenvalue changes by 1 - (1 - 1/(m-1))^(m-2) ≥ ½ of
    itself, so the condition fails. The direction then counts as an unsure zero mode.

    Rounding may have either sign along each eigenvector. See `_steps` for the signs that are tried.
    """
    values, vectors = np.linalg.eigh(around.hessian)
    rounding = around.rounding.hessian
    if not around.task.closed_form:
        rounding += 1e-12 * float(np.abs(around.hessian).max())
    order = np.argsort(-np.abs(values))
    along = vectors.T @ around.gradient
    along = np.where(along < 0, -1, 1) * np.maximum(np.abs(along), around.along(vectors))
    above = sure = int(np.sum(np.abs(values) > rounding))
    while sure:
        kept, others = order[:sure], order[sure:]
        steps = _steps(vectors[:, kept], values[kept], along[kept])
        moved = around.evaluate_all(-steps)
        if all(np.all(np.isfinite(hessian)) for _, _, hessian in moved):
            changes = [4 * vectors.T @ (hessian - around.hessian) @ vectors for _, _, hessian in moved]
            least = float(np.abs(values[kept[-1]]))
            relative = max(_relative(c[np.ix_(kept, kept)], values[kept], (least - rounding) / least) for c in changes)
            zero = rounding + max(largest(c[np.ix_(others, others)]) for c in changes)
            if rounding + relative * least < least and zero < least:
                unsure = float(np.abs(values[others]).max(initial=0.0))
                return Spectrum(values, vectors, max(zero, unsure), float(np.linalg.norm(steps[0])), above - sure)
        # The softest directions make the step long. Without them the change may be small.
        sure = int(np.sum(np.abs(values[kept]) > 3 * np.abs(values[kept[-1]])))
    return Spectrum(values, vectors, max(rounding, float(np.abs(values).max(initial=0.0))), 0.0, above)


def _steps(vectors: np.ndarray, values: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Newton's step from these slopes and, where eigenvalues have both signs, the step with |eigenvalues| (rows).

    Near a saddle a·h(w), a ≈ 0, eigenvalues come in pairs ±λ whose eigenvectors are (u, ±v)/√2, u in a and v in w. The
    first step may move w only, although the a that makes a small curvature a h''(w) is itself uncertain: the second
    moves a.
    """
    sizes = along / values, along / np.abs(values)
    return np.stack([vectors @ size for size in (sizes if np.any(values < 0) else sizes[:1])])


def _relative(change: np.ndarray, values: np.ndarray, allowed: float) -> float:
    """‖|Λ|^(-½) D |Λ|^(-½)‖; the Frobenius norm, which is larger and much cheaper, if that is below `allowed`."""
    scale = 1 / np.sqrt(np.abs(values))
    matrix = change * np.outer(scale, scale)
    norm = float(np.linalg.norm(matrix))
    return norm if norm < allowed else largest(matrix)


def largest(matrix: np.ndarray) -> float:
    """The spectral norm of a symmetric matrix, by thirty power iterations (plus a tenth as a safety margin)."""
    if not matrix.size:
        return 0.0
    x = np.cos(np.arange(len(matrix)) * 1.7 + 0.3)
    size = 0.0
    for _ in range(30):
        x = x / max(float(np.linalg.norm(x)), 1e-300)
        x = matrix @ x
        size = float(np.linalg.norm(x))
    return 1.1 * size


@dataclass(frozen=True)
class Approach:
    """The offset to which Newton's method leads from a point, or None with the reason why no critical point is near."""

    offset: np.ndarray | None
    reason: str = ""


def approach(around: Surroundings) -> Approach:
    """Newton's method toward a degenerate critical point, where steps shrink by a constant factor.

    Along a slope that flattens out towards infinity they do not: for exp(-x) all steps are 1, for 1/x they grow, for
    exp(-x²) they shrink like 1/√n. A constant factor q indicates a zero of order 1/(1 - q) of the slope, and a step
    that is longer by this factor reaches it.
    """
    offset = np.zeros(len(around.vector))
    reach = 0.1 * (1 + float(np.linalg.norm(around.vector / around.lengths)))
    rounding = around.rounding
    lengths: list[float] = []
    gradient, hessian = around.gradient, around.hessian
    for _ in range(_NEWTON_STEPS):
        if float(np.linalg.norm(gradient)) <= rounding.gradient * 1e-3 or not np.any(gradient):
            return Approach(offset)
        values, vectors = np.linalg.eigh(hessian)
        soft = np.abs(values) <= 4 * EPS * float(np.abs(values).max())
        step = -vectors @ np.where(soft, 0.0, (vectors.T @ gradient) / np.where(soft, 1.0, values))
        length = float(np.linalg.norm(step))
        if length <= EPS * 1e-3 * reach:
            return Approach(offset)
        lengths.append(length)
        offset, gradient, hessian = _further(around, offset, step, lengths)
        if not np.all(np.isfinite(hessian)) or float(np.linalg.norm(offset)) > reach:
            return Approach(None, f"Newton's method leaves for a distance of {float(np.linalg.norm(offset)):.2g}")
    recent = lengths[-_NEWTON_STEPS // 2 :]
    if len(recent) > 2:  # a longer step may have begun the count anew
        factor = (recent[-1] / recent[0]) ** (1 / (len(recent) - 1))
        if factor > _SLOWEST and not _is_critical(Surroundings(around.task, around.place(offset))):
            return Approach(None, f"Newton's steps do not shrink (by a factor {factor:.3f} each)")
    return Approach(offset)


def _is_critical(around: Surroundings) -> bool:
    """Whether the gradient here is rounding in every direction, so that Newton's steps are, too, and do not shrink."""
    vectors = np.linalg.eigh(around.hessian)[1] if around.finite else None
    return vectors is not None and bool(np.all(np.abs(vectors.T @ around.gradient) <= around.along(vectors)))


def _further(
    around: Surroundings, offset: np.ndarray, step: np.ndarray, lengths: list[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The next point with its gradient and Hessian. The step is longer if the factor is constant and this helps."""
    _, gradient, hessian = around.evaluate(offset + step)
    if len(lengths) >= 3:
        factors = lengths[-1] / lengths[-2], lengths[-2] / lengths[-3]
        if factors[0] < _SLOWEST and abs(factors[0] - factors[1]) < 0.02:
            further = offset + step / (1 - factors[0])
            _, slope, curvature = around.evaluate(further)
            if float(np.linalg.norm(slope)) < float(np.linalg.norm(gradient)):
                lengths.clear()
                return further, slope, curvature
    return offset + step, gradient, hessian
