"""Claim `overtaking`: the exact ratio n/k at which perturbed copies have a lower loss than copy-average (γ3)."""

from typing import TYPE_CHECKING

import numpy as np

from understudy.papers.check import at_most, close, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.branches import ratio
    from understudy.branches.copy_groups import CopyGroups

    widths = [int(n) for n in settings["students"]]
    ratios = np.array([ratio.overtaking_ratio(n) for n in progress.over(widths, "n =")])
    gaps, norms, sides = [], [], []
    for n in settings["whole"]:  # at the whole k on both sides, with the loss of the whole network
        where = ratio.overtaking_ratio(int(n)) * n
        for k in (int(np.floor(where)), int(np.ceil(where))):
            task = CopyGroups([int(n)], [k - n])
            point = ratio.perturbed_copies(int(n), k / n)
            whole = us.Population(us.Teacher.orthonormal(k), int(n))
            network = task.network(point)
            norms.append(float(np.linalg.norm(whole.gradient(network))))
            average = us.theory.one_neuron("erf", k - n + 1).loss
            gaps.append(abs(float(whole.loss(network)) - float(task.loss(point))))
            sides.append((float(whole.loss(network)) < average) == (k < where))
    limit = 1 / ratio.OVERTAKING_LIMIT
    # The ratio is limit + first/n + second/n² + …; the two largest widths determine the limit but for second/(n₁n₂).
    (n1, n2), (r1, r2) = widths[-2:], ratios[-2:]
    extrapolated = float((n2 * r2 - n1 * r1) / (n2 - n1))
    gammas = 1 / ratios
    checks = [
        at_most("gradient of the whole network at the perturbed copies", norms, bound=1e-11),
        at_most("loss by counts minus loss of the whole network", gaps, bound=1e-12),
        holds("at the whole k on both sides the lower loss is on the predicted side", all(sides), sides),
        close("n/k extrapolated to n → ∞ against (2√3 - 3)/(2√3 + π - 6)", limit, 1 / extrapolated, 1e-7),
        holds("least γ3 is between n = 16 and n = 32", 16 < widths[int(np.argmin(gammas))] < 32, _rows(widths, gammas)),
    ]
    measured = {"γ3": _rows(widths, gammas), "γ3, n → ∞": limit, "least γ3": float(gammas.min())}
    return Measurement(
        checks, measured, data={"students": np.array(widths), "gamma3": gammas, "limit": np.array(limit)}
    )


def _rows(widths: list[int], values: np.ndarray) -> dict[str, float]:
    return {f"n = {n}": round(float(value), 9) for n, value in zip(widths, values, strict=True)}


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    ax = figure.subplots()
    ax.semilogx(data["students"], data["gamma3"], "o-", label="perturbed copies and copy-average have the same loss")
    ax.axhline(float(data["limit"]), color="grey", ls="--", label="n → ∞: (2√3 - 3)/(2√3 + π - 6)")
    ax.axhline(0.75, color="black", ls=":", label="the paper's γ3")
    ax.set(xlabel="students n", ylabel="n/k")
    ax.legend(fontsize=8)


WIDTHS = [3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 48, 64, 128, 256, 1024, 10_000, 100_000]

CLAIM = Claim(
    paper="landscape",
    id="overtaking",
    where="copy-average, Fig. 4: γ3; for every n",
    statement="Perturbed copies have a lower loss than n - 1 copies and one average if n > γ3(n) k.",
    paper_value="γ3 near 0.75, from n = 8, 12, 16",
    measured_by="Both losses as functions of real n and k, from symmetric coordinates; their crossing by root finding.",
    tolerance=1e-7,
    tolerance_reason="The extrapolation from n = 10⁴ and 10⁵ neglects a term of about 50/n², 5e-8.",
    quick={"students": WIDTHS, "whole": [8, 12, 16]},
    full={"students": WIDTHS, "whole": [6, 8, 12, 16, 20, 24]},
    measure=_measure,
    figure=_figure,
)
