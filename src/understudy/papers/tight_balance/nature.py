"""What tight balance is and how long the flow stays there."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from understudy.dynamics import FlowOptions, follow, starts
from understudy.papers.check import Check, at_least, at_most, between, close, equal
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


class Verdicts(NamedTuple):
    """What certificates say of tight balance in each case, beside the closed form.

    `deviations`: of spectra; `orders`: of the descent along zero modes, where there are any.
    """

    kinds: dict[str, str]
    wanted: dict[str, str]
    deviations: list[float]
    orders: list[float]


def nature(settings: Settings, progress: Progress) -> Measurement:
    """What tight balance is for each ρ and d, how long the flow stays near it, and how often it stays for good."""
    cases = [(rho, d) for rho in settings["degrees"] for d in settings["dims"]]
    verdicts = _verdicts(cases, progress)
    offsets = np.logspace(-1, settings["finest"], settings["escapes"])
    times = _escape_times(offsets)
    late = offsets < 0.03
    slope = float(np.polyfit(np.log(offsets[late]), np.log(times[late]), 1)[0])
    caught = {}
    stuck = [(rho, d) for rho, d in cases if rho > 4]
    for i, (rho, d) in enumerate(stuck):
        progress(0.5 + 0.5 * i / len(stuck), f"basin, ρ = {rho}, d = {d}")
        caught[f"ρ = {rho}, d = {d}"] = _caught(rho, d, settings["seeds"])
    shares = {case: share for case, (share, _) in caught.items()}
    toy = {k: v for k, v in shares.items() if k.endswith("d = 2")}
    return Measurement(
        checks=[
            equal("kind, certified, against the closed-form spectrum", verdicts.wanted, verdicts.kinds),
            at_most("whole spectrum against the closed form", verdicts.deviations, bound=1e-10),
            *_checks_at_four(verdicts.orders, offsets, times, slope),
            equal(
                "ρ ≥ 6: share of starts at distance ~0.02 that return",
                1.0,
                float(min(returned for _, returned in caught.values())),
            ),
            at_least("ρ ≥ 6: share of uniform starts that stay for good", list(shares.values()), bound=0.01),
        ],
        measured={
            "kinds": {
                f"ρ = {rho}": verdicts.kinds[f"ρ = {rho}, d = {settings['dims'][0]}"] for rho in settings["degrees"]
            },
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
            "With two students and two teachers the flow escapes from tight balance to the global minimum at ρ = 4, "
            "after a time 1/(64 s²) from mean angle s. For ρ ≥ 6 tight balance is a local minimum, and a positive "
            "share of starts ends in it."
        ),
    )


def _verdicts(cases: list[tuple[int, int]], progress: Progress) -> Verdicts:
    """The certificate of tight balance for each ρ and d."""
    verdicts = Verdicts({}, {}, [], [])
    for i, (rho, d) in enumerate(cases):
        progress(0.4 * i / len(cases), f"ρ = {rho}, d = {d}")
        pair = theory.tight_balance(rho)
        task = Sphere(np.eye(2, d), 2, activation=f"hermite:{rho}")
        certificate = certify(task, theory.tight_pairs(2, 2, d, rho))
        verdicts.kinds[f"ρ = {rho}, d = {d}"] = certificate.kind
        verdicts.wanted[f"ρ = {rho}, d = {d}"] = pair.kind
        deviation = np.abs(np.sort(certificate.eigenvalues) - pair.eigenvalues(d)).max()
        verdicts.deviations.append(float(deviation))
        if certificate.higher_order is not None:
            verdicts.orders.append(certificate.higher_order.order)
    return verdicts


def _caught(rho: int, d: int, seeds: int) -> tuple[float, float]:
    """The share of uniform starts that end at tight balance for good, and of starts at distance ~0.02 that return."""
    task = Sphere(np.eye(2, d), 2, activation=f"hermite:{rho}")
    vectors = np.asarray(task.flatten(starts.uniform_sphere(task, seeds)))
    point = theory.tight_pairs(2, 2, d, rho).ravel()
    near = point + 0.02 * np.random.default_rng(rho).normal(size=(20, len(point)))
    near = near.reshape(20, 2, d) / np.linalg.norm(near.reshape(20, 2, d), axis=2, keepdims=True)
    options = FlowOptions(snapshots=0, polish=False)
    runs = dict(follow(task, np.concatenate([vectors, near.reshape(20, -1)]), options))
    labels = [task.structure(runs[i].vector.reshape(2, d)).label for i in range(len(runs))]
    # Beside tight pairs: pairs still turning toward the teachers' plane, at a speed of order α^(ρ-1).
    paired = sum(label in ("1-tight-pair", "1-split-pair", "1-outside-pair") for label in labels[:seeds])
    return paired / seeds, labels[seeds:].count("1-tight-pair") / 20


def _checks_at_four(orders: list[float], offsets: np.ndarray, times: np.ndarray, slope: float) -> list[Check]:
    """Whether at ρ = 4 the loss falls as -16 s⁴ and the flow leaves after 1/(64 s²)."""
    small = np.array([0.02, 0.01, 0.005])
    curve = np.asarray(Sphere(np.eye(2), 2).loss(theory.slow_curve(small))) - 0.75
    return [
        between("ρ = 4: order of the descent along the zero mode", orders, low=3.9, high=4.1),
        close("ρ = 4: loss along the slow curve / s⁴", -16.0, (curve / small**4)[-1:], 0.02),
        close("ρ = 4: exponent of the escape time in the starting distance", -2.0, slope, 0.02),
        close("ρ = 4: escape time × 64 s², smallest s", 1.0, float(times[-1] * 64 * offsets[-1] ** 2), 0.02),
    ]


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
