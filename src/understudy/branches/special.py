r"""Where a branch folds or meets another: folds, transcritical points and pitchforks.

Each is the regular zero of an extended system, which Newton's method finds to rounding. With G and J = (H, s) in the
scaled coordinates of `Frame`, and a unit null vector v of H:

- fold: G = 0, Hv = 0, ‖v‖ = 1 for (x, p, v). It is regular if v·s ≠ 0 and the quadratic coefficient is not zero (Moore
  and Spence 1980).
- meeting of two branches: G + βv = 0, Hv = 0, v·s = 0, ‖v‖ = 1 for (x, p, v, β). It is regular if the branches have
  different tangents (Moore 1980). Only a solution with β = 0 is a meeting. A near miss has β ≠ 0.

The tangents at a meeting are the roots of the quadratic form v·d²G[φ, φ] on the null space of J. One of them is
(v, 0) at a pitchfork (the coefficient v·d²G[v, v] vanishes).

If m ≥ 2 eigenvalues vanish together, which symmetry can cause, the branch crosses the point in directions that are
orthogonal to the null space. There the branch is a regular solution of G + Nb = 0, Nᵀ(x - x₀) = 0 with N the null
space, and the parameter is the root of the mean of the m eigenvalues.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from understudy.branches.frame import Frame, Station

Kind = Literal["fold", "pitchfork", "transcritical", "multiple", "undecided"]


@dataclass(frozen=True)
class Located:
    """A special point: its `kind`, place z and null vectors (m, P), all in scaled coordinates.

    - `error`: bound of the parameter's rounding error, in units of the parameter.
    - `tangents`: unit tangents of the branches that meet (two for a simple meeting, one for a fold).
    """

    kind: Kind
    z: np.ndarray
    null: np.ndarray
    error: float
    tangents: tuple[np.ndarray, ...] = field(default=())

    @property
    def multiplicity(self) -> int:
        """Number of eigenvalues that vanish."""
        return len(self.null)


def locate(frame: Frame, before: Station, after: Station) -> Located | None:
    """The special point between two neighbours on a branch, or None if Newton's method does not find one there."""
    low, high = sorted((before.index, after.index))
    turned = before.tangent[-1] * after.tangent[-1] < 0
    if high - low > 1:
        return None if turned else _multiple(frame, before, after, low, high)
    z, null = _guess(frame, before, after, low if high > low else None)
    reach = 2 * float(np.linalg.norm(frame.scaled(after.x, after.p) - frame.scaled(before.x, before.p)))
    attempts = (_fold, _meeting) if turned else (_meeting, _fold)
    for attempt in attempts:
        found = attempt(frame, z, null)
        if found is not None and np.linalg.norm(found.z - z) <= reach:
            return found
    return None


def _guess(frame: Frame, before: Station, after: Station, position: int | None) -> tuple[np.ndarray, np.ndarray]:
    """A point between the neighbours, by linear interpolation of the eigenvalue, and its null vector."""
    if position is None:  # a fork passes its vertex: the eigenvalue touches zero on one side
        position = int(np.argmin(np.abs(after.values)))
        here = int(np.argmin(np.abs(before.values)))
        share = before.tangent[-1] / (before.tangent[-1] - after.tangent[-1])
        nearest = before.vectors[:, here] if share < 0.5 else after.vectors[:, position]
    else:
        share = before.values[position] / (before.values[position] - after.values[position])
        nearest = (before if share < 0.5 else after).vectors[:, position]
    z = (1 - share) * frame.scaled(before.x, before.p) + share * frame.scaled(after.x, after.p)
    return z, nearest


