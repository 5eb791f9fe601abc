"""Claim `ca-optimal`: the best copy-average point."""

from typing import TYPE_CHECKING

import numpy as np

from understudy.papers.check import at_least, at_most, close, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory import one_neuron, rank

    wrong, gaps, margins, total = [], [], [], 0
    largest = settings["teachers"]
    for k in progress.over(range(2, largest + 1), "k ="):
        for n in range(1, k):
            ranking = rank("erf", n, k, incomplete=k <= settings["incomplete"])
            total += len(ranking.partitions)
            if ranking.best != (1,) * (n - 1) + (k - n + 1,):
                wrong.append((n, k))
            gaps.append(ranking.losses[0] - one_neuron("erf", k - n + 1).loss)
            if len(ranking.losses) > 1:
                margins.append(ranking.losses[1] - ranking.losses[0])
    losses = np.array([0.0] + [one_neuron("erf", size).loss for size in range(1, 10 * largest)])
    second = losses[3:] - 2 * losses[2:-1] + losses[1:-2]
    square = 1 / 3
    growth = np.array([losses[a] + b * square - losses[a + b] for a in range(1, largest) for b in range(1, largest)])
    checks = [
        holds(
            "(1, …, 1, k-n+1) is best for every n < k",
            not wrong,
            f"{total} partitions, k ≤ {largest}; exceptions: {wrong}",
        ),
        close("its loss is L*(k-n+1) (Eq. 20)", 0.0, np.array(gaps), 1e-13),
        at_least("margin to the second best", margins, bound=1e-6),
        at_most("second differences of L* (Lemma E.2)", second, bound=0.0),
        at_least("L*(ℓ1) + L*(0, ℓ0) - L*(ℓ1 + ℓ0) (Eq. 18)", growth, bound=1e-3),
    ]
    measured = {"partitions": total, "exceptions": len(wrong), "least margin": float(min(margins))}
    return Measurement(checks, measured, data={"loss": losses[1 : largest + 1], "gain": np.diff(losses[: largest + 1])})


def _figure(measurement: Measurement, figure: "Figure") -> None:
    left, right = figure.subplots(1, 2)
    loss = measurement.data["loss"]
    left.plot(np.arange(1, len(loss) + 1), loss, "o-", ms=3)
    left.set(xlabel="group size ℓ", ylabel="L*(ℓ)", title="Loss of one averaging neuron")
    gain = measurement.data["gain"]
    right.plot(np.arange(1, len(gain)), gain[1:], "o-", ms=3, color="C1")
    right.set(xlabel="group size ℓ", ylabel="L*(ℓ+1) - L*(ℓ)", title="Cost of one more teacher")


CLAIM = Claim(
    paper="copy-average",
    id="ca-optimal",
    where="Lemma E.2, Thm 5.5/E.3, Eq. 17-20, 57-66",
    statement=(
        "Among all copy-average points with erf the least loss is that of n-1 copies and one average of the other "
        "k-n+1 teachers."
    ),
    paper_value="best partition (1, …, 1, k-n+1), loss L*(k-n+1)",
    measured_by="Brute force over all partitions of k into n parts, for small k over incomplete ones too.",
    tolerance=1e-13,
    tolerance_reason="Sums of at most 30 closed-form numbers.",
    quick={"teachers": 20, "incomplete": 10},
    full={"teachers": 30, "incomplete": 18},
    measure=_measure,
    figure=_figure,
)
