"""Points (x, p) of a family in scaled coordinates, and Newton's method towards critical points among them.

Lengths are measured in z = (x/X, (p - low)/R): X is the size of the parameters, R the length of the interval. In these
coordinates G(z) = X ∂L/∂x / h and J(z) = (X² H, X R ∂g/∂p) / h, with h the norm of X² H at the start.
"""

from dataclasses import dataclass

import numpy as np

from understudy.branches.slices import Slice, Slices

ROUNDING = 1e-13
"""Newton steps of this length, in scaled coordinates, are rounding errors."""


@dataclass(frozen=True)
class Station:
    """A critical point on a branch.

    - `x`, `p`: the point and the parameter; `here`: loss and derivatives there.
    - `values`, `vectors`: eigenvalues of the Hessian, ascending, and eigenvectors, transversal to the symmetries.
    - `tangent`: the unit tangent of the branch in scaled coordinates, its last entry along p.
    """

    x: np.ndarray
    p: float
    here: Slice
    values: np.ndarray
    vectors: np.ndarray
    tangent: np.ndarray

    @property
    def index(self) -> int:
        """Number of negative eigenvalues."""
        return int(np.sum(self.values < 0))

    @property
    def noise(self) -> float:
        """Eigenvalues below this are zero to rounding (Weyl's bound for a backward stable eigensolver, times ten)."""
        return 10 * np.finfo(float).eps * len(self.x) * self.here.size

    @property
    def degenerate(self) -> bool:
        """Whether an eigenvalue is zero to rounding."""
        return bool(np.min(np.abs(self.values)) <= self.noise)


class Frame:
    """The scaled coordinates of one continuation."""

    def __init__(self, slices: Slices, x: np.ndarray, p: float, length: float | None = None):
        self.slices = slices
        self.length = max(1.0, float(np.linalg.norm(x))) if length is None else float(length)
        self.range = slices.high - slices.low
        self.height = slices.at(x, p).size * self.length**2

    def scaled(self, x: np.ndarray, p: float) -> np.ndarray:
        """z of a point."""
        return np.append(x / self.length, (p - self.slices.low) / self.range)

    def unscaled(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """The point (x, p) of z. Parameters one rounding error outside the interval are set to its ends."""
        p = self.slices.low + self.range * float(z[-1])
        for end in (self.slices.low, self.slices.high):
            p = end if abs(p - end) <= 1e-14 * self.range else p
        return self.length * z[:-1], p

    def inside(self, p: float) -> bool:
        """Whether p lies in the interval."""
        return self.slices.low <= p <= self.slices.high

    def residual(self, here: Slice) -> np.ndarray:
        """G."""
        return here.gradient * self.length / self.height

    def jacobian(self, here: Slice) -> np.ndarray:
        """J, (P, P + 1), with the symmetries made stiff."""
        square = here.transversal * self.length**2
        return np.column_stack([square, here.slope * self.length * self.range]) / self.height

    def derivative(self, z: np.ndarray, direction: np.ndarray, step: float = 1e-4) -> np.ndarray:
        """dJ(z + hφ)/dh at h = 0, by central differences (error 1e-8); shifted inwards at the ends of the interval."""
        shift = min(max(float(z[-1]), step), 1 - step) - float(z[-1]) if direction[-1] else 0.0
        if shift:
            z = np.append(z[:-1], z[-1] + shift)
        ahead, behind = (self.jacobian(self.slices.at(*self.unscaled(z + s * step * direction))) for s in (1, -1))
        return (ahead - behind) / (2 * step)

    def newton(self, z: np.ndarray, row: np.ndarray, most: int = 12) -> np.ndarray | None:
        """The solution of G(z) = 0 and row·(z - z₀) = 0 next to z₀, or None if Newton's method does not converge."""
        anchor, before = z, np.inf
        for _ in range(most):
            x, p = self.unscaled(z)
            if not (self.inside(p) and np.all(np.isfinite(z))):
                return None
            here = self.slices.at(x, p)
            matrix = np.vstack([self.jacobian(here), row])
            right = np.append(self.residual(here), row @ (z - anchor))
            if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(right))):
                return None
            try:
                move = np.linalg.solve(matrix, right)
            except np.linalg.LinAlgError:
                return None
            size = float(np.linalg.norm(move))
            if not np.isfinite(size) or size > max(2 * before, 1.0):
                return None
            z = z - move
            if size <= ROUNDING or (size <= 1e-10 and size > 0.5 * before):
                break
            before = size
        else:
            return None
        return z if self.inside(self.unscaled(z)[1]) else None

    def station(self, z: np.ndarray, towards: np.ndarray) -> Station | None:
        """The critical point z with its spectrum, and its tangent in the half space of `towards`."""
        x, p = self.unscaled(z)
        here = self.slices.at(x, p)
        if not np.all(np.isfinite(here.hessian)):
            return None
        values, vectors = here.spectrum()
        try:
            tangent = np.linalg.solve(np.vstack([self.jacobian(here), towards]), np.append(np.zeros(len(x)), 1.0))
        except np.linalg.LinAlgError:
            return None
        length = float(np.linalg.norm(tangent))
        if not np.isfinite(length):
            return None
        return Station(x, p, here, values, vectors, tangent / length)

    @property
    def upward(self) -> np.ndarray:
        """The unit vector along p."""
        return np.append(np.zeros(self.slices.size), 1.0)
