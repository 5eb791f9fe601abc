"""Claim `asymptotic-error`: the error that label noise leaves, for committee machines with more students than
teachers.
"""

import math

import numpy as np

from understudy.papers.check import at_least, close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.online import asymptotic_error

    teachers, noise = settings["teachers"], settings["noise"]
    small, formula, linear, response, runs = [], [], [], [], []
    for students in progress.over(settings["students"], "students ="):
        w = np.zeros((students, teachers))
        w[:teachers] = np.eye(teachers)
        perfect = us.TwoLayer(w, np.ones(students))
        for name in ("erf", "linear"):
            task = us.Population(us.Teacher.orthonormal(teachers, activation=name), width=students, outgoing=1.0)
            eta = settings["small_rate"] if name == "erf" else settings["rate"]
            error = asymptotic_error(us.Online(task, eta, noise=noise), perfect)
            if name == "linear":
                linear.append((error.linear_response / 2, eta * noise**2 * students / (4 - 2 * eta * students)))
                continue
            small.append(error.linear_response / 2)
            formula.append(eta * noise**2 / (2 * math.pi) * (students - teachers + teachers / math.sqrt(3)))
            online = us.Online(task, settings["rate"], noise=noise)
            response.append(asymptotic_error(online, perfect).linear_response)
            runs.append(float(online.run(perfect, [3000 / settings["rate"]]).loss[-1]))
    ratio = np.array(response) / 2 / np.array(formula) * settings["small_rate"] / settings["rate"]
    found, wanted = np.array(linear).T
    checks = [
        close("erf, η → 0: ε over (ησ²/2π)(L + M/√3)", 1.0, np.array(small) / np.array(formula), settings["tolerance"]),
        close("linear: ε over ησ²K/(4 - 2ηK), any η", 1.0, found / wanted, 1e-9),
        close("erf at finite η: a long run over linear response", 1.0, np.array(runs) / np.array(response), 1e-2),
        at_least("erf at finite η: the error over the formula for η → 0", ratio, bound=1.0),
    ]
    measured = {
        "students": settings["students"],
        "η": settings["rate"],
        "error over the formula for η → 0": ratio.tolist(),
    }
    return Measurement(checks, measured)


CLAIM = Claim(
    paper="online",
    id="asymptotic-error",
    where="our derivation; compare Goldt et al. 2019, final errors of students with more neurons than their teachers",
    statement=(
        "Label noise σ leaves soft committee machines (erf, M teachers, M + L students) with a generalisation error "
        "that grows with L: linear in η for small η, and in closed form for linear students."
    ),
    paper_value="as we derive it: erf ε ≈ (ησ²/2π)(L + M/√3) for η → 0; linear ε = ησ²(L + M)/(4 - 2η(L + M))",
    measured_by="Linear response of the equations around the perfect student, and long runs at a finite η.",
    tolerance=1e-3,
    tolerance_reason="The formula is the first order in η, and the rate is 1e-4; runs are beyond first order in σ².",
    quick={"teachers": 2, "students": [2, 3, 4], "noise": 1e-3, "small_rate": 1e-4, "rate": 0.3, "tolerance": 1e-3},
    full={"teachers": 2, "students": [2, 3, 4, 5], "noise": 1e-3, "small_rate": 1e-4, "rate": 0.2, "tolerance": 1e-3},
    measure=_measure,
)
