"""The completely positive rank: the least number of non-negative rows b_r with A = Σ_r b_r b_rᵀ, with certificates.

A matrix A (N × N) is completely positive if A = BᵀB for a B ≥ 0 of k rows; the least k is its cp-rank. For a ReLU
network it bounds the number of hidden neurons from below, max(Rank K, Rank_cp K^σ) ≤ Rank_σ(K, K^σ) (Jacot et al. 2022,
Section 4.2).

- **From above**: a factor B that reproduces A (`CpRank.factor`, `CpRank.residual`).
- **From below**: the rank of A; and its graph, which joins i and j where A_ij > 0. The support of a row of B is a
  clique of the graph, since A_ij ≥ B_ri B_rj, and every edge lies in the support of some row. So B needs at least as
  many rows as there are cliques in the smallest cover of the edges. It also needs at least as many rows as there are
  edges no two of which lie in one clique (`CpRank.edges`: a list that is easy to check, see `are_incompatible`).
- **Exactly** if no three vertices are joined (a triangle-free graph). For a connected component with a cycle, the
  cp-rank is the number of edges. For a tree it is the number of edges, plus one unless A is singular there (Drew,
  Johnson and Loewy 1994, "Completely positive matrices associated with M-matrices"; Jacot et al. 2022, Prop. 13 is the
  case A = EᵀE). `triangle_free_factor` constructs the factor.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import Bounds, minimize
from scipy.sparse.csgraph import connected_components

from understudy.papers.attraction_repulsion.cliques import (
    Edge,
    clique_cover,
    edges_of,
    fit_in_one_clique,
    incompatible_edges,
    is_triangle_free,
)
from understudy.papers.attraction_repulsion.unicyclic import absorb_slack

ZERO = 1e-10
"""Entries, eigenvalues and slacks below this times the largest entry of A count as zero. It is far above the rounding
of sums of N products, and far below any significant entry."""


@dataclass(frozen=True)
class CpRank:
    """Bounds on the cp-rank of one matrix, with their certificates.

    **Attributes**

    - `lower`, `upper`: the bounds.
    - `factor`: B ≥ 0 of shape (upper, N); `residual` is the largest entry of |A - BᵀB| over the largest of A.
    - `edges`: edges of which no two fit in one row of any factor, if they were searched for.
    - `reason`: the reason for the lower bound.
    """

    lower: int
    upper: int
    factor: Float[np.ndarray, "k N"]
    residual: float
    edges: tuple[Edge, ...]
    reason: str

    @property
    def exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper


def incidence(edges: Sequence[Edge], vertices: int) -> Float[np.ndarray, "k N"]:
    """E of shape (edges, vertices) with E_ev = 1 where v is an end of e (Jacot et al. 2022, Prop. 13)."""
    rows = np.zeros((len(edges), vertices))
    for r, (i, j) in enumerate(edges):
        rows[r, i] = rows[r, j] = 1.0
    return rows


def bipartite_matrix(n: int) -> Float[np.ndarray, "N N"]:
    """B_N = EᵀE of the complete bipartite graph with N/2 vertices per side (Jacot et al. 2022, Section 4.2).

    Its cp-rank is N²/4.

    >>> bipartite_matrix(4)[0].tolist()
    [2.0, 0.0, 1.0, 1.0]
    """
    if n < 2 or n % 2:
        raise ValueError(f"B_N has two sides of N/2 vertices, so N must be even and at least 2; received {n}.")
    h = n // 2
    return np.kron(np.eye(2), h * np.eye(h)) + np.kron(np.eye(2)[::-1], np.ones((h, h)))


def graph(matrix: Float[np.ndarray, "N N"]) -> Bool[np.ndarray, "N N"]:
    """Which pairs i ≠ j have A_ij > 0."""
    joined = matrix > ZERO * np.max(np.abs(matrix), initial=0.0)
    np.fill_diagonal(joined, False)
    return joined


def are_incompatible(matrix: Float[np.ndarray, "N N"], edges: Iterable[Edge]) -> bool:
    """Whether these are edges of A's graph no two of which fit in one row. Then the cp-rank is at least their number.

    Two edges fit in one row only if all their ends are joined with each other, that is, if no entry of A among the ends
    is zero.
    """
    joined, listed = graph(matrix), list(edges)
    if not all(joined[e] for e in listed) or len({frozenset(e) for e in listed}) != len(listed):
        return False
    return not any(fit_in_one_clique(joined, e, f) for r, e in enumerate(listed) for f in listed[:r])


def triangle_free_factor(matrix: Float[np.ndarray, "N N"]) -> Float[np.ndarray, "k N"]:
    """A factor B ≥ 0 with A = BᵀB and the least possible number of rows, for a connected triangle-free graph.

    A is completely positive if and only if its comparison matrix M (diagonal of A, off-diagonal -A) is positive
    semidefinite. Its least eigenpair M x = μx has x > 0. The rows of the edges e = ij, with squares A_ij x_j/x_i and
    A_ij x_i/x_j at their ends, give A up to a slack μ on the diagonal. `absorb_slack` moves this slack along the edges.
    Around a cycle it vanishes; in a tree it is left at one vertex, as one more row.
    """
    joined = graph(matrix)
    edges = edges_of(joined)
    scale = float(np.max(np.abs(matrix), initial=0.0))
    if scale == 0:
        return np.zeros((0, len(matrix)))
    values, vectors = np.linalg.eigh(2 * np.diag(np.diag(matrix)) - np.where(joined, matrix, np.diag(np.diag(matrix))))
    if values[0] < -ZERO * scale:
        raise ValueError(
            f"This matrix is not completely positive: its graph has no triangles and its comparison matrix has the "
            f"eigenvalue {values[0]:.3g}."
        )
    x = np.abs(vectors[:, 0])
    squares = {(i, j): matrix[i, j] * x[j] / x[i] for e in edges for i, j in (e, e[::-1])}
    left: dict[int, float] = {}
    if values[0] > ZERO * scale:
        left = absorb_slack(matrix, edges, squares)
    rows = np.zeros((len(edges) + len(left), len(matrix)))
    for r, (i, j) in enumerate(edges):
        rows[r, i], rows[r, j] = np.sqrt(squares[i, j]), np.sqrt(squares[j, i])
    for r, (i, slack) in enumerate(left.items(), start=len(edges)):
        rows[r, i] = np.sqrt(slack)
    return rows


def planar_factor(matrix: Float[np.ndarray, "N N"]) -> Float[np.ndarray, "k N"]:
    """A factor of a non-negative matrix of rank one or two.

    Its Gram vectors span at most a right angle, so a rotation makes their entries non-negative.
    """
    values, vectors = np.linalg.eigh(matrix)
    x, y = np.sqrt(np.maximum(values[-2:], 0))[::-1, None] * vectors[:, -2:].T[::-1]
    x, y = (x, y) if x.sum() >= 0 else (-x, y)
    angles = np.arctan2(y, x)
    lengths = np.hypot(x, y)
    seen = angles[lengths > np.sqrt(ZERO) * lengths.max()]
    turned = np.clip(angles - seen.min(), 0, np.pi / 2)
    rows = np.stack([lengths * np.cos(turned), lengths * np.sin(turned)])
    return rows[: 1 if values[-2] <= ZERO * values[-1] else 2]


def search_factor(
    matrix: Float[np.ndarray, "N N"], rows: int, *, starts: int = 20, seed: int = 0, tolerance: float = ZERO
) -> tuple[Float[np.ndarray, "k N"], float]:
    """The best B ≥ 0 with this many rows from random starts, and max|A - BᵀB|/max|A|.

    Stops at the first start for which the latter is below `tolerance`. Minimises ‖A - BᵀB‖² by L-BFGS-B. Failing to
    find a factor proves nothing.
    """
    rng = np.random.default_rng(seed)
    n, scale = len(matrix), float(np.max(np.abs(matrix)))
    target = matrix / scale

    def cost(flat: np.ndarray) -> tuple[float, np.ndarray]:
        b = flat.reshape(rows, n)
        gap = b.T @ b - target
        return float(np.sum(gap**2)), (4 * b @ gap).ravel()

    best, least = np.zeros((rows, n)), np.inf
    for _ in range(starts):
        point = np.abs(rng.normal(size=rows * n)) * np.sqrt(np.trace(target) / (rows * n))
        for slowest, steps in ((1e-10, 1000), (0.0, 5000)):  # abandon a start early if it settles far from zero
            options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": slowest, "gtol": 1e-13}
            found = minimize(cost, point, jac=True, method="L-BFGS-B", bounds=Bounds(0, np.inf), options=options)
            point = found.x
            if found.fun > 1e-6:
                break
        b = point.reshape(rows, n)
        residual = float(np.max(np.abs(b.T @ b - target)))
        if residual < least:
            best, least = b * np.sqrt(scale), residual
        if least <= tolerance:
            break
    return best, least


def cp_rank(matrix: np.ndarray, *, starts: int = 20, seed: int = 0) -> CpRank:
    """Bounds on the cp-rank of a symmetric matrix with entries ≥ 0, component by component of its graph.

    The bounds are exact for components without triangles and for components of rank one and two. Elsewhere the lower
    bound is the larger of the rank and the least clique cover. From there upwards factors are searched for, with
    `starts` random starts per number of rows.

    >>> found = cp_rank(bipartite_matrix(4))
    >>> found.lower, found.upper
    (4, 4)
    """
    a = np.asarray(matrix, float)
    scale = float(np.max(np.abs(a), initial=0.0))
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not np.all(np.isfinite(a)):
        raise ValueError(f"The cp-rank is defined for one finite square matrix; received shape {a.shape}.")
    if np.max(np.abs(a - a.T), initial=0.0) > ZERO * scale or np.min(a, initial=0.0) < -ZERO * scale:
        raise ValueError(
            "A completely positive matrix is symmetric with entries ≥ 0; the largest asymmetry is "
            f"{np.max(np.abs(a - a.T)):.3g}, the least entry {np.min(a):.3g}."
        )
    if np.linalg.eigvalsh(a)[0] < -ZERO * scale * len(a):
        raise ValueError(
            "A completely positive matrix is positive semidefinite; this one has the eigenvalue "
            f"{np.linalg.eigvalsh(a)[0]:.3g}."
        )
    a = np.maximum((a + a.T) / 2, 0)
    joined = graph(a)
    parts = connected_components(joined, directed=False)[1]
    lower, factors, certified, reasons = 0, [np.zeros((0, len(a)))], [], set()
    for part in range(parts.max() + 1):
        inside = np.flatnonzero(parts == part)
        bound, reason, factor = _component(a[np.ix_(inside, inside)], scale, starts, seed)
        lower += bound
        reasons.add(reason)
        rows = np.zeros((len(factor), len(a)))
        rows[:, inside] = factor
        factors.append(rows)
        chosen = incompatible_edges(joined[np.ix_(inside, inside)])
        certified += [(int(inside[i]), int(inside[j])) for i, j in chosen]
    factor = np.concatenate(factors)
    residual = float(np.max(np.abs(factor.T @ factor - a))) / scale if scale else 0.0
    return CpRank(lower, len(factor), factor, residual, tuple(certified), "; ".join(sorted(reasons)))


LARGEST_COVER = 24
"""Larger graphs with triangles are not covered by cliques, because they may have exponentially many."""


def cp_lower_bound(matrix: Float[np.ndarray, "N N"]) -> tuple[int, str]:
    """A lower bound on the cp-rank and its reason, without searching for a factor: cheap enough for any layer.

    Each component of the graph adds the larger of its rank and its clique cover (only the rank, if it is large).
    """
    scale = float(np.max(np.abs(matrix), initial=0.0))
    parts = connected_components(graph(matrix), directed=False)[1]
    bounds = [_component_bound(matrix[np.ix_(parts == p, parts == p)], scale) for p in range(parts.max() + 1)]
    return sum(bound for bound, _ in bounds), "; ".join(sorted({reason for _, reason in bounds}))


def _component_bound(a: Float[np.ndarray, "N N"], scale: float) -> tuple[int, str]:
    if np.max(a, initial=0.0) <= ZERO * scale:
        return 0, "no entries"
    joined = graph(a)
    rank = int(np.sum(np.linalg.eigvalsh(a) > ZERO * scale * len(a)))
    if is_triangle_free(joined):
        edges = len(edges_of(joined))
        return (edges, "edges, no two in one clique") if edges >= rank else (rank, "rank")
    cover = clique_cover(joined) if len(a) <= LARGEST_COVER else 0
    return (cover, "clique cover") if cover > rank else (rank, "rank")


def _component(
    a: Float[np.ndarray, "N N"], scale: float, starts: int, seed: int
) -> tuple[int, str, Float[np.ndarray, "k N"]]:
    """Lower bound, its reason and a factor, for a connected graph."""
    lower, reason = _component_bound(a, scale)
    if lower == 0:
        return lower, reason, np.zeros((0, len(a)))
    if is_triangle_free(graph(a)):
        return lower, reason, triangle_free_factor(a)
    if reason == "rank" and lower <= 2:
        return lower, reason, planar_factor(a)
    most = len(a) * (len(a) + 1) // 2
    for rows in range(lower, most + 1):
        factor, residual = search_factor(a, rows, starts=starts, seed=seed)
        if residual <= ZERO:
            return lower, reason, factor
    raise ValueError(
        f"No non-negative factor with up to {most} rows was found, and a completely positive matrix has one: either "
        f"this matrix is not completely positive, or {starts} starts are too few."
    )
