"""Claim `relu-structure`: what ReLU students find, Figures 1 (bottom) and 9."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from understudy.papers.cells import compute
from understudy.papers.check import Check, at_least, at_most, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.copy_average.drawing import draw_correlations
from understudy.papers.copy_average.fits import fit_cell
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INITS = ("gaussian", "glorot")


def _read(u: np.ndarray) -> dict[str, Any]:
    """Copies and the average of a student with correlations u (n, k): who they are and how clean."""
    n, k = u.shape
    strength = u.max(axis=1)
    average = int(np.argmin(strength))
    copies = [i for i in range(n) if i != average]
    copied = [int(np.argmax(u[i])) for i in copies]
    rest = [j for j in range(k) if j not in copied]
    return {
        "distinct": len({int(np.argmax(row)) for row in u}) == n and len(set(copied)) == n - 1,
        "weakest": float(strength[average]),
        "weakest copy": float(strength[copies].min()) if copies else 1.0,
        "average, others": [float(u[average, rest].min()), float(u[average, rest].max())],
        "average, copied": float(u[average, copied].max()) if copied else 0.0,
        "outside": float(np.abs(1 - np.sum(u**2, axis=1)).max()),
    }


def _fits(settings: Settings, progress: Progress) -> list[tuple[str, int, int, Any]]:
    """Kind of case, n, k, and the fits from both kinds of starts, first the Gaussian ones."""
    cases = {"averaging": settings["averaging"], "copying": settings["copying"]}
    grid = [(kind, int(n), int(k)) for kind, pairs in cases.items() for n, k in pairs]
    configurations = [
        {
            "kind": "relu",
            "activation": "relu",
            "students": n,
            "teachers": k,
            "dim": k + 1,
            "seeds": list(range(settings["seeds"])),
            "init_std": 0.1,
            "init": init,
        }
        for _, n, k in grid
        for init in INITS
    ]
    cells = compute(fit_cell, configurations, progress, keep=settings["keep"])
    parts = zip(cells[::2], cells[1::2], strict=True)
    return [(*case, xr.concat(both, "seed")) for case, both in zip(grid, parts, strict=True)]


def _checks_of_kind(name: str, kind: str, read: dict[str, Any]) -> list[Check]:
    """That the best student is near copies and an average, or that all its neurons copy."""
    checks = [at_most(f"{name}: part outside the teachers' span", read["outside"], bound=1e-6)]
    if kind == "averaging":
        low, high = read["average, others"]
        return [
            *checks,
            at_least(f"{name}: weakest copy's correlation with its teacher", read["weakest copy"], bound=0.8),
            at_most(
                f"{name}: average's correlation with copied teachers, negative", read["average, copied"], bound=0.0
            ),
            at_most(f"{name}: spread of its correlations with the others", high - low, bound=0.05),
        ]
    return [
        *checks,
        holds(f"{name}: every student copies another teacher", read["distinct"], read["weakest"]),
        at_least(f"{name}: weakest student's best correlation", read["weakest"], bound=0.7),
    ]


def _check_of_norms(name: str, found: Any, done: Any, seeds: int) -> Check:
    """How close norms and outgoing weights are at the best end of the small starts, the first seeds."""
    small = done & (np.arange(len(done)) < seeds)
    lowest = int(np.argmin(np.where(small, found["loss"].values, np.inf)))
    ratio = found["norms"].values[lowest] / np.abs(found["outgoing"].values[lowest])
    return at_most(
        f"{name}: a student's norm over its outgoing weight, less 1, N(0, 0.1²) starts",
        np.abs(ratio - 1) if small.any() else np.nan,
        bound=0.25,
    )


def _measure(settings: Settings, progress: Progress) -> Measurement:
    checks: list[Check] = []
    measured: dict[str, Any] = {}
    data: dict[str, Any] = {}
    of_two: list[tuple[int, float]] = []  # k, and the average's correlation with the teacher that the other copies
    for kind, n, k, found in _fits(settings, progress):
        done = found["gradient_norm"].values <= 1e-8
        name = f"n = {n}, k = {k}"
        if not done.any():
            checks.append(holds(f"{name}: a seed converged", False, float(found["gradient_norm"].min())))
            continue
        best = int(np.argmin(np.where(done, found["loss"].values, np.inf)))
        u, norms, outgoing = (found[what].values[best] for what in ("correlation", "norms", "outgoing"))
        read = _read(u)
        checks += [*_checks_of_kind(name, kind, read), _check_of_norms(name, found, done, settings["seeds"])]
        if kind == "averaging" and n == 2:
            of_two.append((k, read["average, copied"]))
        measured[name] = {
            "label": str(found["label"].values[best]),
            "start": INITS[best // settings["seeds"]],
            "loss": float(found["loss"].values[best]),
            "converged seeds": int(done.sum()),
            "weakest copy": read["weakest copy"],
            "average with copied teachers": read["average, copied"],
        }
        data |= {f"{name}|u": u, f"{name}|norms": norms, f"{name}|outgoing": outgoing}
    if len(of_two) > 1:
        values = [value for _, value in sorted(of_two)]
        checks.append(at_most("n = 2: the negative correlation grows with k", np.diff(values), bound=0.0))
    return Measurement(
        checks,
        measured,
        data=data,
        notes=(
            "Of each case the converged seed with the least loss, as in the paper, among N(0, 0.1²) and Glorot starts. "
            "The flow of ReLU networks conserves ‖w‖² - a² of each neuron, so how close norms and outgoing weights are "
            "follows from the start: they are compared for the small starts."
        ),
    )


def _figure(measurement: Measurement, figure: "Figure") -> None:
    names = [key.split("|")[0] for key in measurement.data if key.endswith("|u")]
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure.set_size_inches(3.0 * columns, 3.0 * rows)
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax, name in zip(axes, names, strict=False):
        draw_correlations(ax, measurement.data[f"{name}|u"], odd=False, title=f"ReLU, {name}")
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    figure.colorbar(axes[0].images[0], ax=list(axes), label="correlation u of student and teacher", shrink=0.7)


CLAIM = Claim(
    paper="copy-average",
    id="relu-structure",
    where="Fig. 1 bottom, Fig. 9, App. C.3",
    statement=(
        "With ReLU the best point found is near n-1 copies and one average for n ≪ k, without perfect decoupling: the "
        "average "
        "is negatively correlated with copied teachers; for k slightly above n every student nearly copies a teacher."
    ),
    paper_value=(
        "near-(n-1)-copy-1-average: n = 2; n = 4, k = 8, 16; n = 12, k = 32. Copies: n = 4, k = 5; n = 12, k = 16, 24"
    ),
    measured_by="fit from N(0, 0.1²) and from Glorot starts, d = k + 1; the converged seed with the least loss.",
    tolerance="signs and clear margins",
    tolerance_reason=(
        "The paper shows matrices and calls them close; 0.8 and 0.05 separate copies from averages by far."
    ),
    quick={"averaging": [[2, 6]], "copying": [[4, 5]], "seeds": 5, "keep": False},
    full={
        "averaging": [[2, 3], [2, 4], [2, 8], [2, 16], [4, 8], [4, 16], [12, 32]],
        "copying": [[4, 5], [12, 16], [12, 24]],
        "seeds": 20,
        "keep": True,
    },
    measure=_measure,
    figure=_figure,
)
