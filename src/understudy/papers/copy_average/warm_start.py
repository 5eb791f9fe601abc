"""Claim `warm-start`: the recipe of Section 6, and whether it carries over."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from understudy.papers.cells import compute
from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.copy_average.fits import describe
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FEWEST = 20
"""Draws of teachers, over all sizes, below which counts of cases decide nothing."""


def _task(kind: str, n: int, k: int, draw: int) -> Any:
    import understudy as us

    rng = np.random.default_rng(7 + draw)
    if kind == "unit-orthonormal":
        return us.Population(us.Teacher.orthonormal(k, dim=k + 1), width=n)
    if kind == "non-orthogonal":
        return us.Population(us.Teacher.random(k, 2 * k, "erf", seed=7 + draw), width=n)
    if kind == "unequal outgoing":
        return us.Population(us.Teacher.orthonormal(k, dim=k + 1, outgoing=rng.uniform(0.4, 2.0, k)), width=n)
    if kind == "non-isotropic":
        return us.Population(
            us.Teacher.orthonormal(k, dim=k + 1), width=n, covariance=np.diag(rng.uniform(0.3, 2.0, k + 1))
        )
    raise ValueError(f"unknown kind of task {kind!r}")


def warm_cell(cell: dict[str, Any]) -> xr.Dataset:
    """Random seeds first, then the two warm starts: copy-average, copy. They are nudged by 1e-3, off exact saddles."""
    import understudy as us
    from understudy.compilation import keep_compiled_programs
    from understudy.dynamics import FlowOptions
    from understudy.dynamics.starts import gaussian, perturbed
    from understudy.surgery import warm_start

    keep_compiled_programs()
    task = _task(cell["task"], cell["students"], cell["teachers"], cell["draw"])
    begin = [np.asarray(task.flatten(gaussian(task, cell["seeds"], 0.1)))]
    for kind in ("copy-average", "copy"):
        begin.append(np.asarray(perturbed(task, task.flatten(warm_start(task, kind)), 1, 1e-3)))
    starts = np.concatenate(begin)
    runs = us.fit(task, seeds=len(starts), init=starts, options=FlowOptions(snapshots=0))
    result = describe(task, runs)[["loss", "label", "gradient_norm", "kind", "flow_time"]]
    return result.assign(start_loss=("seed", [float(task.loss(start)) for start in starts]))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    grid = [
        (task, int(n), int(k), draw)
        for task, sizes in settings["sizes"].items()
        for n, k in sizes
        for draw in range(settings["draws"].get(task, 1))
    ]
    configurations = [
        {"kind": "warm", "task": task, "students": n, "teachers": k, "draw": draw, "seeds": settings["seeds"]}
        for task, n, k, draw in grid
    ]
    found = compute(warm_cell, configurations, progress, keep=settings["keep"])
    checks: list[Any] = []
    measured: dict[str, Any] = {}
    names, rows = [], []
    for (task, n, k, draw), result in zip(grid, found, strict=True):
        loss, time = result["loss"].values, result["flow_time"].values
        random, average, copy = loss[:-2], loss[-2], loss[-1]
        best = float(np.min(random))
        row = [np.mean(random), best, average, copy, np.median(time[:-2]), time[-2], time[-1], np.median(random)]
        rows.append([*row, result["gradient_norm"].values[-2:].max()])
        names.append(f"{task}\nn = {n}, k = {k}")
        if draw == 0:
            measured[f"{task}, n = {n}, k = {k}"] = {
                "random: mean, best loss": [float(np.mean(random)), best],
                "from copy-average, from copies": [float(average), float(copy)],
                "flow time: random median, copy-average, copies": [
                    float(np.median(time[:-2])),
                    float(time[-2]),
                    float(time[-1]),
                ],
                "ends": [str(result["label"].values[-2]), str(result["label"].values[-1])],
            }
    table = np.array(rows)
    checks.append(at_most("gradient norm at the ends of warm starts", table[:, 8], bound=1e-9))
    for (task, n, k, _), row in zip(grid, table, strict=True):
        if task == "unit-orthonormal":
            checks += _recipe(f"{task}, n = {n}, k = {k}", n > 0.75 * k, row)
    for task in settings["sizes"]:
        if task != "unit-orthonormal":
            chosen = [i for i, cell in enumerate(grid) if cell[0] == task]
            checks += _beyond(task, table[chosen], measured)
    first = [i for i, cell in enumerate(grid) if cell[3] == 0]
    return Measurement(
        checks,
        measured,
        data={"names": np.array([names[i] for i in first]), "table": table[first], "all": table},
        notes=(
            "Warm starts are moved by a random vector of length 1e-3, so that an exact saddle is left. Figure and "
            "losses: the first draw of each kind of teacher."
        ),
    )


def _recipe(name: str, little: bool, row: np.ndarray) -> list[Any]:
    """The paper's recipe for orthonormal teachers: copies to compress a little, else copies and an average."""
    _, best, average, copy, median, average_time, copy_time, *_ = row
    advised, passed, other = (copy, copy_time, average) if little else (average, average_time, copy)
    return [
        at_most(f"{name}: the advised start ends no higher than the best random seed", advised - best, bound=1e-9),
        at_most(f"{name}: nor than the other warm start", advised - other, bound=1e-9),
        at_most(f"{name}: in less flow time than the median seed (ratio)", passed / median, bound=1.0),
    ]


