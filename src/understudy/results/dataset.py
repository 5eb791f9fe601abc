"""Runs as one labelled dataset, and back.

A dataset has one row per seed. It holds everything that tables, figures and later analyses need, so that nothing has to
be computed again, and plain xarray can read it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.dynamics.trajectory import Trajectory
from understudy.extras import need
from understudy.networks import TwoLayer
from understudy.points import Certificate, Structure
from understudy.results.records import from_record, to_record
from understudy.results.runs import Run, Runs
from understudy.store import STAMPS
from understudy.tasks.task import Task

if TYPE_CHECKING:
    import xarray as xr

_JUMP = ("gradient_norm", "decrement", "distance", "ratio")
_APART = ("eigenvalues", "multiplicities", "proof")  # these are variables of their own
_ALONG = ("outgoing", "norm", "student_teacher")
"""Descriptions by the task that are kept along the flow as well, not only at its end."""

_IN_SPAN = (
    "in coordinates of the span of teachers and initial students, which differ for every seed; the teachers' come first"
)

NEEDED = frozenset(
    {"loss", "certificate", "structure", "final", "flow_end", "snapshot", "eigenvalue", "multiplicity", "ending",
     "steps", "rejected_steps", "flow_time", "flow_gradient_norm", "factorisations", "norm_mark"}
)  # fmt: skip
"""Variables that a dataset must have to be read as runs."""


def to_dataset(runs: Sequence[Run], times: np.ndarray | None = None) -> xr.Dataset:
    """Return runs of one task as a dataset with a row per seed.

    **Variables**, with the dimension `seed` first:

    - the end: `loss`, `kind`, `label`, `incoming` and `outgoing` weights in the basis of the input, norms,
      correlations; the certificate's numbers and its `eigenvalue`s; `certificate` and `structure` in full, as JSON
      text. `proof`, if proofs were asked for: the content of a proof's file, or the reason why there is none.
    - the flow: `flow_time`, `steps`, `ending`, `snapshot` (seed, time, parameter), and along it `loss_along`,
      `norm_along`, …. `snapshot`, `flow_end` and `final` are flat vectors of the task that was followed; where the
      input has more than n + k dimensions, those are coordinates in the span of teachers and students (see their
      attributes), and `parameters` are those in the basis of the input.
    - the task: its arrays, such as `teacher_incoming`, and its numbers as attributes.

    Entries that a run did not reach are NaN. `times`: the snapshot times, unless `runs` is a `Runs` that knows them.
    """
    need("store")
    import xarray as xr

    if not isinstance(runs, Runs):
        runs = Runs(list(runs), None, times)
    elif times is not None:
        runs = Runs(list(runs), runs.task, times)
    if not len(runs):
        raise ValueError("A dataset needs at least one run; received none.")
    data = _end_data(runs) | _flow_data(runs)
    if all(run.held_out_loss is not None for run in runs):
        data["held_out_loss"] = ("seed", [run.held_out_loss for run in runs])
    task, flow_task = runs.task, runs[0].flow_task
    if flow_task is not None:
        data |= _described(flow_task, data["final"][1], data["snapshot"][1])
    if task is not None:
        own = np.stack([np.asarray(task.flatten(run.parameters)) for run in runs])
        if own.shape[1] != data["final"][1].shape[1]:
            data["parameters"] = (("seed", "own_parameter"), own)
            data |= {name: (("seed", *axes), x) for name, (axes, x) in task.describe(own).items()}
            for name in ("snapshot", "flow_end", "final"):
                data[name] = (*data[name], {"basis": _IN_SPAN})
        data |= task.givens()
    return xr.Dataset(data, coords={"seed": runs.seeds, "time": runs.times}, attrs=runs.about)


def _end_data(runs: Runs) -> dict[str, Any]:
    certificates = [run.certificate for run in runs]
    proofs = [c.proof for c in certificates]
    stored = ["" if proof is None else json.dumps(proof.document()) for proof in proofs]
    return {
        **({"proof": ("seed", stored)} if any(stored) else {}),
        "loss": ("seed", [run.loss for run in runs]),
        "kind": ("seed", [c.kind for c in certificates]),
        "label": ("seed", [run.structure.label for run in runs]),
        "distance": ("seed", [run.structure.distance for run in runs]),
        "gradient_norm": ("seed", [c.gradient_norm for c in certificates]),
        "newton_decrement": ("seed", [c.newton_decrement for c in certificates]),
        "least_eigenvalue": ("seed", [c.least_eigenvalue for c in certificates]),
        "zero_threshold": ("seed", [c.threshold for c in certificates]),
        "index": ("seed", [c.index for c in certificates]),
        "zeros": ("seed", [c.zeros for c in certificates]),
        "explained_zeros": ("seed", [c.explained for c in certificates]),
        "flat_dimension": ("seed", [c.flat_dimension for c in certificates]),
        "evidence": ("seed", ["; ".join(c.evidence) for c in certificates]),
        "eigenvalue": (("seed", "mode"), _ragged([c.eigenvalues for c in certificates])),
        "multiplicity": (("seed", "mode"), _ragged([c.multiplicities for c in certificates])),
        "certificate": ("seed", [json.dumps(to_record(c, _APART)) for c in certificates]),
        "structure": ("seed", [json.dumps(to_record(run.structure)) for run in runs]),
    }


def _flow_data(runs: Runs) -> dict[str, Any]:
    trajectories = [run.trajectory for run in runs]
    count = len(runs.times)
    units = {}
    if any(t.unit != 1 for t in trajectories):
        units = {
            "flow_speed": ("seed", [t.speed for t in trajectories]),
            "loss_unit": ("seed", [t.unit for t in trajectories]),
        }
    jumps = {f"jump_{name}": ("seed", [(t.jump or {}).get(name, np.nan) for t in trajectories]) for name in _JUMP}
    return {
        "flow_time": ("seed", [t.time for t in trajectories]),
        "steps": ("seed", [t.steps for t in trajectories]),
        "rejected_steps": ("seed", [t.rejected for t in trajectories]),
        "factorisations": ("seed", [t.factorisations for t in trajectories]),
        "flow_gradient_norm": ("seed", [t.gradient_norm for t in trajectories]),
        **units,
        "ending": ("seed", [t.ending for t in trajectories]),
        "flow_end": (("seed", "parameter"), np.stack([t.flow_end for t in trajectories])),
        "final": (("seed", "parameter"), np.stack([t.vector for t in trajectories])),
        "snapshot": (("seed", "time", "parameter"), np.stack([_padded(t.snapshots, count) for t in trajectories])),
        "norm_mark": (("seed", "mark", "time_and_norm"), _padded_all([t.norms for t in trajectories])),
        **jumps,
    }


def _described(task: Task, final: np.ndarray, snapshots: np.ndarray) -> dict[str, Any]:
    """The task's descriptions of the ends and of the points along the flow, and the loss along the flow."""
    seeds, count, size = snapshots.shape
    flat = snapshots.reshape(-1, size)
    reached = np.all(np.isfinite(flat), axis=1)
    filled = jnp.asarray(np.where(reached[:, None], flat, final[0][None]))
    losses = np.where(reached, _losses(task.prepared(filled), filled), np.nan)
    data: dict[str, Any] = {name: (("seed", *axes), x) for name, (axes, x) in task.describe(final).items()}
    for name, (axes, x) in task.describe(flat).items():
        if name in _ALONG:
            data[f"{name}_along"] = (("seed", "time", *axes), x.reshape(seeds, count, *x.shape[1:]))
    return data | {"loss_along": (("seed", "time"), losses.reshape(seeds, count))}


