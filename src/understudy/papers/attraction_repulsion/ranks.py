"""Claim `ranks`: how many neurons the covariances of a hidden layer need, from both sides."""

from __future__ import annotations

from typing import Any

from understudy.papers.check import at_least, at_most, equal, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _triangle_free(rng: Any, vertices: int) -> list[tuple[int, int]]:
    """A random maximal triangle-free graph: edges in random order, each added if it closes no triangle."""
    import itertools

    import numpy as np

    from understudy.papers.attraction_repulsion.cliques import is_triangle_free

    joined = np.zeros((vertices, vertices), bool)
    edges: list[tuple[int, int]] = []
    for i, j in rng.permutation(list(itertools.combinations(range(vertices), 2))).tolist():
        joined[i, j] = joined[j, i] = True
        if is_triangle_free(joined):
            edges.append((i, j))
        else:
            joined[i, j] = joined[j, i] = False
    return edges


def _bipartite(sizes: list[int], starts: int) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """B_N: the factor in whole numbers, incompatible edges, the clique cover, and the best factors of fewer rows."""
    import numpy as np

    from understudy.papers.attraction_repulsion import cp_rank as cp

    found = {n: cp.cp_rank(cp.bipartite_matrix(n)) for n in sizes}
    quarter = {n: n * n // 4 for n in sizes}
    whole, certified, covers = [], [], []
    searched: dict[str, Any] = {}
    shortfall = []
    for n in sizes:
        matrix = cp.bipartite_matrix(n)
        edges = cp.incidence([(i, j) for i in range(n // 2) for j in range(n // 2, n)], n).astype(int)
        whole.append(np.array_equal(edges.T @ edges, matrix.astype(int)) and len(edges) == quarter[n])
        certified.append(cp.are_incompatible(matrix, found[n].edges) and len(found[n].edges) == quarter[n])
        covers.append(cp.clique_cover(cp.graph(matrix)))
        rows = np.arange(quarter[n] - 2, quarter[n] + 2)
        residuals = np.array([cp.search_factor(matrix, int(k), starts=starts)[1] for k in rows])
        searched |= {f"rows_{n}": rows, f"residuals_{n}": residuals}
        shortfall.append(residuals[rows < quarter[n]].min())
    checks = [
        equal("cp-rank of B_N, from above", list(quarter.values()), [found[n].upper for n in sizes]),
        equal("cp-rank of B_N, from below", list(quarter.values()), [found[n].lower for n in sizes]),
        holds("B_N = EᵀE in whole numbers with N²/4 rows", all(whole), {"sizes": sizes}),
        holds("N²/4 edges, no two in one row (checked pair by pair)", all(certified), {"sizes": sizes}),
        equal("least clique cover of the graph, by an integer program", list(quarter.values()), covers),
        at_least("best residual with fewer rows, many starts", shortfall, bound=1e-4),
        at_most("residual of the factor", [found[n].residual for n in sizes], bound=1e-12),
    ]
    return checks, {f"cp-rank of B_{n}": found[n].upper for n in sizes}, searched


def _covariances(settings: Settings, progress: Progress) -> list[Any]:
    """Lemma 10 and Prop. 8 on random networks: bounds, and networks rebuilt with as many neurons as the bound
    allows.
    """
    import numpy as np

    from understudy.networks import Deep
    from understudy.papers.attraction_repulsion.rank_bounds import rank_bounds
    from understudy.surgery import reduce_by_covariance
    from understudy.surgery.conical import generators

    rng = np.random.default_rng(1)
    over, under, residuals, outputs, norms = [], [], [], [], []
    # As the rank of random generators of the cone, more than it can have dimensions.
    draws = [rng.normal(size=(4 * n * (n + 1), n)) for n in settings["inputs"]]
    dimensions = [int(np.linalg.matrix_rank(generators(z, "relu"))) for z in draws]
    for n in progress.over(settings["inputs"], "inputs N ="):
        limit = n * (n + 1)
        for seed in range(settings["networks"]):
            z = rng.normal(size=(2 * limit, n))
            found = rank_bounds(z, "relu")
            over.append(found.upper / limit)
            under.append(found.upper - found.lower)
            residuals.append(found.residual)
            x = rng.normal(size=(n, n))
            deep = Deep.glorot([n, 2 * limit, 2 * limit, 2], seed=seed, bias=0.5)
            report = reduce_by_covariance(deep, "relu", x).report
            over += [layer.after / limit for layer in report.layers]
            outputs.append(report.relative_change)
            norms.append(report.norm_after / report.norm_before)
    return [
        equal("dimension of the cone of pairs", [n * (n + 1) for n in settings["inputs"]], dimensions),
        at_most("neurons after reduction over N(N+1)", over, bound=1.0),
        at_least("upper minus lower bound of Rank_σ", under, bound=0),
        at_most("covariances after reduction, relative change", residuals, bound=1e-11),
        at_most("outputs of deep networks rebuilt with ≤ N(N+1) neurons, relative change", outputs, bound=1e-6),
        at_most("their norm over the norm before", norms, bound=1 + 1e-9),
    ]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.papers.attraction_repulsion import cp_rank as cp

    progress(0.0, "bipartite graphs")
    checks, measured, data = _bipartite(settings["sizes"], settings["starts"])
    rng = np.random.default_rng(0)
    lower, upper, counted, residuals = [], [], [], []
    for _ in range(settings["graphs"]):
        vertices = int(rng.integers(3, settings["vertices"] + 1))
        edges = _triangle_free(rng, vertices)
        rows = cp.incidence(edges, vertices)
        found = cp.cp_rank(rows.T @ rows)
        counted.append(len(edges))
        lower.append(found.lower)
        upper.append(found.upper)
        residuals.append(found.residual)
    complete = cp.incidence([(i, j) for i in range(4) for j in range(i)], 4)
    checks += [
        holds(
            "Prop. 13 on random triangle-free graphs, from both sides",
            lower == upper == counted,
            {"graphs": len(counted)},
        ),
        at_most("their factors, relative residual", residuals, bound=1e-12),
        at_most(
            "with triangles fewer rows than edges can do: K₄, 6 edges", cp.cp_rank(complete.T @ complete).upper, bound=4
        ),
        *_covariances(settings, progress),
    ]
    return Measurement(checks, measured, data | {"sizes": np.array(settings["sizes"])})


def _figure(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    from understudy.plots.style import COLOURS

    data = measurement.data
    left, right = figure.subplots(1, 2)
    sizes = data["sizes"]
    n = np.linspace(2, max(sizes) + 1, 100)
    left.plot(n, n * (n + 1), color="black", ls=":", label="N(N+1), bound for all pairs")
    left.plot(n, n**2 / 4, color=COLOURS[0], label="N²/4")
    left.plot(n, n - 1, color=COLOURS[1], ls="--", label="N - 1, the rank of B_N")
    left.plot(
        sizes,
        [measurement.measured[f"cp-rank of B_{k}"] for k in sizes],
        "o",
        color=COLOURS[0],
        label="certified cp-rank",
    )
    left.set(xlabel="N", ylabel="neurons", yscale="log", title="The cp-rank of B_N")
    left.legend(fontsize=8.5)
    for k, colour, marker in zip(sizes, COLOURS, "osDv^", strict=False):
        rows = data[f"rows_{k}"] - k**2 // 4
        right.semilogy(rows, np.maximum(data[f"residuals_{k}"], 1e-16), marker + "-", color=colour, label=f"N = {k}")
    right.axvline(-0.5, color="black", ls=":", lw=1)
    right.set(xlabel="rows - N²/4", ylabel="least residual found", title="Factors with fewer rows do not exist")
    right.set_xticks([-2, -1, 0, 1])
    right.legend(fontsize=9)


CLAIM = Claim(
    paper="attraction-repulsion",
    id="ranks",
    where="Sec. 4.1-4.2, Lemma 10, Prop. 8, Prop. 13",
    statement=(
        "Rank(K) ≤ Rank_σ(K, K^σ) ≤ N(N+1), and as many neurons give the same covariances and outputs; EᵀE of a "
        "triangle-free graph has its number of edges as cp-rank, so B_N has N²/4."
    ),
    paper_value={"cp-rank of B_N": "N²/4", "Rank_σ": "≤ N(N+1)"},
    measured_by=(
        "Factors in whole numbers from above, incompatible edges and clique covers from below; random triangle-free "
        "graphs; Carathéodory's reduction of wide layers by non-negative least squares, and networks rebuilt from it."
    ),
    tolerance="exact counts; 1e-11 on covariances, 1e-6 on outputs",
    tolerance_reason=(
        "Sums of a few products in rounded arithmetic; outputs pass through pseudo-inverses of activations with "
        "condition numbers up to 1e5."
    ),
    quick={"sizes": [4, 6, 8], "starts": 10, "graphs": 20, "vertices": 8, "inputs": [2, 3, 4], "networks": 3},
    full={
        "sizes": [4, 6, 8, 10],
        "starts": 50,
        "graphs": 200,
        "vertices": 12,
        "inputs": [2, 3, 4, 5, 6, 8],
        "networks": 20,
    },
    measure=_measure,
    figure=_figure,
)
