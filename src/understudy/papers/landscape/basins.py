"""Claim `basins`: whether γ2, above which every seed copies, depends on the number of students."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def half_point(ratios: np.ndarray, copying: np.ndarray, seeds: int) -> tuple[float, float]:
    """The ratio n/k at which half of the seeds copy, with its standard error.

    The share is fitted by 1/(1 + exp(-s (x - x½))) with maximum likelihood. The error is that of the inverse Fisher
    information; a slope that the data do not bound is held at 1000.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    def cost(p: np.ndarray) -> float:
        share = np.clip(expit(np.exp(p[1]) * (ratios - p[0])), 1e-12, 1 - 1e-12)
        return -float(np.sum(copying * np.log(share) + (seeds - copying) * np.log(1 - share)))

    middle = float(np.interp(0.5 * seeds, np.sort(copying), ratios[np.argsort(copying)]))
    fit = minimize(cost, [middle, np.log(50.0)], bounds=[(ratios.min(), ratios.max()), (0.0, np.log(1000.0))])
    at, slope = float(fit.x[0]), float(np.exp(fit.x[1]))
    share = expit(slope * (ratios - at))
    weight = seeds * share * (1 - share)
    design = np.stack([-slope * np.ones_like(ratios), slope * (ratios - at)])
    information = (design * weight) @ design.T
    # Steps between whole k limit the resolution where the share jumps from 0 to 1 between two of them.
    step = float(np.abs(np.diff(np.sort(ratios))).max())
    return at, float(min(np.sqrt(np.linalg.pinv(information)[0, 0]), step))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.branches import ratio
    from understudy.papers.cells import compute
    from understudy.papers.copy_average.fits import fit_cell

    grid = [(int(n), int(k)) for n, ks in settings["grid"].items() for k in ks]
    seeds = settings["seeds"]
    configurations = [
        {"kind": "regime", "activation": "erf", "students": n, "teachers": k, "dim": k + 1,
         "seeds": list(range(seeds)), "init_std": 0.1}
        for n, k in grid
    ]  # fmt: skip
    results = compute(fit_cell, configurations, progress, keep=settings["keep"])
    copying = {
        cell: int(np.sum(found["label"].values.astype(str) == f"perturbed-{cell[0]}-copy"))
        for cell, found in zip(grid, results, strict=True)
    }
    widths = sorted({n for n, _ in grid})
    halves, errors = {}, {}
    for n in widths:
        ks = np.array(sorted(k for m, k in grid if m == n))
        halves[n], errors[n] = half_point(n / ks, np.array([copying[n, int(k)] for k in ks]), seeds)
    limits = {n: 1 / ratio.copies_lose_stability(n) for n in widths}
    first, last = widths[0], widths[-1]
    drop = (halves[first] - halves[last]) / np.hypot(errors[first], errors[last])
    below = [cell for cell in grid if cell[0] / cell[1] < limits[cell[0]]]
    checks = [
        at_most("half-point of each width minus that of the one before", np.diff([halves[n] for n in widths]), bound=0),
        at_least(f"fall from n = {first} to n = {last} in standard errors", drop, bound=3),
        at_least("half-point minus the ratio at which copies lose stability", [
            halves[n] - limits[n] for n in widths], bound=0),
        equal("seeds that copy where perturbed copies are saddles", 0, sum(copying[cell] for cell in below)),
    ]  # fmt: skip
    measured: dict[str, Any] = {
        "n/k at which half of the seeds copy": {f"n = {n}": f"{halves[n]:.3f} ± {errors[n]:.3f}" for n in widths},
        "copies are minima above": {f"n = {n}": round(limits[n], 4) for n in widths},
        "seeds that copy": {f"{n}/{k}": f"{count} of {seeds}" for (n, k), count in copying.items()},
    }
    data = {
        "students": np.array(widths),
        "half": np.array([halves[n] for n in widths]),
        "error": np.array([errors[n] for n in widths]),
        "limit": np.array([limits[n] for n in widths]),
    }
    return Measurement(checks, measured, data=data)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    ax = figure.subplots()
    ax.errorbar(data["students"], data["half"], data["error"], fmt="o-", label="half of the seeds copy")
    ax.plot(data["students"], data["limit"], "s--", label="perturbed copies lose stability below")
    ax.axhline(0.6, color="grey", ls=":", label="the paper's γ2")
    ax.set(xlabel="students n", ylabel="n/k")
    ax.legend(fontsize=8)


CLAIM = Claim(
    paper="landscape",
    id="basins",
    where="copy-average, Fig. 4: γ2 as n grows",
    statement="The ratio n/k from which seeds copy falls with n: γ2 is not one number.",
    paper_value="γ2 near 0.6 for n = 8, 12, 16",
    measured_by="Seeds from N(0, 0.1²) per n and k; the ratio at which half of them copy, by a logistic fit, against "
    "the exact ratio at which perturbed copies become saddles.",
    tolerance="three standard errors",
    tolerance_reason="Half of the seeds is a sharper statistic than all of 20 seeds, which depends on how many there "
    "are.",
    quick={"grid": {"6": [9, 10, 11, 12], "10": [17, 18, 19, 20, 21]}, "seeds": 8, "keep": False},
    full={
        "grid": {
            "6": [8, 9, 10, 11, 12],
            "8": [12, 13, 14, 15, 16, 17],
            "10": [17, 18, 19, 20, 21],
            "12": [21, 22, 23, 24, 25, 26, 28],
            "16": [31, 33, 34, 35, 37],
        },
        "seeds": 20,
        "keep": True,
    },
    measure=_measure,
    figure=_figure,
    cost=lambda s: float(s["seeds"] * sum(int(n) ** 3 * len(ks) for n, ks in s["grid"].items())),
)
