"""Claim `growth`: how the start of the plateau, a rank of the hidden layers, grows with the number of samples."""

from typing import TYPE_CHECKING, Any

from understudy.papers.attraction_repulsion.plateau import _curve, _mnist_problem
from understudy.papers.check import at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.regularised.plateau import detect_plateau

    widths = [width for batch in settings["batches"] for width in batch]
    starts, told, tables = [], {}, []
    for samples in progress.over(settings["samples"], "N ="):
        problem = _mnist_problem(samples)
        losses, _ = _curve(problem, "cross-entropy", settings["penalty"], settings, lambda _: None)
        found = detect_plateau(widths, losses)
        starts.append(np.inf if found.start is None else float(found.start))
        told[f"N = {samples}"] = {
            "start": found.start,
            "best losses by width": [float(f"{v:.4g}") for v in losses.min(axis=1)],
        }
        tables.append(losses)
    counts = np.array(settings["samples"], float)
    slope = float(np.polyfit(np.log(counts), np.log(starts), 1)[0]) if np.all(np.isfinite(starts)) else np.nan
    return Measurement(
        checks=[
            at_most("start of the plateau, every N", starts, bound=20),
            at_most("exponent of N in the start", slope, bound=0.5),
            at_most("start over N, largest N", starts[-1] / counts[-1], bound=settings["share"]),
            at_most("start over N(N + 1), every N", np.array(starts) / (counts * (counts + 1)), bound=0.05),
        ],
        measured={**told, "exponent": slope},
        data={"samples": counts, "starts": np.array(starts), "widths": np.array(widths), "losses": np.stack(tables)},
        notes=(
            "The first N images of MNIST, two hidden layers of equal width, cross-entropy; the start by the rule of "
            f"the claim plateau. λ = {settings['penalty']:g} is ours. A network as narrow as the start has covariances "
            "of at most that rank (Cor. 9)."
        ),
    )


def _figure(measurement: Measurement, figure: "Figure") -> None:
    import numpy as np

    data: Any = measurement.data
    left, right = figure.subplots(1, 2)
    for n, losses in zip(data["samples"], data["losses"], strict=True):
        left.loglog(data["widths"], np.min(losses, axis=1), "o-", ms=4, label=f"N = {int(n)}")
    left.set(xlabel="width of both hidden layers", ylabel="least regularised loss")
    left.legend(fontsize=8)
    right.loglog(data["samples"], data["starts"], "o-", label="start of the plateau")
    right.loglog(data["samples"], data["samples"], ":", color="black", label="N")
    right.axhline(10, color="grey", ls="--", lw=1, label="number of classes")
    right.set(xlabel="N", ylabel="neurons per layer")
    right.legend(fontsize=8)


CLAIM = Claim(
    paper="attraction-repulsion",
    id="growth",
    where="Sec. 4.1-4.2, Fig. 2",
    statement=(
        "On data such as MNIST the rank of the hidden representations, where the plateau starts, is far below N(N + 1) "
        "and about the number of classes: it is o(N), and less than √N would make the number of parameters o(N)."
    ),
    paper_value="start around 10 at N = 1000; degrees of sparsity o(N) and o(√N)",
    measured_by="The start of the plateau on the first N images of MNIST for several N, and its exponent in N.",
    tolerance="start ≤ 20; exponent ≤ 0.5",
    tolerance_reason="Half to double around 10 as in the claim plateau; ½ is the paper's threshold for deep networks.",
    quick={
        "samples": [20, 60], "penalty": 1e-2, "path": [], "batches": [[2, 4, 6, 8, 12, 16]], "seeds": 1, "steps": 600,
        "rate": 1e-2, "polish": 100, "share": 0.3,
    },
    full={
        "samples": [25, 50, 100], "penalty": 1e-3, "path": [3e-3],
        "batches": [[2, 4, 6, 8], [10, 14, 20, 28]], "seeds": 2, "steps": 600, "rate": 1e-2,
        "polish": 100, "share": 0.2,
    },
    measure=_measure,
    figure=_figure,
)  # fmt: skip
