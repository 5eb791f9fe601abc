"""Claim `regimes`: Figure 4, where gradient flow averages and where it copies."""

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from understudy.papers.cells import compute
from understudy.papers.check import Check, at_most, close, equal, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.copy_average.drawing import REGIME_COLOURS, draw_correlations
from understudy.papers.copy_average.fits import fit_cell
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = {"gamma1": 0.46, "gamma2": 0.6, "gamma3": 0.75}


class _Runs(NamedTuple):
    """The runs of one cell: n students, k teachers."""

    cell: Any  # the counts
    label: Any
    averaging: Any  # which runs end in n-1 copies and an average
    copying: Any  # which runs end in perturbed copies
    loss: Any
    correlation: Any
    target: float  # L*(k-n+1)
    gradient_norm: float  # the largest

    def row(self) -> list[Any]:
        """The cell's row of the table."""
        c = self.cell
        counts = [c.averaging, c.copying, c.others]
        return [c.students, c.teachers, *counts, self.loss.mean(), self.loss.std(), self.target, c.excess]


def _runs(n: int, k: int, found: Any) -> _Runs:
    """What the fits of one cell say."""
    from understudy.theory import one_neuron
    from understudy.theory.regimes import Cell

    label, loss = found["label"].values.astype(str), found["loss"].values
    target = one_neuron("erf", k - n + 1).loss
    averaging, copying = label == f"{n - 1}-copy-1-average", label == f"perturbed-{n}-copy"
    excess = float(loss[copying].min() - target) if copying.any() else np.nan
    cell = Cell(n, k, int(averaging.sum()), int(copying.sum()), int((~averaging & ~copying).sum()), excess)
    worst = float(found["gradient_norm"].max())
    return _Runs(cell, label, averaging, copying, loss, found["correlation"].values, target, worst)


def _fits(settings: Settings, progress: Progress) -> list[_Runs]:
    """The runs of all cells."""
    grid = [(int(n), int(k)) for part in ("grid", "beyond") for n, ks in settings[part].items() for k in ks]
    # The largest problems last: the estimate of the time left is then wrong on the safe side only early on.
    configurations = [
        {
            "kind": "regime",
            "activation": "erf",
            "students": n,
            "teachers": k,
            "dim": k + 1,
            "seeds": list(range(settings["seeds"])),
            "init_std": 0.1,
        }
        for n, k in grid
    ]
    results = compute(fit_cell, configurations, progress, keep=settings["keep"])
    return [_runs(n, k, found) for (n, k), found in zip(grid, results, strict=True)]


def _others(runs: list[_Runs]) -> dict[str, int]:
    """How often runs end in something else, by cell and label."""
    return dict(
        Counter(
            f"({part.cell.students}, {part.cell.teachers}) {name}"
            for part in runs
            for name in part.label[~part.averaging & ~part.copying]
        )
    )


def _panels(runs: list[_Runs], of_paper: list[Any]) -> dict[str, Any]:
    """What the figure shows of the example of each regime."""
    data: dict[str, Any] = {}
    for name, (n, k) in _examples(of_paper).items():
        part = next(part for part in runs if (part.cell.students, part.cell.teachers) == (n, k))
        data[f"{name}|nk"] = np.array([n, k])
        data[f"{name}|loss"] = part.loss
        data[f"{name}|averaging"] = part.averaging
        data[f"{name}|target"] = part.target
        for which, chosen in (("average", part.averaging), ("copy", part.copying)):
            if chosen.any():
                data[f"{name}|{which}"] = part.correlation[np.flatnonzero(chosen)[0]]
    return data


