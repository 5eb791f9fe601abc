"""Train deep ReLU students by SGD on a half-active teacher, many seeds at once, and record how they align with it.

These are the experiments of Tian 2020, Section 6. Every seed has its own teacher, data and start. The result has one
row per seed. An interrupted training continues from its last checkpoint.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from understudy.alignment.streaming import Reference, measure, refer
from understudy.clusters import job_count
from understudy.dynamics.descent import quasi_newton
from understudy.dynamics.optimizers import Optimizer, adam, sgd
from understudy.dynamics.sgd import Trainer, Training
from understudy.experiments.aligning.experiment import Experiment, Problem, draw
from understudy.experiments.collecting import seed_groups
from understudy.experiments.description import OutOfTimeError
from understudy.networks import Deep
from understudy.results.rows import SeedRows, join_rows, seeds_in
from understudy.store import Store
from understudy.tasks.empirical import Empirical

_logger = logging.getLogger(__name__)

CHECKPOINT = 5
"""Epochs between checkpoints."""

GROUP = Experiment.most_together
"""Seeds trained together; a finished group is stored."""


class NotStoredError(OSError):
    """The rows were computed but could not be stored. They are in `rows`."""

    def __init__(self, reason: str, rows: xr.Dataset):
        super().__init__(reason)
        self.rows = rows


def squared_error(network: Deep, inputs: Float[Array, "B d"], targets: Float[Array, "B C"]) -> Float[Array, ""]:
    """½ mean ‖f* - f‖² of a ReLU network over a batch (Tian 2020, Eq. 2)."""
    return 0.5 * jnp.mean(jnp.sum((network(inputs, "relu") - targets) ** 2, axis=1))


def run(
    experiment: Experiment,
    seeds: Sequence[int],
    *,
    workers: int | None = None,
    checkpoints: Store | None = None,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Train all seeds and record statistics; returns the rows that `to_rows` describes.

    `checkpoints`: a store for the state, written every `CHECKPOINT` epochs. The same call continues from there.
    `progress` is called with the share that is done.
    """
    e = experiment
    problems = [draw(e, seed) for seed in seeds]
    references = [refer(p.teacher, jnp.asarray(p.evaluation)) for p in problems]
    watched = jax.tree.map(lambda *parts: jnp.concatenate(parts), *references)  # one seed's samples after another's
    begins = jnp.arange(len(problems)) * e.evaluation
    trainer = Trainer(
        squared_error,
        optimizer_of(e),
        np.stack([p.inputs for p in problems]),
        np.stack([p.targets for p in problems]),
        seeds,
        batch=e.batch,
        steps=e.steps,
        own=True,
        workers=job_count() if workers is None else workers,
    )
    training = trainer.begin([p.start for p in problems])
    records: list[dict[str, np.ndarray]] = []
    key = {**e.configuration(), "kind": "align-checkpoint", "seeds": list(seeds)}
    if checkpoints is not None and (kept := checkpoints.load(key)) is not None:
        training, records = _restore(kept, training)
    stops = [round(epoch * e.steps) for epoch in e.record]
    saved = training.step
    while True:
        if training.step == stops[len(records)]:
            found = trainer.share(partial(watch, e.correlations, e.evaluation, watched), training.parameters, begins)
            records.append({name: np.asarray(value) for name, value in found.items()})
            if len(records) == len(stops):
                break
        ahead = (training.step // e.steps + 1) * e.steps
        count = min(ahead, stops[len(records)]) - training.step
        training, _ = trainer.advance(training, count)
        if progress is not None:
            progress(training.step / max(stops[-1], 1))
        if checkpoints is not None and training.step - saved >= CHECKPOINT * e.steps:
            saved = training.step
            try:
                checkpoints.save(key, _checkpoint(training, records))
            except OSError as error:  # on a full disk the training goes on without a checkpoint
                _logger.warning("No checkpoint: %s", error)
    rows = to_rows(e, seeds, training.parameters, records)
    if checkpoints is not None:
        checkpoints.path(key).unlink(missing_ok=True)
    return rows


def collect(
    experiment: Experiment,
    seeds: Sequence[int],
    store: Store | None = None,
    *,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """The rows of these seeds.

    Seeds that `store` holds are read from it. The others are trained in groups, and each group is stored when it is
    done. If that fails, for example on a full disk, `NotStoredError` is raised at the end, with the rows.
    """
    keeper = None if store is None else SeedRows(store, experiment.configuration(), experiment.needed)
    stored = None if keeper is None else keeper.load()
    done = seeds_in(stored)
    waiting = [seed for seed in seeds if seed not in done]
    found = []
    unsaved: OSError | None = None
    for number, group in enumerate(seed_groups(waiting, GROUP)):

        def tell(share: float, done: int = number * GROUP, count: int = len(group)) -> None:
            if progress is not None:
                progress((done + share * count) / len(waiting))

        rows = run(experiment, group, workers=workers, checkpoints=store, progress=tell)
        found.append(rows)
        try:
            if keeper is not None:
                keeper.add(rows)
        except OSError as error:
            unsaved = error
    whole = join_rows([*([] if stored is None else [stored]), *found]).sel(seed=list(seeds))
    if unsaved is not None:
        raise NotStoredError(str(unsaved), whole)
    return whole


def rows_within(experiment: Experiment, seeds: Sequence[int], seconds: float | None) -> xr.Dataset | None:
    """`run` on all threads of the Dask worker, or of this process; None if it takes longer than `seconds`."""
    from distributed import get_worker

    try:
        threads = int(get_worker().state.nthreads)
    except ValueError:  # not on a worker
        threads = job_count()
    begun = time.monotonic()

    def check(_: float) -> None:
        if seconds is not None and time.monotonic() - begun > seconds:
            raise OutOfTimeError

    try:
        return run(experiment, seeds, workers=threads, progress=check)
    except OutOfTimeError:
        return None


def train_on(
    student: Deep, problem: Problem, *, below: float = 1e-8, iterations: int = 2000, rounds: int = 10
) -> tuple[Deep, float]:
    """Train on all samples at once by L-BFGS; returns the student and its loss ½ mean ‖f* - f‖².

    It stops when the loss is less than `below`, or after `rounds` times `iterations`. The learning rate of SGD is
    bounded by the steepest direction, so flat directions take long. L-BFGS estimates the curvature instead.
    """
    x, y = problem.inputs, problem.targets
    template = _template(tuple(w.shape for w in student.weights), len(x))
    task = eqx.tree_at(lambda t: (t.inputs, t.targets), template, (jnp.asarray(x), jnp.asarray(y)))
    vector, loss = task.flatten(student), float("inf")
    for _ in range(rounds):
        vector, twice, _ = quasi_newton(task, vector, iterations=iterations, tolerance=0.0)
        previous, loss = loss, twice / 2  # `Empirical` sums squares without the ½
        if loss < below or loss > 0.999 * previous:
            break
    return task.unflatten(vector), loss


@lru_cache(maxsize=16)
def _template(shapes: tuple[tuple[int, int], ...], samples: int) -> Empirical:
    """The loss of networks of these shapes, without the data: one object, so that its programs are compiled once."""
    network = Deep(tuple(jnp.zeros(s) for s in shapes), tuple(jnp.zeros(s[0]) for s in shapes))
    return Empirical(network, np.zeros((samples, shapes[0][1])), np.zeros((samples, shapes[-1][0])), activation="relu")


def optimizer_of(experiment: Experiment) -> Optimizer:
    """The rule that the experiment names."""
    rule = sgd if experiment.optimizer == "sgd" else adam
    return rule(experiment.rate, weight_decay=experiment.weight_decay)


@eqx.filter_jit
def watch(
    whole: bool, samples: int, references: Reference, parameters: Deep, begins: Int[Array, " seeds"]
) -> dict[str, Array]:
    """The statistics of all seeds, by name (see `to_rows`).

    The evaluation samples of seed i are `samples` rows of `references`, beginning at `begins[i]`.
    """

    def one(pair: tuple[Deep, Array]) -> dict[str, Array]:
        student, begin = pair
        loss, correlations = measure(student, references, begin, samples)
        found = {"loss": loss}
        for l, rho in enumerate(correlations, start=1):
            found[f"best_of_teacher_{l}"] = jnp.max(rho, axis=1)
            found[f"student_of_teacher_{l}"] = jnp.argmax(rho, axis=1)
            found[f"best_of_student_{l}"] = jnp.max(rho, axis=0)
            found[f"fan_out_{l}"] = jnp.sqrt(jnp.sum(student.weights[l] ** 2, axis=0))
        if whole:
            found["correlations"] = correlations[0]
        return found

    return jax.lax.map(one, (parameters, begins))


_AXES = {
    "loss": (),
    "best_of_teacher": ("teacher",),
    "student_of_teacher": ("teacher",),
    "best_of_student": ("student",),
    "fan_out": ("student",),
    "correlations": ("teacher_1", "student_1"),
}


def to_rows(
    experiment: Experiment, seeds: Sequence[int], parameters: Deep, records: Sequence[Mapping[str, np.ndarray]]
) -> xr.Dataset:
    """The statistics as a dataset with one row per seed.

    - `loss` (seed, epoch): on the evaluation samples.
    - For each hidden layer l = 1, 2, …: `best_of_teacher_l` and `student_of_teacher_l` (seed, epoch, teacher_l),
      `best_of_student_l` and `fan_out_l` (seed, epoch, student_l). The fan-out is the norm of a column of the next
      layer's weights.
    - `W1`, `b1`, …: the student at the end.
    """
    data: dict[str, Any] = {}
    for name in records[0]:
        stem, _, layer = name.rpartition("_")
        axes = _AXES[name] if name in _AXES else tuple(f"{axis}_{layer}" for axis in _AXES[stem])
        data[name] = (("seed", "epoch", *axes), np.stack([r[name] for r in records], axis=1))
    for l, (w, b) in enumerate(zip(parameters.weights, parameters.biases, strict=True), start=1):
        after = "output" if l == len(parameters.weights) else f"student_{l}"
        before = "input" if l == 1 else f"student_{l - 1}"
        data[f"W{l}"] = (("seed", after, before), np.asarray(w))
        data[f"b{l}"] = (("seed", after), np.asarray(b))
    return xr.Dataset(data, coords={"seed": list(seeds), "epoch": list(experiment.record)})


def students_of(rows: xr.Dataset) -> list[Deep]:
    """The trained students in these rows, in the order of the seeds."""
    depth = sum(str(name)[:1] == "W" for name in rows.data_vars)
    return [
        Deep(
            tuple(jnp.asarray(rows[f"W{l}"].values[i]) for l in range(1, depth + 1)),
            tuple(jnp.asarray(rows[f"b{l}"].values[i]) for l in range(1, depth + 1)),
        )
        for i in range(rows.sizes["seed"])
    ]


def _checkpoint(training: Training, records: Sequence[Mapping[str, np.ndarray]]) -> xr.Dataset:
    """The state as a dataset: leaves by number, records by name."""
    arrays = {
        f"leaf_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves((training.parameters, training.state)))
    }
    if records:
        arrays |= {f"record_{name}": np.stack([r[name] for r in records]) for name in records[0]}
    data = {name: (tuple(f"{name}_{axis}" for axis in range(a.ndim)), a) for name, a in arrays.items()}
    return xr.Dataset(data, attrs={"step": training.step, "records": len(records)})


def _restore(kept: xr.Dataset, start: Training) -> tuple[Training, list[dict[str, np.ndarray]]]:
    leaves, tree = jax.tree.flatten((start.parameters, start.state))
    found = [jnp.asarray(kept[f"leaf_{i}"].values) for i in range(len(leaves))]
    parameters, state = jax.tree.unflatten(tree, found)
    names = [str(name).removeprefix("record_") for name in kept.data_vars if str(name).startswith("record_")]
    records = [{name: kept[f"record_{name}"].values[i] for name in names} for i in range(int(kept.attrs["records"]))]
    return Training(parameters, state, int(kept.attrs["step"])), records
