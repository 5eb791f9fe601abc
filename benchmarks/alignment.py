"""Training of students on half-active teachers beside a NumPy loop over one seed and an Optax loop under `vmap`.

They are timed in turn, so that other work on the machine falls on all of them, and medians count. Asked for: 3 times
faster per seed than NumPy at 1x (aim 6) and 4 times at 10x, with all cores. Statistics may add 20 %, after every epoch
and at the records that `align` keeps of 100 epochs.

Not reached at 10x. One core spends 78 µs on a step that takes NumPy 100 µs (jaxlib 0.10.2, processor time on a shared
core), so two cores give 2.6 at most, and 50 µs would be needed. The five matrix products of a step are 2.24 MFLOP, and
none of them can be left out: data and weights differ between seeds, and masks of ReLU have no structure. The last line
of the output says which ratio is left if every operation runs at the speed of a large product. Tried and lost, all in
one program per seed:

- weights stored as (input, output), forward and backward written by hand: 76 µs;
- products by Eigen instead of XLA's YNNPACK kernels (`xla_cpu_experimental_ynn_fusion_type` empty): 96 µs;
- 512-bit vectors (`xla_cpu_prefer_vector_width`): no change; copy insertion by region: 2 %.

Single precision is not used, because results would change.
"""

import statistics as statistic
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

CASES = ((1.0, 3.0, 6.0), (10.0, 4.0, 6.0))
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


def optax_epoch(experiment: Experiment, problems: list[Problem], orders: np.ndarray):
    """A function that trains all seeds for one epoch with `optax.sgd`, `lax.scan` and `vmap`."""
    import optax

    optimizer = optax.sgd(experiment.rate)
    x, y = (jnp.asarray(np.stack([getattr(p, name) for p in problems])) for name in ("inputs", "targets"))
    networks = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(p.start for p in problems))
    first = jnp.asarray(orders - (np.arange(len(problems)) * experiment.samples)[:, None, None])

    def one(network, inputs, targets, order):
        def advance(carry, chosen):
            network, state = carry
            gradient = jax.grad(squared_error)(network, inputs[chosen], targets[chosen])
            updates, state = optimizer.update(gradient, state)
            return (optax.apply_updates(network, updates), state), None

        return jax.lax.scan(advance, (network, optimizer.init(network)), order)[0][0]

    program = jax.jit(jax.vmap(one))
    return lambda: program(networks, x, y, first)


def operations(experiment: Experiment, problem: Problem) -> float:
    """Floating-point operations of the five matrix products of an epoch of one seed."""
    first, last = (a.size for a in problem.start.weights)
    return 2.0 * experiment.batch * (2 * first + 3 * last) * experiment.steps


def peak() -> float:
    """Operations per second of one core in a large product in double precision, the best of five."""
    a = np.random.default_rng(0).normal(size=(1024, 1024))
    times = []
    for _ in range(5):
        clock = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - clock)
    return 2 * 1024**3 / min(times)


def seconds(function) -> float:
    clock = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - clock


def compare(over: float) -> tuple[float, float, float, float, float]:
    """Seconds per epoch and seed: NumPy, Optax, ours, and our statistics; and the operations of its products."""
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
    peer = optax_epoch(experiment, problems, trainer._order(0))
    jax.block_until_ready(peer())
    plain, optax, mine, added = [], [], [], []
    for _ in range(ROUNDS):
        plain += [plain_epoch(experiment, problems[0], order) for _ in range(3)]
        optax.append(seconds(peer))
        mine.append(seconds(lambda: trainer.advance(training)[0].parameters))
        added.append(seconds(statistics))
    middle = statistic.median
    per_seed = (middle(x) / SEEDS for x in (optax, mine, added))
    return middle(plain), *per_seed, operations(experiment, problems[0])


def main() -> None:
    console = Console(width=150)
    table = Table(
        title=f"SGD, 20 teachers, 100 inputs, 50 outputs, 1,000 batches of 16, float64, {SEEDS} seeds, {core_count()} workers"
    )
    for column in (
        "students",
        "NumPy, s",
        "Optax, s per seed",
        "ours, s per seed",
        "NumPy / ours",
        "Optax / ours",
        "possible",
        "asked",
        "aim",
        "statistics, s per seed",
        "added, every epoch",
        "added, usual records",
        "required",
    ):
        table.add_column(column, justify="right")
    fastest = peak()
    shares = []
    for over, required, aim in CASES:
        plain, optax, mine, added, work = compare(over)
        shares.append(f"{over:g}x NumPy {work / plain / fastest:.0%}, ours {work / mine / fastest / core_count():.0%}")
        table.add_row(
            f"{over:g}x",
            f"{plain:.4f}",
            f"{optax:.4f}",
            f"{mine:.4f}",
            f"{plain / mine:.2f}",
            f"{optax / mine:.2f}",
            f"{plain * fastest * core_count() / work:.1f}",
            f"{required:g}",
            f"{aim:g}",
            f"{added:.4f}",
            f"{100 * added / mine:.0f} %",
            f"{100 * added / mine * len(schedule(100)) / 100:.0f} %",
            "20 %",
        )
    console.print(table)
    console.print(
        f"Large products in float64 reach {fastest / 1e9:.0f} GFLOP/s on one core. Share of this that the products "
        f"of an epoch make use of, per core: {'; '.join(shares)}. 'possible': NumPy / ours at 100 % on {core_count()} "
        "cores, with nothing but these products."
    )
