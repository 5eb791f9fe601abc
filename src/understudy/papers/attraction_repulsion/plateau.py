"""Claim `plateau`: the least regularised loss against width falls, then is flat."""

import itertools
from typing import TYPE_CHECKING, Any

from understudy.papers.check import Check, at_least, at_most, between
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.05, 0.2)
"""Half and double the rule's share of the level: how much the start depends on it."""


def _teacher_problem(settings: Settings) -> tuple[Any, Any, Any, Any]:
    """Gaussian inputs and the outputs of a random ReLU network of the given widths, to train and to test."""
    import numpy as np

    rng = np.random.default_rng(11)
    widths = settings["teacher"]
    matrices = [rng.normal(size=(o, i)) / np.sqrt(i) for i, o in itertools.pairwise(widths)]

    def outputs(x: Any) -> Any:
        for w in matrices[:-1]:
            x = np.sqrt(2) * np.maximum(x @ w.T, 0)
        return x @ matrices[-1].T

    x, test = (rng.normal(size=(settings["samples"], widths[0])) for _ in range(2))
    return x, outputs(x), test, outputs(test)


def _mnist_problem(samples: int) -> tuple[Any, Any, Any, Any]:
    import numpy as np

    from understudy.data.mnist import mnist

    data = mnist()
    one_hot = np.eye(10)
    train, test = (x[:samples].reshape(samples, -1) / 255.0 for x in (data.x_train, data.x_test))
    return train, one_hot[data.y_train[:samples].astype(int)], test, one_hot[data.y_test[:samples].astype(int)]


def _curve(problem: Any, cost: str, penalty: float, settings: Settings, tell: Any) -> tuple[Any, Any]:
    """Losses (widths × seeds) after training, and the test cost of the best run of each width.

    The widths of one batch are trained together, the narrow ones as the widest with dead neurons (Prop. 6), whose
    gradient is zero.
    λ is lowered to its value along the path of the settings: weights shrink at a speed proportional to λ.
    """
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np

    from understudy.dynamics.descent import descend, quasi_newton
    from understudy.tasks.regularised import Regularised

    x, y, x_test, y_test = problem
    seeds = range(settings["seeds"])
    losses, tests = [], []
    for batch in settings["batches"]:
        tell(batch)
        full = Regularised(x, y, (max(batch), max(batch)), penalty=penalty, cost=cost)
        task, lift = full.reduced()
        starts = []
        for width in batch:
            narrow = task.with_hidden((width, width))
            starts += [narrow.widened(start, task.widths[1:-1])[1] for start in narrow.starts(seeds)]
        path = [eqx.tree_at(lambda t: t.penalty, task, value) for value in (*settings["path"], penalty)]
        points, _ = descend(path[0], jnp.stack(starts), settings["steps"], settings["rate"])
        ended = []
        for point in points:
            for stage in path:
                point, loss, _ = quasi_newton(stage, point, iterations=settings["polish"])
            ended.append((point, loss))
        for i in range(len(batch)):
            runs = ended[i * len(seeds) : (i + 1) * len(seeds)]
            losses.append([loss for _, loss in runs])
            best = full.network(lift(runs[int(np.argmin(losses[-1]))][0]))
            guessed = best(jnp.asarray(x_test), full.activation)
            tests.append(float(jnp.mean(jax.vmap(full.cost)(guessed, jnp.asarray(y_test)))))
    return np.array(losses), np.array(tests)


def _runs(settings: Settings) -> list[tuple[str, Any, str, Settings]]:
    """Name, problem, cost and settings of every curve: the teacher's data, and MNIST at every λ."""
    teacher, mnist = settings["teacher_task"], settings["mnist_task"]
    images = _mnist_problem(mnist["samples"])
    return [
        ("teacher", _teacher_problem(teacher), "squared", teacher),
        *(("MNIST", images, "cross-entropy", mnist | {"penalty": p}) for p in mnist["penalties"]),
    ]


def _checks(label: str, n: int, task: Settings, widths: list[int], best: Any, found: Any, others: Any) -> list[Check]:
    """Where the plateau of one curve starts, by the rule and with other shares of the level, and how flat it is.

    `n`: the number of inputs; `best`: the least loss of each width; `others`: starts by share.
    """
    import numpy as np

    low, high = task["expected"]
    start = np.inf if found.start is None else found.start
    beyond = best[np.array(widths) >= start] if found.start is not None else [np.nan]  # NaN passes no check
    return [
        between(f"{label}: start of the plateau", start, low=low, high=high),
        *(
            between(
                f"{label}: start, within {100 * share:g} % of the level",
                np.inf if other is None else other,
                low=low,
                high=high,
            )
            for share, other in others.items()
        ),
        at_least(f"{label}: N(N + 1) over the start", n * (n + 1) / start, bound=100),
        at_least(f"{label}: loss of the narrowest over the level", best[0] / found.level, bound=1.1),
        at_most(f"{label}: best losses from the start on, over the level", np.divide(beyond, found.level), bound=1.1),
    ]


