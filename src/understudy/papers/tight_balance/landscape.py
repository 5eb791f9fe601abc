"""Critical points: the toy model's, all of them, and the angle of tight balance."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq

from understudy.papers.check import Check, at_most, close, equal, holds
from understudy.papers.claim import Progress, Settings
from understudy.papers.measurement import Measurement
from understudy.papers.tight_balance import tight_pairs as theory
from understudy.papers.tight_balance.torus import TorusSearch, search_torus
from understudy.points import certify
from understudy.tasks.sphere import Sphere
from understudy.tasks.sphere_structure import orbit_key

NAMES = {
    "2-copy": "copy",
    "1-tight-pair": "tight-balance",
    "1-balance-pair": "balance",
    "1-same-copy": "same copy",
    "1-same-average": "same balance",
    "1-leaning-pair": "leaning pair",
}
"""Names of Table 1 for our labels; the last is not in the table."""

TABLE_1 = ("copy", "tight-balance", "balance", "same copy", "same balance")

Classes: TypeAlias = dict[str, dict[str, Any]]
"""What was found of each class at one degree."""


def toy_points(settings: Settings, progress: Progress) -> Measurement:
    """Every critical point at n = k = d = 2 with its class and certificate, for each degree."""
    searches: dict[int, TorusSearch] = {}
    classes: dict[int, Classes] = {}
    worst = 0.0
    for degree in progress.over(settings["degrees"], "ρ ="):
        task = Sphere(np.eye(2), 2, activation=f"hermite:{degree}")
        searches[degree] = search_torus(task)
        classes[degree], steepest = _classes(task, searches[degree])
        worst = max(worst, steepest)
    points = searches[4].points
    names = [NAMES[Sphere(np.eye(2), 2).structure(p.rows).label] for p in points]
    tight = points[names.index("tight-balance")]
    cosine = float(np.sort(np.abs(tight.rows).max(axis=1))[0])
    higher = [d for d in settings["degrees"] if d > 4]
    return Measurement(
        checks=[
            *_checks_at_four(classes[4]),
            *_checks_of_searches(searches, worst),
            close("w·v_1 at tight balance, ρ = 4, is cos(π/8)", math.cos(math.pi / 8), cosine, 1e-12),
            equal("a sixth class for every ρ ≥ 6", len(higher), sum("leaning pair" in classes[d] for d in higher)),
            equal("tight balance is a minimum for every ρ ≥ 6", len(higher), _minima(classes, higher)),
        ],
        measured={
            c: f"{e['count']} points, {'/'.join(sorted(e['kinds']))}, (+, 0, -) = {sorted(e['signatures'])}, loss "
            f"{e['loss']:.6g}"
            for c, e in classes[4].items()
        },
        data={
            "angles": np.array([p.angles for p in points]),
            "names": np.array(names),
            "angles6": np.array([p.angles for p in searches[6].points]) if 6 in searches else np.zeros((0, 2)),
        },
        notes=(
            "Complete: squares of the torus are excluded by bounds on derivatives or lie in a neighbourhood of a known "
            "zero where there is no second; indices add up to 0. At ρ = 4 the neighbourhoods of the four degenerate "
            "points are settled by hand: ∂_1L + ∂_2L = sin 4φ_1 + sin 4φ_2 vanishes only for φ_1 + φ_2 ∈ (π/2)ℤ or φ_1 "
            "- φ_2 ∈ π/4 + (π/2)ℤ, and on these lines one equation in one angle is left, whose zeros are the listed "
            "ones."
        ),
        printed=_printed(cosine, _most(classes, higher)),
        erratum_note=(
            "cos(π/8) and sin(π/8) are meant in the Tight-balance row, and w_1·v_2 = -w_2·v_2 in the Balance row. For "
            "ρ ≥ 6 a sixth class appears: pairs that lean to one side (at ρ = 6 at π/24 and -5π/24), saddles between "
            "tight balance, which has become a minimum, and the copies."
        ),
    )


def _classes(task: Sphere, search: TorusSearch) -> tuple[Classes, float]:
    """Each class of critical points with what certificates say of it, and the largest gradient norm."""
    classes: Classes = {}
    worst = 0.0
    for point in search.points:
        certificate = certify(task, point.rows)
        worst = max(worst, certificate.gradient_norm)
        entry = classes.setdefault(
            NAMES.get(task.structure(point.rows).label, "unknown"),
            {"count": 0, "orbits": set(), "kinds": set(), "signatures": set(), "loss": point.loss},
        )
        entry["count"] += 1
        entry["orbits"].add(orbit_key(point.rows))
        entry["kinds"].add(certificate.kind)
        entry["signatures"].add((certificate.positives, certificate.zeros, certificate.index))
    return classes, worst


def _checks_at_four(four: Classes) -> list[Check]:
    """Whether the classes at ρ = 4 are those of Table 1, with the same numbers and kinds."""
    wanted_counts = {"copy": 2, "tight-balance": 4, "balance": 2, "same copy": 2, "same balance": 2}
    kinds = {
        "copy": "minimum",
        "tight-balance": "non-strict saddle",
        "balance": "strict saddle",
        "same copy": "strict saddle",
        "same balance": "strict saddle",
    }
    return [
        equal("classes at ρ = 4", sorted(TABLE_1), sorted(four)),
        equal("points of each class, up to signs of students", wanted_counts, {c: four[c]["count"] for c in TABLE_1}),
        equal("orbits of each class under all symmetries", 1, max(len(e["orbits"]) for e in four.values())),
        equal("kinds at ρ = 4", kinds, {c: "/".join(sorted(four[c]["kinds"])) for c in TABLE_1}),
    ]


def _checks_of_searches(searches: dict[int, TorusSearch], worst: float) -> list[Check]:
    """Whether every search is complete, and what it finds critical to rounding."""
    return [
        holds(
            "the search is complete at every degree",
            all(s.complete for s in searches.values()),
            {f"ρ = {d}": f"{s.squares} squares, index sum {s.index_sum}" for d, s in searches.items()},
        ),
        at_most("squares left elsewhere than at degenerate points", [s.stray for s in searches.values()], bound=0),
        at_most("gradient norm of the points", worst, bound=1e-12),
    ]


def _printed(cosine: float, most: int) -> list[Check]:
    """Table 1 as printed, and that classes stay the same as ρ varies."""
    return [
        close("w·v_1 at tight balance as printed, cos⁻¹(π/8)", math.acos(math.pi / 8), cosine, 1e-9),
        holds(
            "Balance row as printed: w_2·v_1 is 2^(-1/2) and -2^(-1/2) at once",
            bool(2**-0.5 == -(2**-0.5)),
            "w_1·v_1 = w_2·v_1 and w_1·v_1 = -w_2·v_1 exclude each other",
        ),
        equal("critical points other than tight balance stay the same as ρ varies: classes at ρ ≥ 6", 5, most),
    ]


def _minima(classes: dict[int, Classes], degrees: list[int]) -> int:
    """At how many of these degrees tight balance is a minimum."""
    return sum(classes[d]["tight-balance"]["kinds"] == {"minimum"} for d in degrees)


def _most(classes: dict[int, Classes], degrees: list[int]) -> int:
    """The largest number of classes at these degrees."""
    return max(len(classes[d]) for d in degrees)


def draw_toy_points(measurement: Measurement, figure: Any) -> None:
    """Fig. 1: both gradient components' zero lines at ρ = 4 and the critical points on them."""
    axes = figure.subplots()
    phi = np.linspace(0, np.pi, 400)
    first, second = np.meshgrid(phi, phi, indexing="ij")
    pair = np.sin(2 * (first - second)) + np.sin(4 * (first - second)) / 2
    axes.contour(phi, phi, (np.sin(4 * first) - pair).T, levels=[0.0], colors="C0", linewidths=1)
    axes.contour(phi, phi, (np.sin(4 * second) + pair).T, levels=[0.0], colors="C1", linewidths=1)
    names, angles = measurement.data["names"], measurement.data["angles"]
    for i, name in enumerate(TABLE_1):
        chosen = angles[names == name]
        axes.plot(chosen[:, 0], chosen[:, 1], "o^sDv"[i], color=f"C{i + 2}", ms=8, label=name, zorder=3)
    ticks = [0, np.pi / 4, np.pi / 2, 3 * np.pi / 4, np.pi]
    axes.set_xticks(ticks, ["0", "π/4", "π/2", "3π/4", "π"])
    axes.set_yticks(ticks, ["0", "π/4", "π/2", "3π/4", "π"])
    axes.set(
        xlabel="angle of student 1", ylabel="angle of student 2", title="All critical points, n = k = d = 2, ρ = 4"
    )
    axes.set_aspect("equal")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))