_BLOCK = 256


def _losses(task: Task, vectors: Array) -> np.ndarray:
    """Losses in blocks of one size (the last one is padded), so that one compiled program serves any number of runs."""
    padded = np.concatenate([vectors, np.broadcast_to(vectors[:1], (-len(vectors) % _BLOCK, vectors.shape[1]))])
    blocks = [np.asarray(_block(task, jnp.asarray(block))) for block in padded.reshape(-1, _BLOCK, vectors.shape[1])]
    return np.concatenate(blocks)[: len(vectors)] if blocks else np.zeros(0)


@eqx.filter_jit
def _block(task: Task, vectors: Array) -> Array:
    return jax.lax.map(task.value, vectors, batch_size=32)


def _padded(rows: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([rows, np.full((length - len(rows), *rows.shape[1:]), np.nan)])


def _padded_all(rows: Sequence[np.ndarray]) -> np.ndarray:
    length = max(len(r) for r in rows)
    return np.stack([_padded(np.asarray(r, float), length) for r in rows])


def _ragged(rows: Sequence[np.ndarray]) -> np.ndarray:
    return _padded_all([np.asarray(r, float)[:, None] for r in rows])[..., 0]


def from_dataset(dataset: xr.Dataset, task: Task | None = None) -> Runs:
    """Return the runs in a dataset of `to_dataset`.

    With `task` they have all that the fresh runs had. Without it, runs have no `flow_task`, and `parameters` are a
    `TwoLayer` if the dataset has incoming and outgoing weights, and flat vectors otherwise.
    """
    lacking = sorted(NEEDED - set(map(str, dataset.variables)))
    if lacking:
        raise ValueError(f"This is not a result of `fit`: it has no {', '.join(lacking)}.")
    flow_task = None
    if task is not None:
        name = "parameters" if "parameters" in dataset else "final"
        vectors = jnp.asarray(dataset[name].values)
        parameters = [task.unflatten(vector) for vector in vectors]
        flow_task = task.reduce(vectors).task
    elif {"incoming", "outgoing"} <= set(dataset.variables):
        names = [name for name in ("incoming", "outgoing", "bias", "offset") if name in dataset]
        parts = zip(*(dataset[name].values for name in names), strict=True)
        parameters = [TwoLayer(**dict(zip(names, part, strict=True))) for part in parts]
    else:
        parameters = list(dataset["parameters" if "parameters" in dataset else "final"].values)
    runs = [_run(dataset, i, p, flow_task) for i, p in enumerate(parameters)]
    told = dataset.attrs.get("configuration")
    about = {str(name): value for name, value in dataset.attrs.items() if name not in STAMPS}
    return Runs(runs, task, dataset["time"].values, None if told is None else json.loads(told), about)


def _run(data: xr.Dataset, i: int, parameters: Any, flow_task: Task | None) -> Run:
    row = {str(name): values[i] for name, values in _values(data).items()}
    modes = np.isfinite(row["eigenvalue"])
    certificate = from_record(
        Certificate,
        json.loads(str(row["certificate"])),
        eigenvalues=row["eigenvalue"][modes],
        multiplicities=row["multiplicity"][modes].astype(int),
        proof=_proof(data, i),
    )
    reached = np.all(np.isfinite(row["snapshot"]), axis=1)
    jump = {name: float(row[f"jump_{name}"]) for name in _JUMP}
    marks = row["norm_mark"]
    trajectory = Trajectory(
        vector=row["final"],
        loss=float(row["loss"]),
        gradient_norm=float(row["flow_gradient_norm"]),
        ending=str(row["ending"]),  # type: ignore[arg-type]
        time=float(row["flow_time"]),
        steps=int(row["steps"]),
        rejected=int(row["rejected_steps"]),
        times=data["time"].values[reached],
        snapshots=row["snapshot"][reached],
        flow_end=row["flow_end"],
        jump=None if all(np.isnan(list(jump.values()))) else jump,
        factorisations=int(row["factorisations"]),
        norms=marks[np.all(np.isfinite(marks), axis=1)],
        speed=float(data["flow_speed"].values[i]) if "flow_speed" in data else float("nan"),
        unit=float(data["loss_unit"].values[i]) if "loss_unit" in data else 1.0,
    )
    explained = from_record(Structure, json.loads(str(row["structure"])))
    return Run(
        int(data["seed"].values[i]),
        parameters,
        float(row["loss"]),
        certificate,
        explained,
        trajectory,
        flow_task,
        float(data["held_out_loss"].values[i]) if "held_out_loss" in data else None,
    )


def _proof(data: xr.Dataset, i: int) -> Any:
    text = str(data["proof"].values[i]) if "proof" in data else ""
    if not text or text == "nan":
        return None
    from understudy.proofs import from_document

    return from_document(json.loads(text))


def _values(data: xr.Dataset) -> dict[Any, np.ndarray]:
    """The variables with a row per seed."""
    return {name: data[name].values for name in NEEDED | {f"jump_{name}" for name in _JUMP}}