def _thresholds(fitted: Any, tolerance: float) -> tuple[list[Check], dict[str, Any], dict[str, Any]]:
    """Each γ against the paper's: checks, what was measured, and values with uncertainties for the figure."""
    checks: list[Check] = []
    measured: dict[str, Any] = {}
    data: dict[str, Any] = {}
    for name, wanted in PAPER.items():
        threshold = getattr(fitted, name)
        if threshold is None:
            checks.append(holds(f"{name} is bracketed by the grid", False, "no width brackets it"))
            continue
        # The paper's γ1 and γ2 hold for all its widths at once: the least and the largest of ours.
        value = {"gamma1": threshold.least, "gamma2": threshold.largest, "gamma3": threshold.value}[name]
        measured[name] = value
        measured[f"{name}, mean over widths"] = f"{threshold.value:.3f} ± {threshold.uncertainty:.3f}"
        data[f"{name}|value"] = np.array([value, threshold.uncertainty])
        checks.append(close(f"{name}", wanted, value, tolerance))
        for n, (value, low, high) in threshold.widths.items():
            measured[f"{name}, n = {n}"] = f"{value:.3f} in [{low:.3f}, {high:.3f}]"
    return checks, measured, data


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory import fit_regimes

    runs = _fits(settings, progress)
    cells = [part.cell for part in runs]
    of_paper = [cell for cell in cells if str(cell.students) in settings["grid"]]
    worst = max(0.0, *(part.gradient_norm for part in runs))
    offsets = [offset for part in runs for offset in np.abs(part.loss[part.averaging] - part.target)]
    checks, measured, data = _thresholds(fit_regimes(of_paper), settings["tolerance"])
    checks += _drift(fit_regimes(cells), measured) if settings["beyond"] else []
    order = [cell.regime for cell in sorted(of_paper, key=lambda c: c.ratio)]
    measured["cells"] = {regime: order.count(regime) for regime in REGIME_COLOURS}
    if others := _others(runs):
        measured["others"] = others
    return Measurement(
        [
            at_most("gradient norms", worst, bound=1e-12),
            at_most("loss of averaging runs minus L*(k-n+1)", offsets, bound=1e-11),
            equal("runs that are neither", 0, sum(cell.others for cell in of_paper)),
            *checks,
        ],
        measured,
        data={"table": np.array([part.row() for part in runs], float), **_panels(runs, of_paper), **data},
        notes=_notes(cells, worst),
    )


def _drift(fitted: Any, measured: dict[str, Any]) -> list[Any]:
    """How γ1 and γ2 change with the width, from the narrowest to the widest: the brackets of both are compared."""
    checks = []
    for name in ("gamma1", "gamma2"):
        widths = getattr(fitted, name).widths
        narrow, wide = min(widths), max(widths)
        measured[f"{name} by width"] = {f"n = {n}": [round(x, 4) for x in found] for n, found in widths.items()}
        checks.append(
            at_most(
                f"{name}: upper end of its bracket at n = {wide} less the lower end at n = {narrow}",
                widths[wide][2] - widths[narrow][1],
                bound=0.0,
            )
        )
    return checks


def _examples(cells: list[Any]) -> dict[str, tuple[int, int]]:
    """One cell for each regime, of the smallest width that has it: panels B1 to B4."""
    chosen: dict[str, tuple[int, int]] = {}
    for regime in REGIME_COLOURS:
        having = [cell for cell in cells if cell.regime == regime]
        if having:
            best = min(having, key=lambda c: (c.students, abs(c.averaging - c.copying), c.teachers))
            chosen[regime] = (best.students, best.teachers)
    return chosen


