"""Claim `ca-hessian`: when the best copy-average point is a minimum."""

import math
from typing import TYPE_CHECKING

import numpy as np

from understudy.papers.check import at_least, at_most, close, equal, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.theory import symmetric_spectrum
    from understudy.theory.copy_average import copy_average

    gaps = []
    for n, k in progress.over([tuple(pair) for pair in settings["dense"]], "dense spectrum, (n, k) ="):
        task = us.Population(us.Teacher.orthonormal(k, dim=k + 1), width=n)
        point = copy_average("erf", (1,) * (n - 1) + (k - n + 1,), dim=k + 1)
        dense = np.linalg.eigvalsh(np.asarray(task.hessian(point)))
        gaps.append(np.abs(dense - symmetric_spectrum("erf", n, k).eigenvalues()).max() / np.abs(dense).max())
    checks = [
        at_most("all eigenvalues by symmetry against the dense Hessian, relative to the largest", gaps, bound=1e-13)
    ]

    crossings, data = {}, {}
    ns = np.unique(np.round(np.geomspace(1, settings["largest"], settings["points"])).astype(int))
    for h in (1, 2, 3):
        small = [symmetric_spectrum("erf", n, n + h).least for n in range(1, settings["near"] + 1)]
        first = int(np.argmax(np.array(small) < 0)) + 1
        crossings[h] = first
        curve = [symmetric_spectrum("erf", int(n), int(n) + h).least for n in ns]
        data[f"h{h}"] = np.array(curve)
        checks.append(at_least(f"k = n + {h}: positive below n = {first}", small[: first - 1], bound=1e-6))
        beyond = small[first - 1 :] + [value for n, value in zip(ns, curve, strict=True) if n >= first]
        checks.append(at_most(f"k = n + {h}: negative from n = {first} to {ns[-1]}", beyond, bound=-1e-6))
        checks.append(
            holds(
                f"k = n + {h}: between them the sign changes once", _changes(small) == 1, f"n = {first - 1} → {first}"
            )
        )
    for factor in (1, 2, 3):
        curve = [symmetric_spectrum("erf", int(n), int(factor * n)).least for n in ns]
        data[f"x{factor}"] = np.array(curve)
        checks.append(at_least(f"k = {factor}n: positive up to n = {ns[-1]}", curve, bound=1e-300))
        checks.append(at_most(f"k = {factor}n: falls towards zero", np.diff(curve[1:]), bound=0.0))
    slope = math.log(data["x2"][-1] / data["x2"][-2]) / math.log(ns[-1] / ns[-2])
    checks.append(close("k = 2n: decays like n^-3", -3.0, slope, 0.1))
    checks.append(
        equal("first n at which the point is a saddle, h = 1, 2, 3", [6, 12, 20], [crossings[h] for h in (1, 2, 3)])
    )
    more = {h: _crossing(h) for h in settings["further"]}
    measured = {
        "first n with a negative eigenvalue": {f"k = n + {h}": n for h, n in crossings.items()},
        "further h": {f"h = {h}": n for h, n in more.items()},
        f"least eigenvalue at n = {ns[-1]}": {
            "k = 2n": float(data["x2"][-1]),
            "k = 3n": float(data["x3"][-1]),
            "k = n": float(data["x1"][-1]),
        },
    }
    notes = (
        "The eigenvalue that turns negative belongs to differences among the averaged teachers, shared by all "
        "students. The caption of Fig. 6 lists k = n among the cases k ≫ n; there the point is the teacher itself, "
        "with zero loss."
    )
    return Measurement(checks, measured, data={**data, "n": ns}, notes=notes)


def _changes(values: list[float]) -> int:
    return int(np.sum(np.diff(np.sign(values)) != 0))


def _crossing(h: int) -> int:
    """Least n at which k = n + h has a negative eigenvalue, by bisection on the block that turns negative."""
    from understudy.theory import symmetric_spectrum

    high = 2
    while symmetric_spectrum("erf", high, high + h).least > 0:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if symmetric_spectrum("erf", middle, middle + h).least > 0 else (low, middle)
    return high


def _figure(measurement: Measurement, figure: "Figure") -> None:
    figure.set_size_inches(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    data, n = measurement.data, measurement.data["n"]
    for h in (1, 2, 3):
        left.semilogx(n, data[f"h{h}"], "o-", ms=3, label=f"k = n + {h}")
    left.axhline(0, color="black", lw=0.8)
    left.set(xlabel="students n", ylabel="least Hessian eigenvalue", title="Fig. 6 left: a minimum turns into a saddle")
    for factor in (1, 2, 3):
        right.loglog(n, data[f"x{factor}"], "o-", ms=3, label="k = n" if factor == 1 else f"k = {factor}n")
    right.set(xlabel="students n", ylabel="least Hessian eigenvalue", title="Fig. 6 right: positive, towards zero")
    left.legend()
    right.legend()


CLAIM = Claim(
    paper="copy-average",
    id="ca-hessian",
    where="Fig. 6, App. C.2",
    statement=(
        "At n-1 copies and one average the least Hessian eigenvalue is positive for small n and negative for large n "
        "if k = n + h, h = 1, 2, 3; for k = 2n, 3n it is positive and goes to zero."
    ),
    paper_value="sign change in n for k = n + 1, 2, 3; positive and → 0 for k = 2n, 3n",
    measured_by="Block diagonalisation by the permutation symmetry, checked against dense spectra.",
    tolerance="signs; 1e-13 relative for the spectra",
    tolerance_reason="Rounding of a dense eigenvalue computation.",
    quick={"dense": [[2, 3], [5, 8], [8, 12]], "near": 30, "largest": 10_000, "points": 13, "further": [4]},
    full={
        "dense": [[1, 4], [2, 3], [3, 3], [4, 6], [8, 12], [12, 24], [20, 23], [30, 33]],
        "near": 60,
        "largest": 10_000,
        "points": 60,
        "further": [4, 5, 6, 8, 10, 15, 20],
    },
    measure=_measure,
    figure=_figure,
)
