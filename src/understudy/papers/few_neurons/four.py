"""The paper's small example: four softplus teachers in the plane, four students, and the minima they find."""

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

ANGLES = (0.0, 0.25, 0.75, 1.5)
"""Of the teachers, in units of π (App. A.1)."""

SPACING = 0.75
"""Of the lattice for many seeds; points are polished and certified on a finer one."""

TOLERANCE = 1e-4
LONGEST = 1e12
"""How long runs are followed: those that converge take 1e8 at most, and a flight to infinity shows by then."""

HOW = {"kind": "four-minima", "spacing": SPACING, "tolerance": TOLERANCE, "longest": LONGEST}
"""How seeds are followed: all of a cell but its seeds."""

CLASSES = ("global", "local-I", "local-II", "symmetry-induced")


def teacher() -> Any:
    """Unit vectors at 0, π/4, 3π/4, 3π/2, outgoing weights 1, softplus."""
    import understudy as us

    return us.Teacher.angular(np.pi * np.array(ANGLES), "softplus")


def seeds_cell(cell: Mapping[str, Any]) -> xr.Dataset:
    """Fit a range of Glorot seeds on the rough lattice; polish and certify each end on the finer one."""
    import understudy as us
    from understudy.dynamics import FlowOptions, starts
    from understudy.points.plateaus import nearest_critical
    from understudy.tasks import on_grid

    begun = time.process_time()
    seeds = list(range(*cell["seeds"]))
    rough, fine = on_grid(teacher(), 4, spacing=cell["spacing"]), on_grid(teacher(), 4)
    options = FlowOptions(rtol=cell["tolerance"], atol=cell["tolerance"], max_time=cell["longest"])
    begin = starts.glorot(us.Population(teacher(), 4), seeds)
    runs = us.fit(rough, seeds, init=begin, options=options, jobs=1)
    escapes = [run.certificate.evidence[0] if run.certificate.kind == "diverging" else "" for run in runs]
    ends = [np.asarray(fine.flatten(run.parameters)) for run in runs]
    # From a point on the rough lattice to the critical point of the finer one, a few thousandths away at most.
    polished = [v if e else nearest_critical(fine, v, steps=12)[0] for v, e in zip(ends, escapes, strict=True)]
    certificates = [us.certify(fine, v, diverging=e or None) for v, e in zip(polished, escapes, strict=True)]
    networks = [fine.unflatten(fine.flatten(v)) for v in polished]
    return xr.Dataset(
        {
            "loss": ("seed", [c.loss for c in certificates]),
            "kind": ("seed", [c.kind for c in certificates]),
            "escape": ("seed", escapes),
            "gradient_norm": ("seed", [c.gradient_norm for c in certificates]),
            "flow_time": ("seed", [run.flow_time for run in runs]),
            "moved": ("seed", [float(np.linalg.norm(v - w)) for v, w in zip(polished, ends, strict=True)]),
            "eigenvalues": (("seed", "mode"), np.stack([c.eigenvalues for c in certificates])),
            "incoming": (("seed", "student", "dim"), np.stack([np.asarray(n.incoming) for n in networks])),
            "outgoing": (("seed", "student"), np.stack([np.asarray(n.outgoing) for n in networks])),
        },
        coords={"seed": seeds},
        attrs={"processor_seconds": time.process_time() - begun},
    )


def classify(rows: xr.Dataset) -> np.ndarray:
    """The class of each seed, "infinity: …" with how it leaves, or "other: …" with what was found instead.

    Global: zero loss. Symmetry-induced: two students with one incoming vector. Of the other minima the paper names the
    one of higher loss I and the one of lower loss II (Table 1).
    """
    loss, w = rows["loss"].values, rows["incoming"].values
    gaps = np.linalg.norm(w[:, :, None] - w[:, None], axis=-1) + 10 * np.eye(w.shape[1])
    names = np.full(len(loss), "", dtype=object)
    minimum = rows["kind"].values == "minimum"
    names[minimum & (loss < 1e-18)] = "global"
    induced = minimum & (names == "") & (gaps.min(axis=(1, 2)) < 1e-4)
    names[induced] = "symmetry-induced"
    rest = np.flatnonzero(minimum & (names == ""))
    levels: list[float] = []
    for i in rest:
        if not any(abs(loss[i] / level - 1) < 1e-5 for level in levels):
            levels.append(float(loss[i]))
    levels.sort()
    known = dict(zip(levels[:2][::-1] if len(levels) > 1 else levels, ("local-I", "local-II"), strict=False))
    for i in rest:
        own = [name for level, name in known.items() if abs(loss[i] / level - 1) < 1e-5]
        names[i] = own[0] if own else f"other: minimum of loss {loss[i]:.6g}"
    for i in np.flatnonzero(~minimum):
        away = str(rows["escape"].values[i])
        names[i] = f"infinity: {away}" if away else f"other: {rows['kind'].values[i]}, loss {loss[i]:.6g}"
    return names.astype(str)


@lru_cache(maxsize=1)
def minima() -> dict[str, Any]:
    """local-I and local-II as networks, largest outgoing weights first, from the first few seeds that reach both."""
    import understudy as us

    found: dict[str, Any] = {}
    pieces = []
    for low in range(0, 96, 24):
        pieces.append(seeds_cell({**HOW, "seeds": [low, low + 24]}))
        rows = xr.concat(pieces, dim="seed", combine_attrs="drop")
        names = classify(rows)
        if {"local-I", "local-II"} <= set(names):
            for name in ("local-I", "local-II"):
                i = int(np.flatnonzero(names == name)[0])
                order = np.argsort(-rows["outgoing"].values[i])
                found[name] = us.TwoLayer(rows["incoming"].values[i][order], rows["outgoing"].values[i][order])
            return found
    raise RuntimeError(f"96 seeds did not reach both local minima; they reached {sorted(set(names))}")


def split_line(neuron: int, mus: np.ndarray, name: str = "local-I") -> tuple[Any, np.ndarray, np.ndarray]:
    """The five-student task, the split points of one neuron of a minimum as flat vectors, and their Hessians."""
    from understudy.surgery import split
    from understudy.tasks import on_grid

    network = minima()[name]
    task = on_grid(teacher(), network.width + 1)
    vectors = np.stack([np.asarray(task.flatten(split(network, {neuron: [m, 1 - m]}))) for m in np.asarray(mus)])
    return task, vectors, np.asarray(task.hessian(vectors))