def angle(settings: Settings, progress: Progress) -> Measurement:
    """θ_ρ from the polynomial with one positive root, against the paper's own condition."""
    degrees = settings["degrees"]
    ours = np.array([theory.angle(d) for d in degrees])

    def printed(a: float, rho: int) -> float:
        return -2 * (1 - 2 * a * a) ** (rho - 1) - a ** (rho - 2) + math.sqrt(1 - a * a) ** (rho - 2)

    theirs = np.array([math.asin(brentq(printed, 1e-3, 0.6, args=(d,), xtol=1e-16, rtol=1e-15)) for d in degrees])
    at_diagonal = [abs(printed(math.sqrt(0.5), d)) for d in degrees]
    gradients = []
    for d in progress.over(degrees, "ρ ="):
        task = Sphere(np.eye(2), 2, activation=f"hermite:{d}")
        gradients.append(float(np.linalg.norm(np.asarray(task.gradient(theory.tight_pairs(2, 2, 2, d))))))
    return Measurement(
        checks=[
            close("θ_4 is π/8", math.pi / 8, float(ours[0]), 1e-15),
            close("θ_ρ against the zero of the printed condition", theirs, ours, 1e-12),
            at_most("gradient norm at (θ_ρ, -θ_ρ)", gradients, bound=1e-12),
            at_most("θ_ρ falls with ρ: largest step", np.diff(ours), bound=0.0),
            at_most("the condition's zero at 2^(-1/2)", at_diagonal, bound=1e-12),
            close("cos 2θ_6 is 2^(-1/4)", 2**-0.25, math.cos(2 * theory.angle(6)), 1e-15),
        ],
        measured={f"θ_{d}": float(t) for d, t in zip(degrees, ours, strict=True)},
        data={"degrees": np.array(degrees), "angles": ours},
        notes=(
            "Exactly one angle for each ρ by Descartes' rule (see theory.tight_balance); as ρ → ∞, ρθ² → (2/3) ln 2 = "
            "0.462. The intermediate conditions are printed with -a√(1-a²)^ρ where +a√(1-a²)^ρ follows; it cancels in "
            "the final one."
        ),
    )


def draw_angle(measurement: Measurement, figure: Any) -> None:
    """Fig. 2 and 3: the condition's zeros and the angle against ρ."""
    left, right = figure.subplots(1, 2)
    a = np.linspace(0, 0.8, 400)
    for rho in (4, 6):
        condition = -2 * (1 - 2 * a**2) ** (rho - 1) - a ** (rho - 2) + np.sqrt(1 - a**2) ** (rho - 2)
        left.plot(a, condition, label=f"ρ = {rho}")
        left.plot(np.sin(theory.angle(rho)), 0, "ko", ms=5)
    left.axhline(0, color="0.5", lw=0.8)
    left.set(xlabel="a = sin θ", ylabel="condition", title="Tight-balance condition")
    left.legend()
    degrees, angles = measurement.data["degrees"], measurement.data["angles"]
    right.plot(degrees, angles, "o-", label="θ_ρ")
    fine = np.linspace(4, degrees.max(), 200)
    right.plot(fine, np.sqrt(2 * np.log(2) / 3 / fine), "--", label="√(2 ln 2 / 3ρ)")
    right.set(xlabel="degree ρ", ylabel="angle to the shared teacher", title="Tight-balance angle")
    right.legend()
