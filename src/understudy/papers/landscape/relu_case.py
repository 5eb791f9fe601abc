"""The parts of `relu-splits`: spurious minima and their splits, and how many seeds are stuck with more students."""

from typing import Any

import numpy as np

from understudy.papers.claim import Settings
from understudy.papers.landscape.rows import as_dataset

PUSH = 1e-2
"""How far the two halves are pushed apart, relative to the neuron."""


def minima_cell(cell: dict[str, Any]) -> Any:
    """One k: what becomes of its spurious minima."""
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    rows = [_wider(cell["k"], network, share) for network, share in _spurious(cell["k"], cell)]
    return as_dataset({"k": cell["k"], "minima": rows})


def stuck_cell(cell: dict[str, Any]) -> Any:
    """One k and n: the share of seeds that end at a minimum with a positive loss."""
    import understudy as us
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    task = us.Population(us.Teacher.orthonormal(cell["k"], activation="relu"), cell["n"])
    runs = us.fit(task, seeds=cell["seeds"])
    stuck = sum(run.certificate.kind == "minimum" and run.loss > 1e-9 for run in runs)
    return as_dataset({"k": cell["k"], "n": cell["n"], "stuck": stuck / len(runs)})


def _spurious(k: int, settings: Settings) -> list[tuple[Any, float]]:
    """The spurious minima that seeds find, one network per loss, with the share of seeds at each; most frequent first.

    At most `settings["most"]` of them.
    """
    import understudy as us

    runs = us.fit(us.Population(us.Teacher.orthonormal(k, activation="relu"), k), seeds=settings["seeds"])
    trapped = [run for run in runs if run.certificate.kind == "minimum" and run.loss > 1e-9]
    groups: dict[float, list[Any]] = {}
    for run in trapped:
        groups.setdefault(round(run.loss, 8), []).append(run)
    ordered = sorted(groups.values(), key=len, reverse=True)[: settings["most"]]
    return [(group[0].parameters, len(group) / len(runs)) for group in ordered]


def _wider(k: int, network: Any, share: float) -> dict[str, Any]:
    """Split every neuron of a minimum into halves; certify, and follow the steepest way out of the softest one."""
    import understudy as us
    from understudy.points.splitting import split_matrices
    from understudy.surgery import split

    teacher = us.Teacher.orthonormal(k, activation="relu")
    task, wide = us.Population(teacher, k), us.Population(teacher, k + 1)
    matrices = [split_matrices(task, network, i) for i in range(k)]
    spectra = [np.linalg.eigh(m.curvature) for m in matrices]
    halves = [split(network, {i: [0.5, 0.5]}) for i in range(k)]
    kinds = [us.certify(wide, half).kind for half in halves]
    stay = [i for i, kind in enumerate(kinds) if kind == "minimum"]
    thirds = [us.certify(us.Population(teacher, k + 2), split(network, {i: [1 / 3] * 3})).kind for i in stay]
    falling = [bool(values[0] < -m.threshold) for (values, _), m in zip(spectra, matrices, strict=True)]
    softest = int(np.argmin([values[0] for values, _ in spectra]))
    values, vectors = spectra[softest]
    direction = vectors[:, 0]
    after = _after(wide, halves[softest], softest, direction)
    w = np.asarray(network.incoming)[softest]
    teachers = np.asarray(teacher.incoming)
    own = float(np.abs(teachers @ direction).max())
    loss = float(task.loss(network))
    return {
        "k": k,
        "loss": loss,
        "share of seeds": share,
        "kinds": kinds,
        "contradicted": sum((kind == "strict saddle") != falls for kind, falls in zip(kinds, falling, strict=True)),
        "neurons whose split is a saddle": f"{sum(falling)} of {k}",
        "neurons that stay minima": len(stay),
        "lost": sum(kind != "minimum" for kind in thirds),
        "least curvature Y": round(float(values[0]), 6),
        "direction": f"apart along u of neuron {softest}: |u·w|/‖w‖ = {abs(direction @ w) / np.linalg.norm(w):.2f}, "
        f"largest |u·v_j| = {own:.3f}, correlation of the neuron with its closest teacher "
        f"{float((teachers @ w).max() / np.linalg.norm(w)):.3f}",
        "loss after it": [float(f"{x:.6g}") for x in after],
        "not down": sum(x >= loss for x in after) if any(falling) else 0,
    }


def _after(task: Any, half: Any, neuron: int, direction: np.ndarray) -> list[float]:
    """Losses where the flow ends after the halves are pushed apart by ± the direction.

    `split` puts the parts of a neuron in its place, one after the other.
    """
    import understudy as us

    starts = []
    for sign in (1.0, -1.0):
        w = np.array(half.incoming)
        step = sign * PUSH * np.linalg.norm(w[neuron]) * direction
        w[neuron] += step
        w[neuron + 1] -= step
        starts.append(np.asarray(task.flatten(us.TwoLayer(w, np.asarray(half.outgoing)))))
    return [run.loss for run in us.fit(task, seeds=2, init=np.stack(starts))]
