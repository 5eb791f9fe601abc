"""Training of students on half-active teachers beside a plain NumPy loop over one seed, and what statistics add.

Both in one run, in turns, so that other work on the machine falls on both; the least of several rounds counts. Required: 3 times faster a seed at 1x
(aim 6) and 1.2 times at 10x (aim 2.5), with all cores; statistics add at most 20 %, after every epoch
and at the records that `align` keeps of 100 epochs.
"""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from understudy.alignment.streaming import refer
from understudy.dynamics.sgd import Trainer
from understudy.experiments.aligning import Experiment, Problem, draw, schedule
from understudy.experiments.aligning.runs import optimizer_of, squared_error, watch
from understudy.sweeps import core_count

CASES = ((1.0, 3.0, 6.0), (10.0, 1.2, 2.5))
"""Over-parameterisation, the ratio that is required and the ratio aimed at."""

SEEDS, ROUNDS = 32, 3


def plain_epoch(experiment: Experiment, problem: Problem, order: np.ndarray) -> float:
    """Seconds of one epoch of one seed: forward, backward and update written out in NumPy."""
    w, v = (np.array(a) for a in problem.start.weights)
    b, c = (np.array(a) for a in problem.start.biases)
    x, y, rate, size = problem.inputs, problem.targets, experiment.rate, experiment.batch
    clock = time.perf_counter()
    for chosen in order:
        inputs = x[chosen]
        z = inputs @ w.T + b
        h = np.maximum(z, 0.0)
        error = (h @ v.T + c - y[chosen]) / size
        back = (error @ v) * (z > 0)
        v -= rate * (error.T @ h)
        c -= rate * error.sum(axis=0)
        w -= rate * (back.T @ inputs)
        b -= rate * back.sum(axis=0)
    return time.perf_counter() - clock


def seconds(function) -> float:
    clock = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - clock


def compare(over: float) -> tuple[float, float, float]:
    """Seconds an epoch and seed: NumPy, ours, and our statistics."""
    experiment = Experiment(teacher=(20,), over=over, polarity=1.0)
    problems = [draw(experiment, seed) for seed in range(SEEDS)]
    trainer = Trainer(
        squared_error,
        optimizer_of(experiment),
        np.stack([p.inputs for p in problems]),
        np.stack([p.targets for p in problems]),
        range(SEEDS),
        batch=experiment.batch,
        steps=experiment.steps,
        own=True,
        workers=core_count(),
    )
    training = trainer.begin([p.start for p in problems])
    references = [refer(p.teacher, jnp.asarray(p.evaluation)) for p in problems]
    watched = jax.tree.map(lambda *parts: jnp.concatenate(parts), *references)
    begins = jnp.arange(SEEDS) * experiment.evaluation
    look = partial(watch, False, experiment.evaluation, watched)

    def statistics():
        return trainer.share(look, training.parameters, begins)

    training, _ = trainer.advance(training)
    statistics()
    order = trainer._order(0)[0]
    plain, mine, added = [], [], []
    for _ in range(ROUNDS):
        plain += [plain_epoch(experiment, problems[0], order) for _ in range(3)]
        mine.append(seconds(lambda: trainer.advance(training)[0].parameters))
        added.append(seconds(statistics))
    return min(plain), min(mine) / SEEDS, min(added) / SEEDS


def main() -> None:
    console = Console(width=150)
    table = Table(
        title=f"SGD, 20 teachers, 100 inputs, 50 outputs, 1,000 batches of 16, float64, {SEEDS} seeds, {core_count()} workers"
    )
    for column in (
        "students",
        "NumPy, s",
        "ours, s a seed",
        "ratio",
        "required",
        "aim",
        "statistics, s a seed",
        "added, every epoch",
        "added, usual records",
        "required",
    ):
        table.add_column(column, justify="right")
    for over, required, aim in CASES:
        plain, mine, added = compare(over)
        table.add_row(
            f"{over:g}x",
            f"{plain:.4f}",
            f"{mine:.4f}",
            f"{plain / mine:.2f}",
            f"{required:g}",
            f"{aim:g}",
            f"{added:.4f}",
            f"{100 * added / mine:.0f} %",
            f"{100 * added / mine * len(schedule(100)) / 100:.0f} %",
            "20 %",
        )
    console.print(table)
