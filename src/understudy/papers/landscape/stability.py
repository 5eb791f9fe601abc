"""Claim `stability`: the exact ratios at which perturbed copies and copy-average gain and lose stability."""

import math
from typing import TYPE_CHECKING

import numpy as np

from understudy.papers.check import close, equal, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.branches import ratio
    from understudy.theory.symmetric_hessian import symmetric_spectrum

    widths = [int(n) for n in settings["students"]]
    copies, averages = [], []
    for n in progress.over(widths, "n ="):
        copies.append(ratio.copies_lose_stability(n))
        averages.append(ratio.average_gains_stability(n))
    seen, wanted, blocks = [], [], []
    for n in settings["whole"]:
        lost, gained = ratio.copies_lose_stability(n) * n, ratio.average_gains_stability(n) * n
        seen += [_kind_of_copies(n, math.floor(lost)), _kind_of_copies(n, math.ceil(lost))]
        wanted += ["minimum", "strict saddle"]
        below, above = math.floor(gained), math.ceil(gained)
        blocks.append(symmetric_spectrum("erf", n, below).least < 0 < symmetric_spectrum("erf", n, above).least)
    largest = [averages[widths.index(n)] for n in widths if n >= 64]
    excess = [(value - 1) * math.sqrt(n) for n, value in zip([n for n in widths if n >= 64], largest, strict=True)]
    limits = [0.0 if math.isinf(value) else 1 / value for value in copies]
    checks = [
        equal("certificates of perturbed copies at the whole k below and above their limit", wanted, seen),
        holds("copy-average: least eigenvalue by Schur blocks at the whole k on both sides", all(blocks), blocks),
        close("n/k below which perturbed copies are saddles, n = 12 and 16", [0.439435474805, 0.430315043873], [
            limits[widths.index(n)] for n in (12, 16)], 1e-9),
        holds("that n/k falls with n", bool(np.all(np.diff(limits) <= 0)), limits),
        holds("n/k above which copy-average is a saddle rises from n = 6 on", bool(
            np.all(np.diff([a for n, a in zip(widths, averages, strict=True) if n >= 6]) < 0)), averages),
    ]  # fmt: skip
    measured = {
        "perturbed copies are minima for n/k above": {
            f"n = {n}": round(v, 9) for n, v in zip(widths, limits, strict=True)
        },
        "copy-average is a minimum for n/k below": {
            f"n = {n}": round(1 / v, 9) for n, v in zip(widths, averages, strict=True)
        },
        "(k/n - 1) √n of copy-average, n ≥ 64": excess,
    }
    data = {"students": np.array(widths), "copies": np.array(limits), "average": 1 / np.array(averages)}
    return Measurement(checks, measured, data=data)


def _kind_of_copies(n: int, k: int) -> str:
    import understudy as us
    from understudy.branches import ratio
    from understudy.branches.copy_groups import CopyGroups

    network = CopyGroups([n], [k - n]).network(ratio.perturbed_copies(n, k / n))
    return us.certify(us.Population(us.Teacher.orthonormal(k), n), network).kind


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    ax = figure.subplots()
    ax.semilogx(data["students"], data["copies"], "o-", label="perturbed copies are minima above")
    ax.semilogx(data["students"], data["average"], "s-", label="copy-average is a minimum below")
    for value, name in ((0.46, "γ1"), (0.6, "γ2")):
        ax.axhline(value, color="grey", ls=":", lw=1)
        ax.text(data["students"][0], value + 0.01, f"{name} of the paper", fontsize=8)
    ax.set(xlabel="students n", ylabel="n/k", ylim=(0, 1))
    ax.legend(fontsize=8)


CLAIM = Claim(
    paper="landscape",
    id="stability",
    where="copy-average, Fig. 4: γ1 and γ2 compared with stability",
    statement="Perturbed copies and copy-average are minima on overlapping ranges of n/k, whose ends move with n.",
    paper_value="γ1 near 0.46, γ2 near 0.6 for all n",
    measured_by="All eigenvalues of the whole network as functions of real n and k, by symmetry; "
    "roots of the least one.",
    tolerance="signs of certified eigenvalues",
    tolerance_reason="Eigenvalues are exact to rounding; certificates at the neighbouring whole k must agree "
    "with the root.",
    quick={"students": [5, 6, 8, 12, 16, 24, 64, 128, 256], "whole": [8, 12]},
    full={"students": [5, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 256], "whole": [6, 8, 12, 16]},
    measure=_measure,
    figure=_figure,
)
