"""One case of `sphere-traps` or `sphere-four`: explored and followed from uniform starts, or from starts in cones.

Which cones avoid the traps. Starts with w_i·v_i > 2^(-1/2) are those of Lemma 3.1 of tight-balance, which is about
even ρ: every student is within 45° of its own teacher, closer than to any other. For odd ρ, students with a negative
overlap attract each other, because opposite students cancel, and two students within 45° of orthogonal teachers can be
almost opposite. Take n = k = d = 2 with both students turned outwards by θ, so that they are 90° + 2θ apart. Then

    ∂L/∂θ ∝ cos^(ρ-1)θ sin θ + sin^(ρ-1)θ cos θ - sin^(ρ-1)2θ cos 2θ,

the pull of the own teachers, the push of the others, and the pull of the other student. It is positive (students turn
back) for all θ < 45° at ρ = 5, but negative near 36° from ρ = 7 on. At θ = 30° the first and the last term are equal,
for every ρ, so students turn back. The same holds if only one of them is at 30° and the other is closer to its teacher,
because sin^(ρ-1)x cos x grows up to x = 60° if ρ ≥ 4. So cones of 30° are never left there.
"""

from collections import Counter
from typing import Any

import numpy as np

from understudy.papers.landscape.rows import as_dataset

CONES = {"45°": float(np.sqrt(0.5)), "30°": float(np.sqrt(0.75))}
"""Least cosine between a student and its own teacher at the start, by the half-angle of the cone."""


def case_cell(cell: dict[str, Any]) -> Any:
    """One size and degree: the minima by exploration, and where uniform starts end.

    Explorations grow until the Morse count comes out, or, where there is none, until they have every minimum at which
    runs end; or until all `starts` are used up. They follow as many flows as there are runs, from other seeds. Without
    `starts` there is no exploration, and the minima are those at which runs end.
    """
    import understudy as us
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    k, seeds = cell["k"], cell["seeds"]
    task = us.Sphere(np.eye(k), width=k, activation=f"hermite:{cell['degree']}")
    runs = us.fit(task, seeds=seeds)
    labels = Counter(_end(run) for run in runs)
    minima = {_end(run) for run in runs if run.certificate.kind == "minimum"}
    found = {"minima": sorted(minima), "points": "no exploration", "balanced": None, "morse": "no exploration"}
    unknown = 0
    ended = np.array([run.loss for run in runs if run.certificate.kind == "minimum"])
    for starts in cell["starts"]:
        graph = us.explore(task, starts=starts, symmetric=starts, seed=1, flows=seeds, descents=False)
        known = np.array([p.loss for p in graph.minima])
        unknown = int(np.sum(np.abs(known[:, None] - ended).min(axis=0) > 1e-8))
        found = _found(graph)
        if graph.completeness.balanced or (graph.completeness.balanced is None and not unknown):
            break
    once = sum(labels[name] == 1 for name in minima)
    copies = labels.pop("copies", 0)
    return as_dataset(
        {
            "k": k,
            "degree": cell["degree"],
            **found,
            "unknown": unknown,
            "once": once,
            "copies": copies / len(runs),
            "traps": {name: count / len(runs) for name, count in sorted(labels.items())},
        }
    )


def _found(graph: Any) -> dict[str, Any]:
    """The minima of an exploration, and how complete it is."""
    completeness = graph.completeness
    return {
        "minima": [f"{p.label}, loss {p.loss:.6f}, orbit {p.orbit}" for p in graph.minima],
        "points": f"{len(graph.points)} classes after {completeness.starts} random searches, "
        f"{completeness.once} of them found once",
        "balanced": completeness.balanced,
        "morse": _morse(completeness),
    }


def cone_cell(cell: dict[str, Any]) -> Any:
    """One size, degree and cone: how many starts with every student in the cone of its own teacher miss the copies."""
    import understudy as us
    from understudy.compilation import keep_compiled_programs
    from understudy.papers.tight_balance.cone_starts import uniform_in_cones

    keep_compiled_programs()
    task = us.Sphere(np.eye(cell["k"]), width=cell["k"], activation=f"hermite:{cell['degree']}")
    runs = us.fit(task, seeds=cell["seeds"], init=uniform_in_cones(task, cell["seeds"], CONES[cell["cone"]]))
    return as_dataset({**cell, "trapped": sum(run.loss >= 1e-9 for run in runs)})


def _morse(completeness: Any) -> str:
    """The Morse count in words."""
    if completeness.balanced is None:
        return f"none: {completeness.reason}"
    count = f"{completeness.euler}, {completeness.expected} expected"
    return f"right ({count})" if completeness.balanced else f"wrong ({count}): critical points are missing"


def _end(run: Any) -> str:
    """Where a run ended: copies, a trap by label and loss, or another point by label and verdict."""
    if run.loss <= 1e-9:
        return "copies"
    label, kind = run.structure.label, run.certificate.kind
    return f"{label}, loss {run.loss:.6f}" if kind == "minimum" else f"{label} ({kind})"
