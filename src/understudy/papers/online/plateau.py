"""Claim `symmetric-plateau`: where soft committee machines linger at small learning rates, and when they leave."""

import math

import numpy as np

from understudy.papers.check import at_most, close, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.online import Overlaps, find_plateaus

    speeds, losses, wanted = [], [], []
    for k in progress.over(settings["teachers"], "K ="):
        task = us.Population(us.Teacher.orthonormal(k), width=k, outgoing=1.0)
        q, r = 1 / (2 * k - 1), 1 / math.sqrt(k * (2 * k - 1))
        online = us.Online(task, settings["small_rate"])
        point = online.flatten(Overlaps(np.full((k, k), q), np.full((k, k), r), np.ones(k)))
        speeds.append(float(np.linalg.norm(online.slope(point)) / settings["small_rate"]))
        losses.append(online.loss(point) / 2)
        wanted.append(k / math.pi * (math.pi / 6 - k * math.asin(1 / (2 * k))))
    online = us.Online(us.Population(us.Teacher.orthonormal(2), width=2, outgoing=1.0), settings["rate"])
    run = online.run(online.start(0, dim=settings["dim"]), np.linspace(0.0, 200 / settings["rate"], 401))
    plateaus = find_plateaus(run)
    checks = [
        at_most("speed over η at Q = C = 1/(2K-1), R = 1/√(K(2K-1))", speeds, bound=1e-6),
        close("generalisation error there", wanted, losses, 1e-12),
        holds("two students, two teachers: one plateau", len(plateaus) == 1, f"{len(plateaus)} plateaus"),
    ]
    measured: dict[str, object] = {"generalisation error": losses}
    if plateaus:
        p = plateaus[0]
        checks += [
            holds("the critical point behind it is a strict saddle", p.certificate.kind == "strict saddle", p.certificate.kind),
            close("its generalisation error", wanted[0], p.certificate.loss / 2, 1e-10),
            close("time to leave it over the predicted one", 1.0, (p.measured_leaving - p.time) / (p.predicted_leaving - p.time), 0.1),
        ]  # fmt: skip
        measured |= {
            "leaves at": p.measured_leaving,
            "predicted": p.predicted_leaving,
            "growth rate": p.growth_rates[0],
        }
    specialised = float(np.abs(run.teacher_overlaps[-1]).max(axis=1).min())
    checks.append(close("then each student takes a teacher: least largest overlap", 1.0, specialised, 0.05))
    return Measurement(checks, measured)


CLAIM = Claim(
    paper="online",
    id="symmetric-plateau",
    where="Saad and Solla 1995, the symmetric phase at small η; the point as in copy-average, App. B",
    statement=(
        "At small learning rates K students of K orthonormal teachers (erf) linger near a symmetric fixed point and "
        "leave it along one growing direction to specialise."
    ),
    paper_value="Q = C = 1/(2K-1), R = 1/√(K(2K-1)), ε = (K/π)(π/6 - K asin(1/2K))",
    measured_by=(
        "The equations' speed and loss at that point; a run, its plateau, the certificate behind it, and when it "
        "leaves."
    ),
    tolerance=1e-12,
    tolerance_reason=(
        "Closed forms on both sides; the predicted time neglects third orders of the growing direction (10 %)."
    ),
    quick={"teachers": [2, 3, 5], "small_rate": 1e-8, "rate": 0.1, "dim": 1000},
    full={"teachers": [2, 3, 4, 5, 8, 12], "small_rate": 1e-8, "rate": 0.1, "dim": 1000},
    measure=_measure,
)
