"""Claims `recovery` and `loss-curves`: over-parameterised students recover more of their teachers' nodes, and what
the loss shows of it.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from understudy.papers.alignment.students import TWO_LAYER_FULL, TWO_LAYER_QUICK, train_cells
from understudy.papers.check import Check, at_least, at_most, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

EARLY = 5.0
LOWEST = 1e-9
"""Losses below are off the figure, and told in words."""

QUICK = TWO_LAYER_QUICK | {"overs": [1.0, 2.0, 5.0], "polarities": [0.5, 1.5, 2.5]}
FULL = TWO_LAYER_FULL | {"teacher": [20], "overs": [1.0, 2.0, 5.0, 10.0], "polarities": [0.5, 1.0, 1.5, 2.0, 2.5]}


def scale_of(settings: Settings) -> str:
    """The scale of a run in words."""
    s = settings
    return (
        f"{'-'.join(str(m) for m in s['teacher'])} teachers, {s['dim']} inputs, {s['outputs']} outputs, {s['samples']} "
        f"samples, {s['steps']} batches of 16 an epoch, {s['epochs']} epochs, {s['seeds']} seeds"
    )


def _paired_gain(wide: Any, narrow: Any) -> tuple[float, float, float]:
    """Mean over seeds of the difference of two shares (seeds,), and its 95 % bootstrap interval."""
    import numpy as np

    gap = wide - narrow
    chosen = np.random.default_rng(0).integers(0, len(gap), size=(4000, len(gap)))
    low, high = np.quantile(gap[chosen].mean(axis=1), [0.025, 0.975])
    return float(gap.mean()), float(low), float(high)


class _Shares(NamedTuple):
    """Shares of teachers recovered, by polarity and width."""

    final: Any  # with the ends of a 95 % interval
    begun: Any  # after 5 epochs
    untrained: Any
    strong: Any  # of the strongest quarter, at the end
    weak: Any  # of the weakest quarter, at the end


def _shares(flags: Any, early: int, quarter: int, polarities: list[float], overs: list[float]) -> _Shares:
    """The shares of all cells, from flags (seeds, epochs, teachers) of what is recovered."""
    import numpy as np

    from understudy.alignment import recovery_interval

    def mean_of(part: Any) -> Any:
        return np.array([[flags[(p, o)][part].mean() for o in overs] for p in polarities])

    return _Shares(
        np.array([[recovery_interval(flags[(p, o)][:, -1]) for o in overs] for p in polarities]),
        mean_of(np.s_[:, early]),
        mean_of(np.s_[:, 0]),
        mean_of(np.s_[:, -1, :quarter]),
        mean_of(np.s_[:, -1, -quarter:]),
    )


def _two_errors(flags: Any, polarities: list[float], overs: list[float]) -> Any:
    """Twice the standard error of the difference between neighbouring widths, paired by seed."""
    import numpy as np

    rows = []
    for p in polarities:
        shares = [flags[(p, o)][:, -1].mean(axis=1) for o in overs]
        rows.append([2 * np.std(b - a, ddof=1) / np.sqrt(len(a)) for a, b in itertools.pairwise(shares)])
    return np.array(rows)


def _checks_of_gains(flags: Any, polarities: list[float], overs: list[float]) -> list[Check]:
    """What the widest students recover more than the narrowest, paired by seed, also net of untrained students."""
    ends = overs[-1], overs[0]
    gains = [_paired_gain(*(flags[(p, o)][:, -1].mean(axis=1) for o in ends)) for p in polarities]
    net = [
        _paired_gain(*((flags[(p, o)][:, -1] * 1.0 - flags[(p, o)][:, 0]).mean(axis=1) for o in ends))
        for p in polarities
    ]
    return [
        at_least(
            f"{overs[-1]:g}x less 1x at the end, paired by seed: lower end of the 95 % interval, every p",
            [g[1] for g in gains],
            bound=1e-9,
        ),
        at_least(
            f"the same net of untrained students ({overs[-1]:g}x less 1x), lower end, every p",
            [g[1] for g in net],
            bound=1e-9,
        ),
    ]


def _checks_of_shares(shares: _Shares, errors: Any) -> list[Check]:
    """How recovery goes with width, up to these errors, with time, and with the strength of teachers."""
    import numpy as np

    final = shares.final[:, :, 0]
    return [
        at_least(
            "recovery does not fall with width, every p (up to two standard errors)",
            (np.diff(final, axis=1) + errors).min(),
            bound=0.0,
        ),
        at_least("recovery at the end less after 5 epochs", final - shares.begun, bound=0.0),
        at_least(
            "strongest quarter of teachers less weakest quarter, over all cells",
            float((shares.strong - shares.weak).mean()),
            bound=0.0,
        ),
        at_least("recovery at the least polarity less at the largest, every width", final[0] - final[-1], bound=0.0),
        at_most("1x at the end, largest polarity: stuck below", final[-1, 0], bound=0.9),
    ]


def _measure_recovery(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.alignment.correlations import RECOVERED

    overs, polarities = settings["overs"], settings["polarities"]
    cells = train_cells(settings, overs, polarities, progress)
    flags = {key: rows["best_of_teacher_1"].values > RECOVERED for key, rows in cells.items()}
    first = next(iter(cells.values()))
    early = int(np.flatnonzero(first["epoch"].values == EARLY)[0])
    shares = _shares(flags, early, max(settings["teacher"][0] // 4, 1), polarities, overs)
    null = {o: float(cells[(polarities[0], o)]["best_of_teacher_1"].values[:, 0].mean()) for o in overs}
    checks = [
        *_checks_of_gains(flags, polarities, overs),
        *_checks_of_shares(shares, _two_errors(flags, polarities, overs)),
    ]
    begun, final = shares.begun, shares.final
    measured = {
        f"p = {p:g}": ", ".join(
            f"{o:g}x {100 * begun[i, j]:.0f} → {100 * final[i, j, 0]:.1f} [{100 * final[i, j, 1]:.1f}, "
            f"{100 * final[i, j, 2]:.1f}] %"
            for j, o in enumerate(overs)
        )
        for i, p in enumerate(polarities)
    } | {
        "untrained students: largest share recovered": float(shares.untrained.max()),
        "untrained students: mean best correlation by width": {f"{o:g}x": round(v, 4) for o, v in null.items()},
    }
    return Measurement(
        checks,
        measured,
        {
            "final": final,
            "early": begun,
            "overs": np.array(overs),
            "polarities": np.array(polarities),
            "strong": shares.strong,
            "weak": shares.weak,
        },
        notes=(
            f"{scale_of(settings)}. Each entry: share recovered after 5 epochs → at the end, with a 95 % bootstrap "
            f"interval over seeds."
        ),
    )


def _draw_recovery(measurement: Measurement, figure: Any) -> None:
    from understudy.plots.style import COLOURS

    data = measurement.data
    axes = figure.subplots()
    for j, over in enumerate(data["overs"]):
        final = 100 * data["final"][:, j]
        axes.plot(data["polarities"], final[:, 0], "o-", color=COLOURS[j], label=f"{over:g}x", ms=4)
        axes.fill_between(data["polarities"], final[:, 1], final[:, 2], color=COLOURS[j], alpha=0.15, lw=0)
        axes.plot(data["polarities"], 100 * data["early"][:, j], ":", color=COLOURS[j])
    axes.set(
        xlabel="teacher polarity p",
        ylabel="teachers recovered (%)",
        title="Correlation > 0.95: dotted after 5 epochs, solid at the end",
    )
    axes.legend(title="students")


def _measure_losses(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    overs, polarities = settings["overs"], settings["polarities"]
    cells = train_cells(settings, overs, polarities, progress)
    epochs = next(iter(cells.values()))["epoch"].values
    curves = np.array([[np.median(cells[(p, o)]["loss"].values, axis=0) for o in overs] for p in polarities])
    paired = np.array(
        [
            np.median(np.log(cells[(p, overs[0])]["loss"].values[:, -1] / cells[(p, overs[-1])]["loss"].values[:, -1]))
            for p in polarities
        ]
    )
    below = np.array(
        [
            np.mean(cells[(p, overs[-1])]["loss"].values[:, -1] < cells[(p, overs[0])]["loss"].values[:, -1])
            for p in polarities
        ]
    )
    checks = [
        at_least(
            f"ln of the final loss, 1x over {overs[-1]:g}x, median over seeds, p > {polarities[0]:g}",
            paired[1:],
            bound=1e-9,
        ),
        at_least(f"share of seeds in which {overs[-1]:g}x ends lower, p > {polarities[0]:g}", below[1:], bound=0.5),
        at_most("final loss over that at the start, every cell", curves[:, :, -1] / curves[:, :, 0], bound=0.5),
        holds(
            "the gap lies in what 1x leaves: its final loss relative to the start is small",
            bool(np.all(curves[-1, 0, -1] / curves[-1, 0, 0] < 0.05)),
            {"relative loss, 1x, largest p": float(curves[-1, 0, -1] / curves[-1, 0, 0])},
        ),
    ]
    measured = {
        f"p = {p:g}": ", ".join(f"{o:g}x {curves[i, j, -1]:.1e}" for j, o in enumerate(overs))
        for i, p in enumerate(polarities)
    } | {f"share of seeds in which {overs[-1]:g}x ends lower, by p": [float(b) for b in below]}
    return Measurement(
        checks,
        measured,
        {"curves": curves, "epochs": epochs, "overs": np.array(overs), "polarities": np.array(polarities)},
        notes=f"{scale_of(settings)}. Median over seeds of ½ mean ‖f* - f‖² on evaluation samples at the end.",
    )


def _draw_losses(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    from understudy.plots.style import COLOURS

    data = measurement.data
    panels = np.atleast_1d(figure.subplots(1, len(data["polarities"]), sharey=True))
    for i, axes in enumerate(panels):
        for j, over in enumerate(data["overs"]):
            axes.semilogy(data["epochs"], data["curves"][i, j], color=COLOURS[j], label=f"{over:g}x", lw=1.4)
        axes.set(xlabel="epoch", title=f"p = {data['polarities'][i]:g}")
        for j in np.flatnonzero(data["curves"][i, :, -1] < LOWEST).tolist():
            text = f"{data['overs'][j]:g}x ends at {data['curves'][i, j, -1]:.0e}"
            axes.text(0.96, 0.02, text, transform=axes.transAxes, ha="right", fontsize=8, color=COLOURS[j])
    panels[0].set_ylabel("evaluation loss")
    panels[0].set_ylim(bottom=max(LOWEST, 0.3 * float(data["curves"].min())))
    panels[-1].legend(title="students", fontsize=8)


RECOVERY = Claim(
    paper="alignment",
    id="recovery",
    where="Sec. 6.2, Fig. 10",
    statement=(
        "Stronger teacher nodes are more likely matched (correlation > 0.95), weaker ones less when strengths are "
        "polarised; over-parameterised students match more "
        "of them, while 1x, with capacity enough, gets stuck despite long training."
    ),
    paper_value="20 teachers, p = 0.5 … 2.5, 1x/2x/5x/10x, 32 seeds, after 5 and 100 epochs (a figure)",
    measured_by=(
        "Students of all seeds trained in one compiled loop; shares with bootstrap intervals over seeds, gains paired "
        "by seed."
    ),
    tolerance="95 % intervals over seeds; two standard errors between neighbouring widths",
    tolerance_reason="The paper gives a figure without numbers: its order of the curves is what can be compared.",
    quick=QUICK,
    full=FULL,
    measure=_measure_recovery,
    figure=_draw_recovery,
)

LOSS_CURVES = Claim(
    paper="alignment",
    id="loss-curves",
    where="Sec. 6.2, Fig. 11",
    statement=(
        "The evaluation loss of 1x becomes worse than that of over-parameterised students when p is high; the "
        "difference is small in absolute terms, since weak teachers hardly affect the loss."
    ),
    paper_value="loss curves by p and over-parameterisation (a figure)",
    measured_by="Evaluation losses of the cells of the claim recovery, medians over seeds and seed by seed.",
    tolerance="signs of the gaps, seed by seed",
    tolerance_reason="The paper gives a figure without numbers.",
    quick=QUICK,
    full=FULL,
    measure=_measure_losses,
    figure=_draw_losses,
)
