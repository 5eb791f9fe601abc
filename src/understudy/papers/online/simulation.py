"""Claim `large-dimension`: simulations of one-pass SGD approach the equations as the dimension grows."""

import numpy as np

from understudy.papers.check import close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.online import Overlaps

    online = us.Online(us.Population(us.Teacher.orthonormal(2), width=2, outgoing=1.0), 1.0, noise=0.1)
    start = Overlaps([[0.3, 0.1], [0.1, 0.4]], [[0.3, 0.1], [0.0, 0.2]], [1.0, 1.0])
    times = np.array([1.0, 2.0, 5.0, 10.0])
    run, distances = online.run(start, times), []
    for dim in progress.over(settings["dims"], "d ="):
        simulated = online.simulate(start, times, dim=dim, seeds=settings["seeds"])
        gaps = (simulated.student_overlaps - run.student_overlaps, simulated.teacher_overlaps - run.teacher_overlaps)
        distances.append(float(np.sqrt(np.mean([np.mean(gap**2) for gap in gaps]))))
    slope = float(np.polyfit(np.log(settings["dims"]), np.log(distances), 1)[0])
    checks = [close("exponent of the distance in d", -0.5, slope, settings["tolerance"])]
    return Measurement(checks, {"d": settings["dims"], "root mean square distance": distances, "exponent": slope})


CLAIM = Claim(
    paper="online",
    id="large-dimension",
    where="the limit d → ∞ of Saad and Solla 1995, proved by Goldt et al. 2019; the exponent is our expectation",
    statement="Overlaps of one-pass SGD concentrate on the solution of the order-parameter equations as d grows.",
    paper_value="the equations are exact for d → ∞; deviations of order d^(-½), as we expect",
    measured_by=(
        "Root mean square distance of simulated overlaps from the equations' over seeds, times and entries, fitted in "
        "d."
    ),
    tolerance=0.1,
    tolerance_reason="The mean square over 24 seeds is known to about a tenth at each of four dimensions.",
    quick={"dims": [50, 100, 200, 400], "seeds": 24, "tolerance": 0.15},
    full={"dims": [100, 300, 1000, 3000], "seeds": 24, "tolerance": 0.1},
    measure=_measure,
)
