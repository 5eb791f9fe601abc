"""Claim `one-dimensional`: two-layer ReLU networks with scalar input and output need at most 4N neurons for N
inputs.
"""

from __future__ import annotations

from typing import Any

from understudy.papers.check import at_most, close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

PENALTY = 1e-3


def _starts(task: Any, count: int, seed: int) -> Any:
    """Networks with standard normal weights and biases, scaled to outputs of order one; leading axis for the starts."""
    import numpy as np

    width = task.widths[1]
    rng = np.random.default_rng([seed, width])
    outgoing = rng.normal(size=(count, 1, width)) / np.sqrt(width)
    return task.flatten(
        (rng.normal(size=(count, width, 2)), np.concatenate([outgoing, np.zeros((count, 1, 1))], axis=2))
    )


def _data(n: int, seed: int) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng([seed, n])
    return np.sort(rng.uniform(-2, 2, size=n))[:, None], rng.normal(size=(n, 1))


def _train(n: int, width: int, starts: int, seed: int, steps: int) -> tuple[Any, Any, Any]:
    """The problem of one data set, trained networks and their losses."""
    import numpy as np

    from understudy.dynamics.descent import descend_to_least_norm
    from understudy.tasks.regularised import Regularised

    x, y = _data(n, seed)
    task = Regularised(x, y, (width,), penalty=PENALTY, weights=np.ones(n))
    return task, *descend_to_least_norm(task, _starts(task, starts, seed), first_penalty=0.1, steps=steps)


def _reduce(net: Any, x: Any, trained: bool) -> tuple[Any, list[Any]]:
    """The merged network, and its row of the table: N, width, after, largest change over the largest output, norm
    after / before, trained.
    """
    import jax.numpy as jnp
    import numpy as np

    from understudy.surgery import merge_one_dimensional

    found = merge_one_dimensional(net, x)
    r = found.report
    outputs = float(np.max(np.abs(net(jnp.asarray(x), "relu"))))
    change, norm = r.largest_change / max(1.0, outputs), r.norm_after / r.norm_before
    return found.network, [len(x), r.before, r.after, change, norm, trained]


def _random_networks(settings: Settings) -> list[list[Any]]:
    """Rows of random networks on random inputs."""
    import jax.numpy as jnp
    import numpy as np

    from understudy.networks import Deep

    rows = []
    sizes = settings["sizes"]
    for seed in range(settings["random"]):
        rng = np.random.default_rng(seed)
        n = sizes[seed % len(sizes)]
        width = 12 * n
        weights = (jnp.asarray(rng.normal(size=(width, 1))), jnp.asarray(rng.normal(size=(1, width))))
        net = Deep(weights, (jnp.asarray(rng.normal(size=width)), jnp.asarray(rng.normal(size=1))))
        rows.append(_reduce(net, rng.normal(size=(n, 1)), False)[1])
    return rows


