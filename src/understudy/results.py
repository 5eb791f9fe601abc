"""Results of `fit` as one labelled dataset, and the file that keeps them.

A dataset holds everything that tables, figures and later analyses need, so that nothing of them has to be computed
again: one row a seed, readable with plain xarray. A file belongs to a configuration (task, start, tolerances); running
more seeds of it adds rows.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from understudy.fitting import Run
from understudy.store import Store
from understudy.tasks.task import Task

_JUMP = ("gradient_norm", "decrement", "distance", "ratio")


def to_dataset(runs: Sequence[Run], times: np.ndarray) -> xr.Dataset:
    """Runs of one configuration as a dataset; `times` are the snapshot times of its flow.

    Weights are in the coordinates the flow was followed in: the first ones are the teacher's span, and beyond n + k
    dimensions there is nothing to keep. Entries a run did not reach are NaN.
    """
    certificates = [run.certificate for run in runs]
    trajectories = [run.trajectory for run in runs]
    data: dict[str, Any] = {
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
        "flow_time": ("seed", [t.time for t in trajectories]),
        "steps": ("seed", [t.steps for t in trajectories]),
        "rejected_steps": ("seed", [t.rejected for t in trajectories]),
        "ending": ("seed", [t.ending for t in trajectories]),
        "flow_end": (("seed", "parameter"), np.stack([t.flow_end for t in trajectories])),
        "final": (("seed", "parameter"), np.stack([t.vector for t in trajectories])),
        "snapshot": (("seed", "time", "parameter"), np.stack([_padded(t.snapshots, len(times)) for t in trajectories])),
        "eigenvalue": (("seed", "mode"), _ragged([c.eigenvalues for c in certificates])),
        "multiplicity": (("seed", "mode"), _ragged([c.multiplicities for c in certificates])),
    }
    for name in _JUMP:
        data[f"jump_{name}"] = ("seed", [(t.jump or {}).get(name, np.nan) for t in trajectories])
    data |= _described(runs[0].flow_task, data["final"][1], data["snapshot"][1])
    return xr.Dataset(data, coords={"seed": [run.seed for run in runs], "time": times})


_ALONG = ("outgoing", "norm", "student_teacher")
"""What is kept along the way besides at the end."""


def _described(task: Task, final: np.ndarray, snapshots: np.ndarray) -> dict[str, Any]:
    """What the task says of the ends and of the points along the way, and the loss along the way."""
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
    """Losses in blocks of one size, the last one filled up, so that one program serves any number of runs."""
    padded = np.concatenate([vectors, np.broadcast_to(vectors[:1], (-len(vectors) % _BLOCK, vectors.shape[1]))])
    blocks = [np.asarray(_block(task, jnp.asarray(block))) for block in padded.reshape(-1, _BLOCK, vectors.shape[1])]
    return np.concatenate(blocks)[: len(vectors)] if blocks else np.zeros(0)


@eqx.filter_jit
def _block(task: Task, vectors: Array) -> Array:
    return jax.lax.map(task.value, vectors, batch_size=32)


def _padded(rows: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([rows, np.full((length - len(rows), rows.shape[1]), np.nan)])


def _ragged(rows: Sequence[np.ndarray]) -> np.ndarray:
    width = max(len(r) for r in rows)
    return np.stack([np.concatenate([np.asarray(r, float), np.full(width - len(r), np.nan)]) for r in rows])


class SeedRows:
    """Rows of the seeds of one configuration that are done, kept in one file of a store; several processes may add to it."""

    def __init__(self, store: Store, configuration: Mapping[str, Any]):
        self.store, self.configuration = store, dict(configuration)

    def load(self) -> xr.Dataset | None:
        """What is stored so far; a damaged file counts as nothing."""
        return self.store.load(self.configuration)

    def missing(self, seeds: Sequence[int]) -> list[int]:
        """Which of these seeds are not stored yet."""
        stored = self.load()
        done = set() if stored is None else {int(s) for s in stored["seed"].values}
        return [s for s in seeds if s not in done]

    def add(self, rows: xr.Dataset) -> None:
        """Add rows to the file; what another process has stored meanwhile is kept."""
        with self._locked():
            stored = self.load()
            if stored is not None:
                new = [s for s in rows["seed"].values if s not in set(stored["seed"].values)]
                rows = xr.concat([stored, rows.sel(seed=new)], dim="seed", join="outer") if new else stored
                rows.attrs = {}
            self.store.save(self.configuration, rows.sortby("seed"))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        path = self.store.path(self.configuration).with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