def _extended(frame: Frame, z: np.ndarray, v: np.ndarray, beta: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Residual and Jacobian of the extended system: of a fold (β is None) or of a meeting."""
    here = frame.slices.at(*frame.unscaled(z))
    size = len(v)
    jacobian = frame.jacobian(here)
    h, s = jacobian[:, :-1], jacobian[:, -1]
    along = frame.derivative(z, np.append(v, 0.0))[:, :-1]
    by_p = frame.derivative(z, frame.upward)
    columns = 2 * size + (1 if beta is None else 2)
    matrix = np.zeros((columns, columns))
    x, p, w = slice(0, size), size, slice(size + 1, 2 * size + 1)
    matrix[:size, x], matrix[:size, p] = h, s
    matrix[size : 2 * size, x], matrix[size : 2 * size, p] = along, by_p[:, :-1] @ v
    matrix[size : 2 * size, w] = h
    matrix[2 * size, w] = v
    residual = [frame.residual(here), h @ v, [(v @ v - 1) / 2]]
    if beta is not None:
        residual[0] = residual[0] + beta * v
        matrix[:size, w], matrix[:size, -1] = beta * np.eye(size), v
        matrix[-1, x], matrix[-1, p], matrix[-1, w] = by_p[:, :-1] @ v, v @ by_p[:, -1], s
        residual.append([s @ v])
    return np.concatenate(residual), matrix


def _solve(
    frame: Frame, z: np.ndarray, v: np.ndarray, beta: float | None
) -> tuple[np.ndarray, np.ndarray, float, float] | None:
    """Newton's method on the extended system: (z, v, β, error of p in scaled units), or None."""
    size, before = len(v), np.inf
    for _ in range(15):
        if not (frame.inside(frame.unscaled(z)[1]) and np.all(np.isfinite(z))):
            return None
        residual, matrix = _extended(frame, z, v, beta)
        try:
            move = np.linalg.solve(matrix, residual)
        except np.linalg.LinAlgError:
            return None
        length = float(np.linalg.norm(move))
        if not np.isfinite(length) or length > max(2 * before, 2.0):
            return None
        z, v = z - move[: size + 1], v - move[size + 1 : 2 * size + 1]
        beta = None if beta is None else beta - move[-1]
        if length <= 1e-12 or (length <= 1e-8 and length > 0.5 * before):
            break
        before = length
    else:
        return None
    sensitivity = float(np.linalg.norm(np.linalg.inv(matrix)[size]))
    error = abs(float(move[size])) + 4 * np.finfo(float).eps * np.sqrt(size) * sensitivity
    return z, v / np.linalg.norm(v), 0.0 if beta is None else beta, error


def _fold(frame: Frame, z: np.ndarray, v: np.ndarray) -> Located | None:
    solved = _solve(frame, z, v, None)
    if solved is None:
        return None
    z, v, _, error = solved
    jacobian = frame.jacobian(frame.slices.at(*frame.unscaled(z)))
    if abs(v @ jacobian[:, -1]) <= 1e-7 * max(float(np.linalg.norm(jacobian[:, -1])), 1e-300):
        return None  # a meeting, not a fold
    return Located("fold", z, v[None], error * frame.range, (np.append(v, 0.0),))


def _meeting(frame: Frame, z: np.ndarray, v: np.ndarray) -> Located | None:
    solved = _solve(frame, z, v, 0.0)
    if solved is None:
        return None
    z, v, beta, error = solved
    if abs(beta) > 1e-11:
        return None
    jacobian = frame.jacobian(frame.slices.at(*frame.unscaled(z)))
    bordered = np.block([[jacobian[:, :-1], v[:, None]], [v[None], np.zeros((1, 1))]])
    w = np.linalg.solve(bordered, np.append(-jacobian[:, -1], 0.0))[:-1]
    across, along = np.append(v, 0.0), np.append(w, 1.0)
    along /= np.linalg.norm(along)
    bend, turn = frame.derivative(z, across), frame.derivative(z, along)
    a, b, c = float(v @ bend @ across), float(v @ bend @ along), float(v @ turn @ along)
    scale = max(float(np.linalg.norm(bend)), float(np.linalg.norm(turn)), 1e-300)
    if b * b - a * c <= (1e-6 * scale) ** 2:
        return None
    kind: Kind = "pitchfork" if abs(a) <= 1e-6 * scale else "transcritical"
    tangents = [_normalised(m * across + n * along) for m, n in _roots(0.0 if kind == "pitchfork" else a, b, c)]
    return Located(kind, z, v[None], error * frame.range, tuple(tangents))


def _roots(a: float, b: float, c: float) -> list[tuple[float, float]]:
    """The two lines (m, n) on which a m² + 2b mn + c n² = 0, the steeper (nearer to n = 0) first."""
    q = -(b + np.copysign(np.sqrt(b * b - a * c), b))
    return [(q, a), (c, q)]


def _normalised(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def _multiple(frame: Frame, before: Station, after: Station, low: int, high: int) -> Located | None:
    """A place where the eigenvalues number low … high - 1 vanish together."""
    null = before.vectors[:, low:high]
    ends = (frame.scaled(before.x, before.p), frame.scaled(after.x, after.p))
    count = high - low
    latest: dict[str, np.ndarray] = {}

    def trunk(share: float) -> np.ndarray | None:
        z = (1 - share) * ends[0] + share * ends[1]
        anchor, shift, last = z, np.zeros(count), np.inf
        for _ in range(12):
            here = frame.slices.at(*frame.unscaled(z))
            square = frame.jacobian(here)[:, :-1]
            matrix = np.block([[square, null], [null.T, np.zeros((count, count))]])
            right = np.concatenate([frame.residual(here) + null @ shift, null.T @ (z - anchor)[:-1]])
            move = np.linalg.solve(matrix, right)
            z, shift = z - np.append(move[:-count], 0.0), shift - move[-count:]
            size = float(np.linalg.norm(move))
            if size <= 1e-13 or (size <= 1e-10 and size > 0.5 * last):
                return z if np.linalg.norm(shift) <= 1e-11 else None
            last = size
        return None

    def mean(share: float) -> float:
        z = trunk(share)
        if z is None:
            raise ArithmeticError
        values, vectors = frame.slices.at(*frame.unscaled(z)).spectrum()
        chosen = np.argsort(-np.linalg.norm(null.T @ vectors, axis=0))[:count]
        latest["z"], latest["null"], latest["values"] = z, vectors[:, chosen], values[chosen]
        return float(np.mean(values[chosen]))

    try:
        share = brentq(mean, 0.0, 1.0, xtol=1e-15, rtol=8 * np.finfo(float).eps)
        slope = (mean(1.0) - mean(0.0)) * 1.0
        mean(share)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None
    size = frame.slices.at(*frame.unscaled(latest["z"])).size
    if np.ptp(latest["values"]) > 1e-9 * size:
        return None
    distance = abs(after.p - before.p)
    error = distance * (4 * np.finfo(float).eps * np.sqrt(len(null)) * size / abs(slope) + 1e-15)
    tangent = _normalised(ends[1] - ends[0])
    return Located("multiple", latest["z"], latest["null"].T, error, (tangent,))