def _summary(found: Any, others: Any) -> dict[str, Any]:
    """The start of a plateau, its bracket and interval, the level, and the starts with other shares."""
    return {
        "start": found.start,
        "bracket": None if found.bracket is None else list(found.bracket),
        "interval of 90 %": None if found.interval is None else list(found.interval),
        "level": found.level,
        "start within 5 and 20 % of the level": list(others.values()),
    }


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.regularised.plateau import detect_plateau

    runs = _runs(settings)
    total = sum(len(task["batches"]) for *_, task in runs)
    done = itertools.count()
    checks: list[Check] = []
    measured: dict[str, Any] = {}
    data: dict[str, Any] = {}
    for i, (name, problem, cost, task) in enumerate(runs):
        label = f"{name}, λ = {task['penalty']:g}"

        def tell(batch: list[int], label: str = label) -> None:
            progress(next(done) / total, f"{label}, widths {', '.join(map(str, batch))}")

        losses, tests = _curve(problem, cost, task["penalty"], task, tell)
        widths = [width for batch in task["batches"] for width in batch]
        found = detect_plateau(widths, losses)
        others = {share: detect_plateau(widths, losses, share=share, needed=2, resamples=1).start for share in SHARES}
        checks += _checks(label, len(problem[0]), task, widths, losses.min(axis=1), found, others)
        measured[label] = _summary(found, others)
        data |= {
            f"widths{i}": np.array(widths),
            f"losses{i}": losses,
            f"tests{i}": tests,
            f"start{i}": np.array([-1 if found.start is None else found.start, *(found.interval or (-1, -1))]),
        }
    data["labels"] = np.array(list(measured))
    notes = (
        "Rule: the least width from which on the least loss so far is within 10 % of the level, that of the widest, "
        "with at least three widths from there on. The teacher's weights are N(0, 2/fan-in), the last layer's N(0, "
        "1/fan-in); its scale and both λ on MNIST are not in the paper's text. Adam on the whole batch, then L-BFGS "
        "with λ lowered in steps; no run is known to be a global minimum."
    )
    return Measurement(checks, measured, data=data, notes=notes)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    import numpy as np

    data = measurement.data
    labels = [str(x) for x in data["labels"]]
    figure.set_size_inches(10, 4.2)
    panels = dict(zip(("teacher", "MNIST"), figure.subplots(1, 2), strict=True))
    for i, label in enumerate(labels):
        axes = panels[label.split(",")[0]]
        colour = f"C{i}"
        widths, losses = np.asarray(data[f"widths{i}"]), np.asarray(data[f"losses{i}"])
        short = label.split(", ")[1]
        axes.loglog(widths, losses.min(axis=1), "o-", color=colour, ms=4, label=f"training, {short}")
        axes.loglog(np.repeat(widths, losses.shape[1]), losses.ravel(), ".", color=colour, ms=3, alpha=0.5)
        axes.loglog(widths, data[f"tests{i}"], "--", color=colour, lw=1.2, label=f"test, {short}")
        start, low, high = (int(x) for x in data[f"start{i}"])
        if start > 0:
            axes.axvline(start, color=colour, lw=1, ls=":")
            axes.axvspan(low * 0.97, high * 1.03, color=colour, alpha=0.12, lw=0)
    for name, axes in panels.items():
        shown = sorted({int(w) for i, label in enumerate(labels) if label.startswith(name) for w in data[f"widths{i}"]})
        axes.set_xticks(shown, [str(w) for w in shown], minor=False)
        axes.set_xticks([], minor=True)
        axes.set(xlabel="width of both hidden layers", ylabel="loss", title=f"{name} (dotted: start of the plateau)")
        axes.legend(fontsize=8)


CLAIM = Claim(
    paper="attraction-repulsion",
    id="plateau",
    where="Prop. 6, 7, Fig. 2, App. A",
    statement=(
        "The least regularised loss falls with the width and then stays: on MNIST and on a teacher's data the plateau "
        "starts around 10, long before N(N + 1)."
    ),
    paper_value="start around 10 in both settings (N = 1000, L = 3)",
    measured_by=(
        "Best of several runs at each width; the start by a stated rule, with the bracket of widths and an interval "
        "over seeds."
    ),
    tolerance="start between 5 and 20 at the paper's scale",
    tolerance_reason=(
        "'Around 10' is read off a logarithmic axis: half to double. Quick: about half to double the teacher's width, "
        "3, and no more than classes."
    ),
    quick={
        "teacher_task": {
            "teacher": [8, 3, 3, 3],
            "samples": 100,
            "penalty": 1e-3,
            "path": [1e-2],
            "batches": [[1, 2, 3, 5, 8]],
            "seeds": 3,
            "steps": 1000,
            "rate": 2e-2,
            "polish": 150,
            "expected": [2, 6],
        },
        "mnist_task": {
            "samples": 60,
            "penalties": [1e-2, 3e-3],
            "path": [],
            "batches": [[1, 2, 4, 6, 8, 12, 16]],
            "seeds": 1,
            "steps": 600,
            "rate": 1e-2,
            "polish": 100,
            "expected": [2, 10],
        },
    },
    full={
        "teacher_task": {
            "teacher": [50, 10, 10, 10],
            "samples": 1000,
            "penalty": 1e-6,
            "path": [1e-3, 1e-4, 1e-5],
            "batches": [[2, 4, 6], [8, 10, 12], [16, 24, 32], [48, 64], [100]],
            "seeds": 3,
            "steps": 4000,
            "rate": 1e-2,
            "polish": 800,
            "expected": [5, 20],
        },
        "mnist_task": {
            "samples": 1000,
            "penalties": [1e-3, 3e-4],
            "path": [3e-3],
            "batches": [[2, 4, 6], [8, 10, 14], [20, 28], [40, 64], [100]],
            "seeds": 3,
            "steps": 800,
            "rate": 1e-2,
            "polish": 150,
            "expected": [5, 20],
        },
    },
    measure=_measure,
    figure=_figure,
)
