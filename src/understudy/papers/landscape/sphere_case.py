"""One case of `sphere-traps`: explored, and followed from uniform starts and from starts in cones."""

from collections import Counter
from typing import Any

import numpy as np

from understudy.papers.landscape.rows import as_dataset

CONE = float(np.sqrt(0.5))
"""Cone starts have w_i·v_i above this: every student is closer to its own teacher than to any other."""


def case_cell(cell: dict[str, Any]) -> Any:
    """One size and degree: the minima by exploration, shares from uniform starts, and starts in cones.

    Explorations grow until the Morse count comes out, or, where there is none, until they have every minimum at which
    runs end; or until all `starts` are used up.
    """
    import understudy as us
    from understudy.compilation import keep_compiled_programs
    from understudy.papers.tight_balance.cone_starts import uniform_in_cones

    keep_compiled_programs()
    k, seeds = cell["k"], cell["seeds"]
    task = us.Sphere(np.eye(k), width=k, activation=f"hermite:{cell['degree']}")
    runs = us.fit(task, seeds=seeds)
    ended = np.array([run.loss for run in runs if run.certificate.kind == "minimum"])
    for starts in cell["starts"]:
        graph = us.explore(task, starts=starts, symmetric=starts, descents=False)
        known = np.array([p.loss for p in graph.minima])
        unknown = int(np.sum(np.abs(known[:, None] - ended).min(axis=0) > 1e-8))
        if graph.completeness.balanced or (graph.completeness.balanced is None and not unknown):
            break
    labels = Counter(_end(run) for run in runs)
    copies = labels.pop("copies", 0)
    within = us.fit(task, seeds=seeds, init=uniform_in_cones(task, seeds, CONE))
    return as_dataset(
        {
            "k": k,
            "degree": cell["degree"],
            "minima": [f"{p.label}, loss {p.loss:.6f}, orbit {p.orbit}" for p in graph.minima],
            "points": f"{len(graph.points)} classes after {graph.completeness.starts} random searches, "
            f"{graph.completeness.once} of them found once",
            "balanced": graph.completeness.balanced,
            "morse": _morse(graph.completeness),
            "unknown": unknown,
            "copies": copies / len(runs),
            "traps": {name: count / len(runs) for name, count in sorted(labels.items())},
            "trapped": sum(run.loss >= 1e-9 for run in within),
        }
    )


def _morse(completeness: Any) -> str:
    """The Morse count in words."""
    if completeness.balanced is None:
        return f"none: {completeness.reason}"
    count = f"{completeness.euler}, {completeness.expected} expected"
    return f"right ({count})" if completeness.balanced else f"wrong ({count}): critical points are missing"


def _end(run: Any) -> str:
    """Where a run ended: copies, a trap by its label, or another point by label and verdict."""
    if run.loss <= 1e-9:
        return "copies"
    kind = run.certificate.kind
    return str(run.structure.label) if kind == "minimum" else f"{run.structure.label} ({kind})"
