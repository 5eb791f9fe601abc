"""What tight balance is and how long the flow stays there; tight-balance pairs among many students."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

import understudy as us
from understudy.dynamics import FlowOptions, follow, starts
from understudy.papers.check import at_least, at_most, between, close, equal, holds
from understudy.papers.claim import Progress, Settings
from understudy.papers.measurement import Measurement
from understudy.papers.tight_balance import tight_pairs as theory
from understudy.points import certify
from understudy.tasks.sphere import Sphere


def _escape_times(offsets: np.ndarray) -> np.ndarray:
    """Flow times from the slow curve of ρ = 4, d = 2 at these mean angles to a justified jump to the copies."""
    task = Sphere(np.eye(2), 2)
    rows = theory.slow_curve(offsets).reshape(len(offsets), -1)
    options = FlowOptions(rtol=1e-10, atol=1e-12, snapshots=0, max_time=1e12)
    runs = dict(follow(task, rows, options))
    return np.array([runs[i].time if runs[i].ending == "polished" else math.inf for i in range(len(offsets))])


def nature(settings: Settings, progress: Progress) -> Measurement:
    """What tight balance is for each ρ and d, how long the flow stays near it, and how often it stays for good."""
    kinds, wanted, deviations, orders = {}, {}, [], []
    cases = [(rho, d) for rho in settings["degrees"] for d in settings["dims"]]
    for i, (rho, d) in enumerate(cases):
        progress(0.4 * i / len(cases), f"ρ = {rho}, d = {d}")
        pair = theory.tight_balance(rho)
        task = Sphere(np.eye(2, d), 2, activation=f"hermite:{rho}")
        certificate = certify(task, theory.tight_pairs(2, 2, d, rho))
        kinds[f"ρ = {rho}, d = {d}"] = certificate.kind
        wanted[f"ρ = {rho}, d = {d}"] = pair.kind
        deviations.append(float(np.abs(np.sort(certificate.eigenvalues) - pair.eigenvalues(d)).max()))
        if certificate.higher_order is not None:
            orders.append(certificate.higher_order.order)
    small = np.array([0.02, 0.01, 0.005])
    task = Sphere(np.eye(2), 2)
    curve = np.asarray(task.loss(theory.slow_curve(small))) - 0.75
    offsets = np.logspace(-1, settings["finest"], settings["escapes"])
    times = _escape_times(offsets)
    late = offsets < 0.03
    slope = float(np.polyfit(np.log(offsets[late]), np.log(times[late]), 1)[0])
    shares = {}
    returns = []
    stuck = [(rho, d) for rho, d in cases if rho > 4]
    for i, (rho, d) in enumerate(stuck):
        progress(0.5 + 0.5 * i / len(stuck), f"basin, ρ = {rho}, d = {d}")
        task = Sphere(np.eye(2, d), 2, activation=f"hermite:{rho}")
        vectors = np.asarray(task.flatten(starts.uniform_sphere(task, settings["seeds"])))
        point = theory.tight_pairs(2, 2, d, rho).ravel()
        near = point + 0.02 * np.random.default_rng(rho).normal(size=(20, len(point)))
        near = near.reshape(20, 2, d) / np.linalg.norm(near.reshape(20, 2, d), axis=2, keepdims=True)
        options = FlowOptions(snapshots=0, polish=False)
        runs = dict(follow(task, np.concatenate([vectors, near.reshape(20, -1)]), options))
        labels = [task.structure(runs[i].vector.reshape(2, d)).label for i in range(len(runs))]
        # Beside tight pairs: pairs still turning toward the teachers' plane, at a speed of order α^(ρ-1).
        paired = sum(
            label in ("1-tight-pair", "1-split-pair", "1-outside-pair") for label in labels[: settings["seeds"]]
        )
        shares[f"ρ = {rho}, d = {d}"] = paired / settings["seeds"]
        returns.append(labels[settings["seeds"] :].count("1-tight-pair") / 20)
    toy = {k: v for k, v in shares.items() if k.endswith("d = 2")}
    return Measurement(
        checks=[
            equal("kind, certified, against the closed-form spectrum", wanted, kinds),
            at_most("whole spectrum against the closed form", deviations, bound=1e-10),
            between("ρ = 4: order of the descent along the zero mode", orders, low=3.9, high=4.1),
            close("ρ = 4: loss along the slow curve / s⁴", -16.0, (curve / small**4)[-1:], 0.02),
            close("ρ = 4: exponent of the escape time in the starting distance", -2.0, slope, 0.02),
            close("ρ = 4: escape time × 64 s², smallest s", 1.0, float(times[-1] * 64 * offsets[-1] ** 2), 0.02),
            equal("ρ ≥ 6: share of starts at distance ~0.02 that return", 1.0, float(min(returns))),
            at_least("ρ ≥ 6: share of uniform starts that stay for good", list(shares.values()), bound=0.01),
        ],
        measured={
            "kinds": {f"ρ = {rho}": kinds[f"ρ = {rho}, d = {settings['dims'][0]}"] for rho in settings["degrees"]},
            "escape time, ρ = 4": f"{times[-1] * offsets[-1] ** 2 * 64:.4f}/(64 s²), exponent {slope:.4f}",
            "share of uniform starts caught for good": shares,
        },
        data={
            "offsets": offsets,
            "times": times,
            "shares": np.array(list(shares.values())),
            "cases": np.array(list(shares)),
        },
        notes=(
            "ρ = 4 is exactly where tight balance is born as a minimum: its turning mode has eigenvalue 0 and the loss "
            "falls as -16 s⁴, in every dimension. For ρ ≥ 6 all eigenvalues are positive; the least one out of the "
            "plane is ρ sin^(ρ-2) θ_ρ. Started beside one teacher both students end there forever."
        ),
        printed=[
            at_most(
                "toy model, 'we empirically observe global convergence': share that does not reach the global minimum, "
                "ρ ≥ 6",
                list(toy.values()),
                bound=0.0,
            )
        ],
        erratum_note=(
            "Escape from tight balance to the global minimum holds for ρ = 4 only, after a time 1/(64 s²) from mean "
            "angle s. For "
            "ρ ≥ 6 tight balance is a local minimum and a positive share of starts ends in it, in the toy model too."
        ),
    )


def draw_nature(measurement: Measurement, figure: Any) -> None:
    """Escape times at ρ = 4, and the share of starts that never escape for ρ ≥ 6."""
    left, right = figure.subplots(1, 2)
    s, t = measurement.data["offsets"], measurement.data["times"]
    left.loglog(s, t, "o", label="flow")
    left.loglog(s, theory.escape_time(1.0) / s**2, "-", label="1/(64 s²)")
    left.set(xlabel="mean angle s at the start", ylabel="escape time", title="ρ = 4: leaving tight balance")
    left.legend()
    names, shares = measurement.data["cases"], measurement.data["shares"]
    right.barh([str(n) for n in names], shares)
    right.set(xlabel="share of uniform starts", title="ρ ≥ 6: caught for good")
    right.invert_yaxis()


def pairs(settings: Settings, progress: Progress) -> Measurement:
    """Tight-balance pairs among n ≤ k ≤ d students: critical, certified, and how often runs end in them."""
    steepest, kinds = [], []
    for n, k, d, count in settings["configurations"]:
        for degree in settings["degrees"]:
            task = Sphere(np.eye(k, d), n, activation=f"hermite:{degree}")
            rows = theory.tight_pairs(n, k, d, degree, count)
            certificate = certify(task, rows)
            steepest.append(certificate.gradient_norm)
            kinds.append((degree, certificate.kind, task.structure(rows).label == _pair_label(n, count)))
    endings: dict[str, dict[str, int]] = {}
    paired: list[float] = []
    ends: list[str] = []
    for i, (n, k, d, degree) in enumerate(settings["runs"]):
        progress(i / len(settings["runs"]), f"n = {n}, k = {k}, d = {d}, ρ = {degree}")
        runs = us.fit(Sphere(us.Teacher.orthonormal(k, d, f"hermite:{degree}"), n), settings["seeds"])
        labels = Counter(f"{run.structure.label} ({run.certificate.kind})" for run in runs)
        endings[f"n = {n}, k = {k}, d = {d}, ρ = {degree}"] = dict(labels.most_common())
        paired += [2 * _pairs_in(run.structure.label) / n for run in runs]
        ends += [run.certificate.kind for run in runs]
    expected = {4: "non-strict saddle"}
    return Measurement(
        checks=[
            at_most("gradient norm at constructed pairs", steepest, bound=1e-12),
            holds(
                "each is certified: non-strict saddle at ρ = 4, minimum for ρ ≥ 6, and recognised",
                all(kind == expected.get(degree, "minimum") and named for degree, kind, named in kinds),
                {f"ρ = {d}": sorted({k for x, k, _ in kinds if x == d}) for d in settings["degrees"]},
            ),
            equal("runs that do not converge", 0, ends.count("unconverged") + ends.count("diverging")),
            at_most(
                "share of runs whose end the certificate leaves undecided",
                ends.count("undecided") / len(ends),
                bound=0.1,
            ),
            between("share of students that end in pairs, mean over runs", float(np.mean(paired)), low=0.01, high=0.6),
        ],
        measured={"students in pairs": float(np.mean(paired)), **endings},
        notes=(
            "Uniform starts. Only some students pair up; the others copy a teacher each. At ρ = 6 a rare end (2 %) is "
            "a pair that is still turning, flat to sixth order beside an eigenvalue of 3e-5: a non-strict saddle by "
            "the slopes along its zero modes. An earlier rule asked that every run is certified (0 of 40 quick runs "
            "were not, with a less strict certificate)."
        ),
    )


def _pair_label(n: int, count: int) -> str:
    singles = f"{n - 2 * count}-copy-" if n > 2 * count else ""
    return f"{singles}{count}-tight-pair"


def _pairs_in(label: str) -> int:
    parts = label.split("-")
    return sum(int(parts[i]) for i in range(len(parts) - 2) if parts[i].isdigit() and parts[i + 2 : i + 3] == ["pair"])
