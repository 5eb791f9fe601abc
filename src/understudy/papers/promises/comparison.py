"""Random critical points of one kind of task: the certificate's verdict and the reference's, point by point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

BATCH = 32
"""Points of one task whose Hessians are computed at once; shorter batches are filled up, so that one program serves
all."""


def comparison_cell(cell: dict[str, Any]) -> xr.Dataset:
    """`points` random critical points of a `task` of that name, the `part`-th lot of this `seed`.

    Rows of `vector` and `sizes` (|eigenvalues| beside the largest) are as long as the longest, filled up with NaN.
    """
    import xarray as xr

    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    rows = compare(cell["task"], cell["points"], [cell["seed"], cell["part"]])
    if not rows:
        raise ValueError(f"No critical point was found of the kind of task {cell['task']!r}.")
    columns = ("source", "verdict", "truth", "inertia", "true_inertia", "unclear_spectrum", "regular", "gradient")
    return xr.Dataset(
        {
            **{name: _column([row[name] for row in rows]) for name in columns},
            "outcome": ("point", [outcome(row) for row in rows]),
            "vector": (("point", "weight"), _filled([row["vector"] for row in rows])),
            "sizes": (("point", "eigenvalue"), _filled([row["sizes"] for row in rows])),
        }
    )


def compare(kind: str, count: int, seed: list[int]) -> list[dict[str, Any]]:
    """`count` random critical points of that kind of task, each with both verdicts; fewer if they are hard to find."""
    import jax.numpy as jnp

    from understudy.papers.promises.instances import points_of
    from understudy.papers.promises.kinds import KINDS, make
    from understudy.papers.promises.reference import derivatives, judge
    from understudy.points import certify

    rng = np.random.default_rng([*seed, list(KINDS).index(kind)])
    rows: list[dict[str, Any]] = []
    for _ in range(3 * count):
        instance = make(kind, rng)
        points = points_of(instance, rng)[: min(BATCH, count - len(rows))]
        if not points:
            continue
        vectors = np.stack([p.vector for p in points])
        filled = np.concatenate([vectors, np.repeat(vectors[:1], BATCH - len(points), axis=0)])
        gradients, hessians = (np.asarray(x)[: len(points)] for x in derivatives(instance.loss, jnp.asarray(filled)))
        for point, gradient, hessian in zip(points, gradients, hessians, strict=True):
            found = certify(instance.task, point.vector)
            truth = judge(
                instance.loss,
                point.vector,
                gradient,
                hessian,
                rng,
                radial=instance.radial,
                analytic=instance.analytic,
            )
            rows.append(
                {
                    "source": point.source,
                    "verdict": found.kind,
                    "inertia": (found.index, found.zeros, found.positives),
                    "truth": truth.kind,
                    "true_inertia": truth.inertia,
                    "unclear_spectrum": truth.unclear_spectrum,
                    "regular": truth.regular,
                    "gradient": float(np.linalg.norm(gradient)),
                    "sizes": np.sort(np.abs(truth.values))[instance.radial :] / np.abs(truth.values).max(),
                    "vector": point.vector,
                }
            )
        if len(rows) >= count:
            break
    return rows


def outcome(row: dict[str, Any]) -> str:
    """`right`, `wrong`, `undecided` (the certificate says so) or `unclear` (the reference cannot tell)."""
    if row["verdict"] in ("undecided", "unconverged"):
        return "undecided"
    if row["truth"] == "unclear":
        return "unclear"
    if row["verdict"] != row["truth"] and not (row["truth"] == "saddle" and row["verdict"].endswith("saddle")):
        return "wrong"
    if row["unclear_spectrum"]:
        return "right"  # the kind can be told; how many eigenvalues are zero cannot
    return "right" if row["inertia"] == row["true_inertia"] else "wrong"


def _column(values: list[Any]) -> tuple[Any, np.ndarray]:
    array = np.array(values)
    return ("point", array) if array.ndim == 1 else (("point", "sign"), array)


def _filled(rows: list[np.ndarray]) -> np.ndarray:
    filled = np.full((len(rows), max(len(row) for row in rows)), np.nan)
    for target, row in zip(filled, rows, strict=True):
        target[: len(row)] = row
    return filled
