"""Claim `natures`: verdicts on points whose nature is known by algebra or construction."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.cells import compute
from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement
from understudy.papers.promises.fresh import NATURES_SEED

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

OPEN = ("undecided", "unconverged", "diverging")


def nature_cell(cell: dict[str, Any]) -> "xr.Dataset":
    """Every `parts`-th of the points of this seed, from the `part`-th on: kind, words, nature, verdict and outcome of
    each."""
    import xarray as xr

    from understudy.compilation import keep_compiled_programs
    from understudy.papers.promises import known_points, natures
    from understudy.points import certify

    keep_compiled_programs()
    known = [*natures.functions(cell["seed"], cell["functions"]), *known_points.points(cell["seed"], cell["points"])]
    rows = []
    for point in known[cell["part"] :: cell["parts"]]:
        verdict = certify(point.task, point.point).kind
        rows.append((point.kind, point.words, point.nature, verdict, outcome(point.nature, verdict), point.regular))
    names = ("kind", "words", "nature", "verdict", "outcome", "regular")
    return xr.Dataset({name: ("point", np.array([row[i] for row in rows])) for i, name in enumerate(names)})


def outcome(nature: str, verdict: str) -> str:
    """`right`, `wrong` or `undecided`; a point that is not critical must not be called anything else.

    >>> outcome("minimum", "undecided"), outcome("not critical", "minimum"), outcome("not a minimum", "unconverged")
    ('undecided', 'wrong', 'right')
    """
    if nature == "not critical":
        return "right" if verdict in OPEN else "wrong"
    if nature == "not a minimum":
        return "wrong" if verdict == "minimum" else "right"
    if verdict in OPEN:
        return "undecided"
    return "right" if verdict == nature else "wrong"


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import xarray as xr

    common = {name: settings[name] for name in ("seed", "functions", "points", "parts")}
    cells = [{"kind": "natures", "part": part, **common} for part in range(settings["parts"])]
    rows = xr.concat(compute(nature_cell, cells, progress, keep=settings["keep"]), "point")
    kinds, outcomes = rows["kind"].values, rows["outcome"].values
    counts = {str(kind): Counter(outcomes[kinds == kind].tolist()) for kind in dict.fromkeys(kinds.tolist())}
    total = Counter(outcomes.tolist())
    regular = outcomes[rows["regular"].values.astype(bool)]
    wrong = rows.isel(point=np.flatnonzero(outcomes == "wrong"))
    notes = [
        f"{kind}, {words}: {verdict} for {nature}"
        for kind, words, verdict, nature in zip(
            *(wrong[name].values.tolist() for name in ("kind", "words", "verdict", "nature")), strict=True
        )
    ]
    return Measurement(
        [
            equal("wrong verdicts", 0, total["wrong"]),
            at_least("points", [total.total()], bound=settings["least"]),
            at_most(
                "share left undecided of points that are critical to rounding and not degenerate",
                [float(np.mean(regular == "undecided"))],
                bound=0.01,
            ),
        ],
        {
            "points": total.total(),
            "wrong verdicts": total["wrong"],
            "left undecided": total["undecided"],
            "share undecided, by kind": {kind: round(c["undecided"] / c.total(), 3) for kind, c in counts.items()},
        },
        data={
            "kinds": np.array(list(counts)),
            **{what: np.array([c[what] for c in counts.values()]) for what in ("right", "undecided", "wrong")},
        },
        notes="; ".join(notes[:20]),
    )


def _draw(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    axes = figure.subplots()
    rows, start = np.arange(len(data["kinds"])), np.zeros(len(data["kinds"]))
    for name in ("right", "undecided", "wrong"):
        axes.barh(rows, data[name], left=start, label=name)
        start = start + data[name]
    axes.set_yticks(rows, [str(kind) for kind in data["kinds"]], fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="points", title=f"{measurement.measured['wrong verdicts']} wrong verdicts")
    axes.legend(fontsize=7)


CLAIM = Claim(
    paper="promises",
    id="natures",
    where="README, us.certify",
    statement=(
        "A certificate is never too sure: on points whose nature is known by algebra or construction it is right or "
        "says that it cannot tell."
    ),
    paper_value="0 wrong",
    measured_by=(
        "Functions of one to six variables in random bent coordinates: quadratic forms, powers up to 16, forms that "
        "fall along curves only, small terms that decide close by beside larger ones of higher order, curvatures down "
        "to 1e-15 beside folds and pitchforks, flat families, plateaus that run out flat; in units from 1e-9 to 1e9. "
        "Points of tasks: zero loss with split, dead and cancelling neurons, the same on data, splits with known Y and "
        "μ, samples on kinks, zero networks with weight decay, students on the sphere. All drawn by a generator. The "
        "seed of the full run was fixed by a rule before the run, and nothing was adjusted to it: the number of "
        "commits of this repository when the certificate was finished."
    ),
    tolerance="no wrong verdict; 1 % undecided of points that are critical to rounding and not degenerate",
    tolerance_reason="The natures are exact. Where double precision cannot tell, 'undecided' is the right answer.",
    quick={"functions": 1, "points": 3, "parts": 1, "keep": False, "seed": 0, "least": 60},
    full={"functions": 32, "points": 18, "parts": 12, "keep": True, "seed": NATURES_SEED, "least": 300},
    measure=_measure,
    figure=_draw,
)
