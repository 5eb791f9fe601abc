"""All critical points of two students on the circle: found, proved complete, counted.

For d = 2 and n = 2 the sphere task is a function of two angles, L(φ_1, φ_2) = r p(φ_1 - φ_2) - Σ_ij p(φ_i - ψ_j), p =
cos^ρ, on a torus (of period π for even ρ, where ±w are the same). The search is exhaustive, not a multi-start:

- p is a cosine series with positive coefficients, so |p⁽ᵏ⁾| ≤ b_k = Σ_m a_m m^k, which bounds how fast the gradient g
  and its Jacobian J can change.
- A square with centre c and half-width h has no zero of g if |g_i(c)| > Σ_j |J_ij| h + ½Mh² for an i, M = (k + 4r)b_3,
  or if the same holds for Yg with Y = J(c)⁻¹ (then J is replaced by the identity and M by |Y|M).
- Around a zero with invertible J no second one is closer (in each angle) than R = 1/(‖J⁻¹‖_∞ M).
- Squares that are neither excluded nor inside such a neighbourhood are cut in four. What is left at the end can only
  lie around degenerate zeros; there the winding number of g tells the index.

If nothing is left, the list is complete. In any case the indices must add up to 0, the Euler characteristic of the
torus.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from understudy.tasks.sphere import Sphere

_ROUNDING = 1e-12
"""Added to every bound: above the rounding error of g, whose terms are at most ρ(k + 1)."""


@dataclass(frozen=True)
class TorusPoint:
    """A critical point: both angles, loss, eigenvalues of the Hessian, and its index as a zero of the gradient.

    `radius`: no other zero within this distance in each angle; 0 for a degenerate point, where the search has left
    squares that reach as far as `unresolved`.
    """

    angles: tuple[float, float]
    loss: float
    gradient_norm: float
    eigenvalues: tuple[float, float]
    index: int
    radius: float
    unresolved: float = 0.0

    @property
    def degenerate(self) -> bool:
        """Whether the Hessian is singular, to rounding."""
        return self.radius == 0

    @property
    def rows(self) -> np.ndarray:
        """The two students, shape (2, 2)."""
        phi = np.array(self.angles)
        return np.stack([np.cos(phi), np.sin(phi)], axis=1)


@dataclass(frozen=True)
class TorusSearch:
    """Every critical point on the torus of the given `period`, and the reason to believe it.

    `squares`: how many squares were examined; `unresolved`: how many were left, all of them around degenerate points;
    `stray`: how many were left elsewhere (0 in a complete search); `index_sum`: 0 in a complete search.
    """

    points: tuple[TorusPoint, ...]
    period: float
    squares: int
    unresolved: int
    stray: int
    finest: float
    index_sum: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index_sum", sum(p.index for p in self.points))

    @property
    def complete(self) -> bool:
        """Whether no zero of the gradient can have been missed, degenerate neighbourhoods aside."""
        return self.stray == 0 and self.index_sum == 0


def search_torus(task: Sphere, *, grid: int = 64, depth: int = 9) -> TorusSearch:
    """All critical points of a task with two students in dimension 2.

    `grid`: squares a side at first; `depth`: how often those in doubt are cut in four.
    """
    if task.width != 2 or task.dim != 2:
        raise ValueError(
            f"The search on the torus is for two students in dimension 2; received {task.width} in dimension "
            f"{task.dim}."
        )
    field_ = _Field(task)
    period = math.pi if task.degree % 2 == 0 else 2 * math.pi
    ticks = (np.arange(grid) + 0.5) * period / grid
    centres = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    zeros = _polish(field_, centres, period)
    radii = np.array([_alone_within(field_, z) for z in zeros])
    half = period / (2 * grid)
    squares = 0
    for _ in range(depth + 1):
        squares += len(centres)
        centres = centres[~_settled(field_, centres, half, zeros, radii, period)]
        if len(centres) == 0:
            break
        half /= 2
        corners = half * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        centres = (centres[:, None, :] + corners[None]).reshape(-1, 2)
    degenerate = zeros[radii == 0]
    if len(centres) and len(degenerate):
        gaps = _gap(centres[:, None, :], degenerate[None], period).max(axis=-1)
        owner, reach = gaps.argmin(axis=1), gaps.min(axis=1)
    else:
        owner, reach = np.zeros(len(centres), int), np.full(len(centres), np.inf)
    near = reach < 0.1
    extents = {j: float(reach[near & (owner == j)].max(initial=0.0)) for j in range(len(degenerate))}
    points = []
    for zero, radius in zip(zeros, radii, strict=True):
        loss, gradient, hessian = field_.evaluate(zero[None])
        values = np.linalg.eigvalsh(hessian[0])
        j = int(np.flatnonzero(np.all(degenerate == zero, axis=1))[0]) if radius == 0 else -1
        index = int(np.sign(values[0] * values[1])) if radius > 0 else _winding(field_, zero, max(2 * extents[j], 1e-2))
        points.append(
            TorusPoint(
                angles=(float(zero[0]), float(zero[1])),
                loss=float(loss[0]),
                gradient_norm=float(np.linalg.norm(gradient[0])),
                eigenvalues=(float(values[0]), float(values[1])),
                index=index,
                radius=float(radius),
                unresolved=extents.get(j, 0.0),
            )
        )
    return TorusSearch(tuple(points), period, squares, int(near.sum()), int((~near).sum()), half)


class _Field:
    """Loss, gradient and Hessian in the two angles, in NumPy, and the bounds b_2, b_3."""

    def __init__(self, task: Sphere):
        self.rho, self.r = task.degree, float(task.repulsion)
        v = np.asarray(task.teacher.incoming)
        self.psi = np.arctan2(v[:, 1], v[:, 0])
        self.constant = self.r + float(task.constant)
        rho = self.rho
        frequencies = np.abs(rho - 2 * np.arange(rho + 1))
        weights = np.array([math.comb(rho, j) for j in range(rho + 1)]) / 2.0**rho
        self.bend = (len(self.psi) + 4 * self.r) * float(weights @ frequencies**3)

    def _p(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rho, cos, sin = self.rho, np.cos(x), np.sin(x)
        second = rho * (rho - 1) * cos ** max(rho - 2, 0) * sin**2 - rho * cos**rho
        return cos**rho, -rho * cos ** (rho - 1) * sin, second

    def evaluate(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(m, 2) angles to losses (m,), gradients (m, 2) and Hessians (m, 2, 2)."""
        own = [sum(part) for part in zip(*(self._p(phi - psi) for psi in self.psi), strict=True)]
        pair = self._p(phi[:, 0] - phi[:, 1])
        loss = self.r * pair[0] - np.sum(own[0], axis=1) + self.constant
        gradient = self.r * pair[1][:, None] * np.array([1.0, -1.0]) - own[1]
        hessian = self.r * pair[2][:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        hessian[:, [0, 1], [0, 1]] -= own[2]
        return loss, gradient, hessian


def _gap(first: np.ndarray, second: np.ndarray, period: float) -> np.ndarray:
    """Distance in each angle on the torus."""
    return np.abs((first - second + period / 2) % period - period / 2)


def _polish(field_: _Field, starts: np.ndarray, period: float) -> np.ndarray:
    """Distinct ends of Newton's method; around degenerate points, where it is slow, in many steps."""
    phi = starts.copy()
    for _ in range(80):
        _, gradient, hessian = field_.evaluate(phi)
        # Least squares with a little damping keeps steps finite where the Hessian is singular.
        normal = hessian @ hessian + 1e-14 * np.eye(2)
        step = np.linalg.solve(normal, (hessian @ gradient[:, :, None]))[:, :, 0]
        length = np.linalg.norm(step, axis=1, keepdims=True)
        phi = phi - step * np.minimum(1.0, 0.2 / np.maximum(length, 1e-300))
    _, gradient, hessian = field_.evaluate(phi)
    determinant = np.abs(np.linalg.det(hessian))
    found = np.linalg.norm(gradient, axis=1) < 1e-11 * field_.rho
    # Regular points first; degenerate ones are known to about the cube root of rounding and come as clusters.
    zeros: list[np.ndarray] = []
    regular = found & (determinant > 1e-3)
    for point in phi[regular]:
        if not zeros or np.min(_gap(np.array(zeros), point, period).max(axis=1)) > 1e-8:
            zeros.append(point % period)
    clusters: list[list[np.ndarray]] = []
    for point in phi[found & ~regular]:
        home = next((c for c in clusters if _gap(c[0], point, period).max() < 1e-2), None)
        clusters.append([point]) if home is None else home.append(point)
    for cluster in clusters:
        offsets = (np.array(cluster) - cluster[0] + period / 2) % period - period / 2
        zeros.append(_centre(field_, cluster[0] + offsets.mean(axis=0)) % period)
    tidy = np.array([np.where(_gap(z, np.zeros(2), period) < 1e-12, 0.0, z) for z in zeros])
    return tidy[np.lexsort((tidy[:, 1].round(9), tidy[:, 0].round(9)))]


def _centre(field_: _Field, origin: np.ndarray) -> np.ndarray:
    """A degenerate zero to rounding, from a guess: Newton's method on its flat gradient stops at the cube root of
    rounding.

    On the curve where the gradient's stiff component vanishes, its soft component is a s³ in the distance s from the
    zero: two points of the curve on either side give the zero by their cube roots.
    """
    reach = 0.05
    for _ in range(20):
        values, vectors = np.linalg.eigh(field_.evaluate(origin[None])[2][0])
        soft, stiff = vectors[:, np.argmin(np.abs(values))], vectors[:, np.argmax(np.abs(values))]
        above = _soft_slope(field_, origin + reach * soft, soft, stiff)[0]
        below = _soft_slope(field_, origin - reach * soft, soft, stiff)[0]
        if above == below:
            break
        shift = -reach * (above + below) / (above - below)
        origin = _soft_slope(field_, origin + shift * soft, soft, stiff)[1]
        if abs(shift) < 1e-15:
            break
    return origin


def _soft_slope(field_: _Field, point: np.ndarray, soft: np.ndarray, stiff: np.ndarray) -> tuple[float, np.ndarray]:
    """The cube root of the gradient's soft component where its stiff one vanishes, and that place, along `stiff`."""
    for _ in range(30):
        _, gradient, hessian = field_.evaluate(point[None])
        point = point - stiff * (stiff @ gradient[0]) / (stiff @ hessian[0] @ stiff)
    return float(np.cbrt(soft @ field_.evaluate(point[None])[1][0])), point


def _alone_within(field_: _Field, zero: np.ndarray) -> float:
    """R such that no other zero has both angles within R; 0 if the Hessian is singular."""
    hessian = field_.evaluate(zero[None])[2][0]
    if abs(np.linalg.det(hessian)) < 1e-6:
        return 0.0
    return float(1 / (np.abs(np.linalg.inv(hessian)).sum(axis=1).max() * field_.bend))


def _settled(
    field_: _Field, centres: np.ndarray, half: float, zeros: np.ndarray, radii: np.ndarray, period: float
) -> np.ndarray:
    """Squares without a zero, or with none but a known one."""
    _, gradient, hessian = field_.evaluate(centres)
    slack = field_.bend * half**2 / 2 + _ROUNDING * field_.rho
    plain = np.any(np.abs(gradient) > np.abs(hessian).sum(axis=2) * half + slack, axis=1)
    determinant = hessian[:, 0, 0] * hessian[:, 1, 1] - hessian[:, 0, 1] * hessian[:, 1, 0]
    usable = np.abs(determinant) > 1e-9
    inverse = np.zeros_like(hessian)
    inverse[usable] = np.linalg.inv(hessian[usable])
    newton = np.abs(np.einsum("mij,mj->mi", inverse, gradient))
    far = usable & np.any(newton > half * (1 + 1e-9) + np.abs(inverse).sum(axis=2) * slack, axis=1)
    known = np.zeros(len(centres), bool)
    for zero, radius in zip(zeros, radii, strict=True):
        known |= np.all(_gap(centres, zero, period) + half <= radius, axis=1)
    return plain | far | known


def _winding(field_: _Field, zero: np.ndarray, radius: float, samples: int = 4096) -> int:
    """How often the gradient turns around on a small circle."""
    turn = np.linspace(0, 2 * np.pi, samples, endpoint=False)
    circle = zero + radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    gradient = field_.evaluate(circle)[1]
    heading = np.arctan2(gradient[:, 1], gradient[:, 0])
    return round(float(np.sum(_wrapped(np.diff(np.append(heading, heading[0]))))) / (2 * np.pi))


def _wrapped(angles: np.ndarray) -> np.ndarray:
    return (angles + np.pi) % (2 * np.pi) - np.pi