def _trained_networks(settings: Settings, progress: Progress) -> tuple[list[list[Any]], dict[str, Any]]:
    """Rows of trained networks, and the outputs of the first one before and after merging."""
    import jax.numpy as jnp
    import numpy as np

    rows: list[list[Any]] = []
    shown: dict[str, Any] = {}
    sets = settings["trained"] // settings["starts"]
    for seed in progress.over(range(sets), "trained networks, data set"):
        x, y = _data(settings["inputs"], seed)
        task, points, _ = _train(settings["inputs"], settings["width"], settings["starts"], seed, settings["steps"])
        for point in points:
            net = task.network(point)
            merged, row = _reduce(net, x, True)
            rows.append(row)
            if not shown:
                grid = np.linspace(x.min() - 0.5, x.max() + 0.5, 400)[:, None]
                shown = {"x": x[:, 0], "y": y[:, 0], "grid": grid[:, 0]}
                shown |= {
                    "before": np.asarray(net(jnp.asarray(grid), "relu"))[:, 0],
                    "after": np.asarray(merged(jnp.asarray(grid), "relu"))[:, 0],
                }
    return rows, shown


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    progress(0.0, "random networks")
    rows = _random_networks(settings)
    trained_rows, shown = _trained_networks(settings, progress)
    progress(0.9, "widths")
    few = settings["few"]
    losses = [float(np.min(_train(few, w, settings["many"], 0, settings["steps"])[2])) for w in (4 * few, 8 * few)]
    table = np.array(rows + trained_rows, float)
    trained = table[:, 5] == 1
    checks = [
        at_most("largest change of an output on the data, over the largest output", table[:, 3], bound=1e-12),
        at_most("norm after over norm before", table[:, 4], bound=1 + 1e-14),
        at_most("neurons after over 4N", table[:, 2] / (4 * table[:, 0]), bound=1.0),
        at_most("neurons after minus (4N - 2)", table[:, 2] - (4 * table[:, 0] - 2), bound=0),
        close("least loss with 8N neurons, against 4N", losses[0], losses[1], 1e-3, relative=True),
    ]
    measured = {
        "networks": {"random": int(np.sum(~trained)), "trained": int(np.sum(trained))},
        "largest change on the data": float(table[:, 3].max()),
        "most neurons after / 4N": float(np.max(table[:, 2] / (4 * table[:, 0]))),
        "trained: neurons before and after, median": [
            float(np.median(table[trained, 1])),
            float(np.median(table[trained, 2])),
        ],
        "least loss with 4N and 8N neurons": losses,
    }
    return Measurement(
        checks,
        measured,
        shown | {"table": table},
        notes="Neurons that are active on all data merge whatever the side of their cusp, so 4N - 2 are enough.",
    )


def _figure(measurement: Measurement, figure: Any) -> None:
    from understudy.plots.style import COLOURS

    data = measurement.data
    left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
    trained = [row for row in data["table"] if row[5] == 1]
    left.plot(data["grid"], data["before"], color=COLOURS[4], lw=3, label=f"trained, {int(trained[0][1])} neurons")
    left.plot(data["grid"], data["after"], color=COLOURS[1], ls="--", label=f"merged, {int(trained[0][2])} neurons")
    left.plot(data["x"], data["y"], "o", color="black", ms=5, label="data")
    left.set(xlabel="input", ylabel="output", title="Equal on the data, free between")
    left.legend(fontsize=9)
    table = data["table"]
    for kind, colour, marker, name in ((0, COLOURS[0], "o", "random"), (1, COLOURS[1], "s", "trained")):
        chosen = table[table[:, 5] == kind]
        right.plot(chosen[:, 0], chosen[:, 2], marker, color=colour, ms=5, alpha=0.6, label=name)
    top = float(table[:, 0].max())
    right.plot([1, top], [4, 4 * top], color="black", label="4N")
    right.set(xlabel="inputs N", ylabel="neurons after merging", title="At most 4N are left")
    right.legend(fontsize=9)


CLAIM = Claim(
    paper="attraction-repulsion",
    id="one-dimensional",
    where="Prop. 15, App. D.2",
    statement=(
        "Merging neurons whose cusps lie between the same inputs, with equal signs, keeps the outputs on the data and "
        "never raises the norm; at most 4N neurons are left, so from 4N on the least loss does not depend on the width."
    ),
    paper_value="same outputs, norm not larger, at most 4N neurons",
    measured_by=(
        "The algorithm on random and on trained networks; the best of many trained networks of widths 4N and 8N."
    ),
    tolerance="1e-12 on outputs; counts and norms exact; 1e-3 on least losses",
    tolerance_reason=(
        "Sums of a hundred products in rounded arithmetic; training from random starts comes this near its minimum."
    ),
    quick={
        "random": 100, "sizes": [1, 2, 4, 8], "trained": 20, "starts": 10, "inputs": 6, "width": 60, "steps": 4000,
        "few": 3, "many": 48,
    },
    full={
        "random": 500, "sizes": [1, 2, 3, 4, 6, 8, 12, 16], "trained": 60, "starts": 20, "inputs": 10, "width": 100,
        "steps": 10000,
        "few": 4, "many": 128,
    },
    measure=_measure,
    figure=_figure,
)  # fmt: skip