def _beyond(task: str, table: np.ndarray, measured: dict[str, Any]) -> list[Any]:
    """Other teachers and inputs: is the better warm start a good random seed, and is it better than twenty of them?

    In half of the cases, a fair coin; 99 % of its counts lie in the interval that decides (before measuring: at least
    its upper end against the median seed, at most its lower end against the best of all).
    """
    from scipy.stats import binom

    total = len(table)
    warm = np.minimum(table[:, 2], table[:, 3]) - 1e-9
    low, high = (float(x) for x in binom.interval(0.99, total, 0.5))
    median, mean, best = (int(np.sum(warm <= table[:, column])) for column in (7, 0, 1))
    measured[f"{task}: cases where the better warm start is no higher than the median, mean, best random seed"] = [
        median, mean, best, total
    ]  # fmt: skip
    if total < FEWEST:
        return []
    return [
        at_least(f"{task}: cases no higher than the median seed, of {total}", median, bound=high),
        at_most(f"{task}: cases no higher than the best seed, of {total}", best, bound=low),
    ]


def _figure(measurement: Measurement, figure: "Figure") -> None:
    table, names = measurement.data["table"], [str(name).replace("\n", ", ") for name in measurement.data["names"]]
    figure.set_size_inches(11.0, 1.2 + 0.27 * len(names))
    left, right = figure.subplots(1, 2)
    y = np.arange(len(names))
    for column, marker, colour, label in (
        (0, "|", "#888888", "random, mean"),
        (1, "o", "#888888", "random, best"),
        (2, "s", "#009E73", "from copy-average"),
        (3, "^", "#0072B2", "from copies"),
    ):
        left.plot(table[:, column], y + 0.12 * (column - 1.5), marker, color=colour, label=label, ms=7)
    left.set(yticks=y, yticklabels=names, xscale="log", xlabel="loss at convergence", title="Where each start ends")
    left.legend(fontsize=7.5, ncols=4, loc="upper center", columnspacing=0.7, handletextpad=0)
    left.set_ylim(-0.7, len(names) + 0.5)
    for column, marker, colour, label in (
        (4, "o", "#888888", "random, median"),
        (5, "s", "#009E73", "from copy-average"),
        (6, "^", "#0072B2", "from copies"),
    ):
        right.plot(np.maximum(table[:, column], 1e-2), y + 0.12 * (column - 5), marker, color=colour, label=label, ms=7)
    right.set(
        yticks=y,
        yticklabels=[],
        xscale="log",
        xlabel="flow time until Newton's method takes over",
        title="How long the flow takes",
    )
    right.legend(fontsize=8, ncols=3, loc="upper center", columnspacing=1, handletextpad=0.2)
    right.set_ylim(-0.7, len(names) + 0.5)


KINDS = ("unit-orthonormal", "non-orthogonal", "unequal outgoing", "non-isotropic")
CLAIM = Claim(
    paper="copy-average",
    id="warm-start",
    where="Sec. 6",
    statement=(
        "To compress little (n > γ3 k) start from copies of n teachers; to compress much start from n-1 copies and one "
        "average. Left open in the paper: other teachers, outgoing weights and inputs."
    ),
    paper_value="recipe; not measured in the paper",
    measured_by="fit from warm starts and from random seeds: final loss and flow time.",
    tolerance="1e-9; counts of cases outside the 99 % interval of a fair coin",
    tolerance_reason="Losses of polished points. Beyond the paper, one draw of teachers decides nothing.",
    quick={
        "sizes": {"unit-orthonormal": [[3, 8], [8, 9]], "non-orthogonal": [[3, 8]]},
        "draws": {"non-orthogonal": 1},
        "seeds": 6,
        "keep": False,
    },
    full={
        "sizes": {kind: [[4, 12], [8, 20], [8, 12], [8, 9], [12, 14]] for kind in KINDS},
        "draws": {"non-orthogonal": 10, "unequal outgoing": 5, "non-isotropic": 5},
        "seeds": 20,
        "keep": True,
    },
    measure=_measure,
    figure=_figure,
)
