"""Claim `certificates`: verdicts on random critical points of every kind of task, beside spectra computed another way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 32
"""Points of one task whose Hessians are computed at once; shorter batches are filled up, so that one program serves all."""

NAMES = (
    "erf",
    "erf, fixed outgoing",
    "erf, two outputs, tilted inputs",
    "erf, more dimensions than neurons",
    "relu",
    "relu, fixed outgoing",
    "quadratic",
    "softplus",
    "tanh",
    "gelu",
    "erf from tanh",
    "data, two layers",
    "data, two outputs, log cosh",
    "data, deep",
    "regularised, deep tanh",
    "regularised, relu",
    "sphere, squared",
    "sphere, correlation",
)

QUICK = ["erf", "relu", "softplus", "data, two layers", "regularised, deep tanh", "sphere, squared"]

WITHOUT_SADDLES = ("regularised, relu",)
"""Kinds of tasks without strict saddles where there are derivatives.

With two layers and ReLU ∂L/∂w = 0 makes the residuals' part of the Hessian ∓2λŵ between w and its outgoing weight, ŵ = w/‖w‖; with
the penalty's 2λ that is 2λ[[I, ∓ŵ], [∓ŵᵀ, 1]] ≥ 0, and 2JᵀJ/N comes on top.
"""


def compare(kind: str, count: int, seed: int, tell: Callable[[float], None]) -> list[dict[str, Any]]:
    """`count` random critical points of that kind of task: the certificate's verdict and the reference's, point by point."""
    import jax.numpy as jnp

    from understudy.papers.promises.instances import points_of
    from understudy.papers.promises.kinds import make
    from understudy.papers.promises.reference import derivatives, judge
    from understudy.points import certify

    rng = np.random.default_rng([seed, NAMES.index(kind)])
    rows: list[dict[str, Any]] = []
    for _ in range(3 * count):
        instance = make(kind, rng)
        points = points_of(instance, rng)[: min(BATCH, count - len(rows))]
        if not points:
            continue
        vectors = np.stack([p.vector for p in points])
        filled = np.concatenate([vectors, np.repeat(vectors[:1], BATCH - len(points), axis=0)])
        gradients, hessians = (np.asarray(x)[: len(points)] for x in derivatives(instance.loss, jnp.asarray(filled)))
        for point, gradient, hessian in zip(points, gradients, hessians, strict=True):
            found = certify(instance.task, point.vector)
            truth = judge(
                instance.loss,
                point.vector,
                gradient,
                hessian,
                rng,
                radial=instance.radial,
                analytic=instance.analytic,
            )
            rows.append(
                {
                    "source": point.source,
                    "kind": found.kind,
                    "inertia": (found.index, found.zeros, found.positives),
                    "truth": truth.kind,
                    "true inertia": truth.inertia,
                    "unclear spectrum": truth.unclear_spectrum,
                    "gradient": float(np.linalg.norm(gradient)),
                    "sizes": np.sort(np.abs(truth.values))[instance.radial :] / np.abs(truth.values).max(),
                    "evidence": found.evidence,
                    "falls": truth.falls,
                    "vector": point.vector,
                    "instance": instance,
                }
            )
        tell(len(rows) / count)
        if len(rows) >= count:
            break
    return rows


def outcome(row: dict[str, Any]) -> str:
    """`right`, `wrong`, `undecided` (the certificate says so) or `unclear` (the reference cannot tell)."""
    if row["kind"] == "unconverged":
        return "undecided"
    if row["truth"] == "unclear":
        return "unclear"
    if row["kind"] != row["truth"] and not (row["truth"] == "saddle" and row["kind"].endswith("saddle")):
        return "wrong"
    if row["unclear spectrum"]:
        return "right"  # the kind can be told; how many eigenvalues are zero cannot
    return "right" if row["inertia"] == row["true inertia"] else "wrong"


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.compilation import keep_compiled_programs
    from understudy.papers.promises.kinds import KINDS

    keep_compiled_programs()
    if set(NAMES) != set(KINDS):
        raise ValueError(f"Kinds of tasks and their names do not fit: {sorted(set(NAMES) ^ set(KINDS))}.")
    outcomes: dict[str, Counter[str]] = {}
    truths: dict[str, Counter[str]] = {}
    gradients, sizes, wrongs = [], [], []
    sources: Counter[str] = Counter()
    for number, kind in enumerate(settings["kinds"]):

        def tell(share: float, number: int = number, kind: str = kind) -> None:
            progress((number + share) / len(settings["kinds"]), kind)

        tell(0.0)
        rows = compare(kind, settings["points"], settings["seed"], tell)
        outcomes[kind] = Counter(outcome(row) for row in rows)
        truths[kind] = Counter(row["truth"] for row in rows)
        sources.update(row["source"] for row in rows)
        gradients += [row["gradient"] for row in rows]
        sizes += [row["sizes"] for row in rows]
        wrongs += [f"{kind}, {r['source']}: {r['kind']} for {r['truth']}" for r in rows if outcome(r) == "wrong"]
    shares = {what: [c[what] / sum(c.values()) for c in outcomes.values()] for what in ("undecided", "unclear")}
    checks = [
        equal("wrong verdicts", 0, sum(c["wrong"] for c in outcomes.values())),
        at_least("points of each kind of task", [sum(c.values()) for c in outcomes.values()], bound=settings["points"]),
        at_least("minima of each kind of task", [c["minimum"] for c in truths.values()], bound=1),
        at_least(
            "strict saddles of each kind of task that has any",
            [c["strict saddle"] for kind, c in truths.items() if kind not in WITHOUT_SADDLES],
            bound=1,
        ),
        at_most("share left undecided by the certificate, of each kind of task", shares["undecided"], bound=0.1),
        at_most("share that the reference cannot tell, of each kind of task", shares["unclear"], bound=0.1),
        at_most("gradient norm of the points, by the plain losses", gradients, bound=1e-9),
    ]
    total = sum((Counter(c) for c in outcomes.values()), Counter())
    kinds = sum((Counter(c) for c in truths.values()), Counter())
    measured = {
        "kinds of tasks": len(outcomes),
        "points": sum(total.values()),
        "wrong verdicts": total["wrong"],
        "left undecided": total["undecided"],
        "beyond the reference": total["unclear"],
        **{
            f"{kind}, by the reference": kinds[kind]
            for kind in ("minimum", "strict saddle", "non-strict saddle", "saddle")
        },
        "undecided by kind": {kind: c["undecided"] for kind, c in outcomes.items() if c["undecided"]} or "none",
        "from": dict(sources),
    }
    flat = np.concatenate(sizes)
    data = {
        "sizes": flat,
        "kinds": np.array(list(outcomes)),
        "right": np.array([c["right"] for c in outcomes.values()]),
        "minima": np.array([c["minimum"] for c in truths.values()]),
        "strict": np.array([c["strict saddle"] for c in truths.values()]),
        "other": np.array([c["non-strict saddle"] + c["saddle"] + c["unclear"] for c in truths.values()]),
    }
    return Measurement(checks, measured, data=data, notes="; ".join(wrongs[:20]))


def _draw(measurement: Measurement, figure: Figure) -> None:
    from understudy.papers.promises.reference import CLEAR, ZERO

    data = measurement.data
    figure.set_size_inches(10.0, 4.8)
    left, right = figure.subplots(1, 2)
    left.hist(np.log10(np.maximum(data["sizes"], 1e-19)), bins=100)
    left.axvspan(np.log10(ZERO), np.log10(CLEAR), color="C1", alpha=0.3, label="gap of the reference")
    left.set(
        yscale="log", xlabel="log₁₀ |eigenvalue| / largest", ylabel="eigenvalues", title="Zero eigenvalues and others"
    )
    left.legend(loc="upper left")
    rows, start = np.arange(len(data["kinds"])), np.zeros(len(data["kinds"]))
    for name, label in (("minima", "minimum"), ("strict", "strict saddle"), ("other", "no sign in the Hessian")):
        right.barh(rows, data[name], left=start, label=label)
        start = start + data[name]
    right.set_yticks(rows, [str(kind) for kind in data["kinds"]], fontsize=7)
    right.invert_yaxis()
    right.set(xlabel="points", title=f"{measurement.measured['wrong verdicts']} wrong verdicts")
    right.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.4, -0.12), ncols=3)


CLAIM = Claim(
    paper="promises",
    id="certificates",
    where="README, us.certify",
    statement=(
        "A certificate is never wrong: its inertia is the Hessian's, and what it calls a minimum, a strict or a non-strict saddle is "
        "one. Where it cannot tell it says so."
    ),
    paper_value="0 wrong of 1,000 for every kind of task",
    measured_by=(
        "Random critical points of random tasks: searched by Levenberg-Marquardt on the gradient from random starts and after descents, "
        "split at random μ and at 0 and 1, with dead neurons, copy-average points. For each the Hessian by automatic differentiation of a "
        "loss written a second time (interactions, or the trapezoidal rule over inputs), its eigenvalues by LAPACK, zero below 1e-13 of the "
        "largest and another number above 1e-7; where others remain, descent from 24 starts in balls of radius 0.1 to 0.0003."
    ),
    tolerance="no wrong verdict; nine of ten points of each kind decided by the certificate, and nine of ten by the reference",
    tolerance_reason=(
        "Verdicts are compared exactly, and so are inertias where no eigenvalue is in the gap: there it may be rounding, the distance to "
        "the critical point, or itself."
    ),
    quick={"points": 30, "seed": 0, "kinds": QUICK},
    full={"points": 1000, "seed": 7, "kinds": list(NAMES)},
    measure=_measure,
    figure=_draw,
)