def _notes(cells: list[Any], worst: float) -> str:
    lines = [f"{c.students}/{c.teachers}: {c.averaging} average, {c.copying} copy, {c.others} other" for c in cells]
    return f"Largest gradient norm {worst:.1e}. Outcomes: " + "; ".join(lines) + "."


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    table = data["table"]
    widths = sorted({int(n) for n in table[:, 0]})
    figure.set_size_inches(max(12.0, 2.6 * len(widths)), 8.5)
    parts: Any = figure.subfigures(2, 1)
    top, bottom = parts
    axes = np.atleast_1d(top.subplots(1, len(widths), sharey=True))
    from understudy.theory.regimes import Cell

    for ax, n in zip(axes, widths, strict=True):
        rows = table[table[:, 0] == n]
        ax.plot(rows[:, 1], rows[:, 7], "k--", lw=1.2, label="theory L*(k-n+1)")
        for regime, colour in REGIME_COLOURS.items():
            chosen = [
                r for r in rows if Cell(int(r[0]), int(r[1]), int(r[2]), int(r[3]), int(r[4]), r[8]).regime == regime
            ]
            if chosen:
                part = np.array(chosen)
                ax.errorbar(part[:, 1], part[:, 5], yerr=part[:, 6], fmt="o", ms=5, color=colour, label=regime)
        for name, style in (("gamma1", ":"), ("gamma2", "-."), ("gamma3", "-")):
            if f"{name}|value" in data:
                ax.axvline(
                    n / data[f"{name}|value"][0],
                    color="black",
                    ls=style,
                    lw=0.9,
                    label=f"γ{name[-1]} = {data[f'{name}|value'][0]:.2f}",
                )
        ax.set(xlabel="teachers k", title=f"A: n = {n} students")
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylabel("loss at convergence")
    axes[0].legend(fontsize=8)
    present = [regime for regime in REGIME_COLOURS if f"{regime}|nk" in data]
    panels = bottom.subplots(
        1, 2 * max(len(present), 1), gridspec_kw={"width_ratios": [1.3, 1.0] * max(len(present), 1)}
    )
    for i, regime in enumerate(present):
        n, k = data[f"{regime}|nk"]
        ax, inset = panels[2 * i], panels[2 * i + 1]
        loss, averaging = data[f"{regime}|loss"], data[f"{regime}|averaging"]
        seeds = np.arange(len(loss))
        for chosen, marker, colour, label in (
            (averaging, "o", "averaging", "average"),
            (~averaging, "s", "copying", "copies"),
        ):
            if chosen.any():
                ax.plot(seeds[chosen], loss[chosen], marker, ms=4, color=REGIME_COLOURS[colour], label=label)
        ax.axhline(float(data[f"{regime}|target"]), color="#D55E00", ls="--", lw=1.2, label="theory")
        spread = max(float(np.ptp(np.append(loss, data[f"{regime}|target"]))), 1e-3)
        middle = float(np.mean(np.append(loss, data[f"{regime}|target"])))
        ax.set(
            xlabel="seed",
            ylabel="loss",
            title=f"B{i + 1}: {regime}\nn = {n}, k = {k}",
            ylim=(middle - 1.2 * spread, middle + 1.2 * spread),
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(fontsize=7)
        which = "copy" if f"{regime}|copy" in data else "average"
        draw_correlations(inset, data[f"{regime}|{which}"], title=f"u, {which}")


QUICK = {"8": [9, 10, 12, 14, 18]}
FULL = {
    "8": [9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 24],
    "12": [13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30],
    "16": [17, 20, 21, 22, 23, 25, 26, 27, 28, 29, 31, 33, 35, 37, 40],
}
BEYOND = {
    "6": [7, 8, 9, 10, 11, 12, 13, 14],
    "10": [15, 16, 17, 18, 19, 20, 21, 22, 23, 24],
    "20": [32, 34, 36, 38, 40, 42, 44, 46, 48, 52],
    "24": [40, 42, 44, 46, 48, 50, 52, 54, 56, 60],
}
"""Widths that the paper does not show: how its γ1 and γ2 go on."""

CLAIM = Claim(
    paper="copy-average",
    id="regimes",
    where="Fig. 4, Sec. 5.2",
    statement=(
        "Gradient flow from small random weights ends in n-1 copies and one average for all seeds if n < γ1 k, in "
        "perturbed "
        "copies for all seeds if n > γ2 k, and these have the lower loss if n > γ3 k; losses lie on L*(k-n+1)."
    ),
    paper_value={"γ1": 0.46, "γ2": 0.6, "γ3": 0.75, "gradient norms": "≤ 5e-8"},
    measured_by="fit with 20 seeds from N(0, 0.1²), d = k + 1; thresholds from the counts, γ3 from the losses.",
    tolerance=0.05,
    tolerance_reason=(
        "The paper gives γ's as 'near' a value from grids of k whose steps in n/k are about 0.05; the quick grid is "
        "coarser still."
    ),
    quick={"grid": QUICK, "beyond": {}, "seeds": 5, "tolerance": 0.1, "keep": False},
    full={"grid": FULL, "beyond": BEYOND, "seeds": 20, "tolerance": 0.05, "keep": True},
    measure=_measure,
    figure=_figure,
)
