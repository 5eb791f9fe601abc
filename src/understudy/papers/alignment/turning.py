"""Claims `both-layers` and `near-opposite`: how long a student turned away needs when both layers learn, and Lemma 5
near the angle π.
"""

from typing import Any

from understudy.papers.check import at_most, close, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

ENOUGH = 1.0  # radians: where a student counts as on its way
STARTS = {"balanced": 1.0, "v₀ = 2‖w₀‖": 2.0, "v₀ = ½‖w₀‖": 0.5}


def _turning_time(gap: float, outgoing: float, *, frozen: bool = False) -> tuple[float, float]:
    """Time of gradient flow of v σ(w·x) towards σ(w*·x) from angle π - gap to `ENOUGH`, and the change of ‖w‖² - v².

    The state is (ln ‖w‖, θ, v): d ln‖w‖ = v[w̄·A/‖w‖ - v/2], dθ = -v |A_⊥|/‖w‖, dv = w·A - v‖w‖²/2, with A the
    attraction.
    """
    import numpy as np
    from scipy.integrate import solve_ivp

    def field(_: float, state: Any) -> list[float]:
        length, angle, v = np.exp(state[0]), state[1], state[2]
        # A = [(π - θ) w* + sin θ w̄]/2π; its parts along w̄ and across, towards w*.
        along = ((np.pi - angle) * np.cos(angle) + np.sin(angle)) / (2 * np.pi)
        across = (np.pi - angle) * np.sin(angle) / (2 * np.pi)
        return [
            v * (along / length - v / 2),
            -v * across / length,
            0.0 if frozen else length * along - v * length**2 / 2,
        ]

    def arrived(_: float, state: Any) -> float:
        return state[1] - ENOUGH

    arrived.terminal = True  # type: ignore[attr-defined]
    start = [0.0, np.pi - gap, outgoing]
    found = solve_ivp(field, (0, 1e15), start, method="LSODA", events=arrived, rtol=1e-10, atol=1e-13)
    squares = np.exp(2 * found.y[0]) - found.y[2] ** 2
    return float(found.t_events[0][0]), float(np.max(np.abs(squares - squares[0])))


def _exponent(gaps: Any, times: Any) -> float:
    import numpy as np

    return float(np.polyfit(np.log(gaps[-3:]), np.log(times[-3:]), 1)[0])


def _measure_both(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.papers.alignment.attraction_field import alignment_time

    gaps = np.array(settings["gaps"])
    times, drifts = {}, []
    for name, outgoing in progress.over(STARTS.items()):
        found = [_turning_time(gap, outgoing) for gap in gaps]
        times[name] = np.array([time for time, _ in found])
        drifts += [drift for _, drift in found]
    frozen = np.array([_turning_time(gap, 1.0, frozen=True)[0] for gap in gaps])
    equation = np.array([alignment_time(np.pi - gap, ENOUGH) for gap in gaps])
    exponents = {name: _exponent(gaps, found) for name, found in times.items()}
    per_log = np.diff(frozen) / np.diff(np.log(1 / gaps))
    longer = STARTS["v₀ = 2‖w₀‖"]
    per_log_longer = np.diff(times["v₀ = 2‖w₀‖"]) / np.diff(np.log(1 / gaps))
    return Measurement(
        checks=[
            at_most("both layers: change of ‖w‖² - v² along the flow", drifts, bound=1e-6),
            close("balanced start: time against Eq. 10", equation, times["balanced"], 1e-4, relative=True),
            close("balanced start: exponent of ε in the time", -1.0, exponents["balanced"], 0.05),
            close("outgoing weight held: time per ln(1/ε), least gaps", 2.0, float(per_log[-1]), 0.1),
            close(
                "v₀ = 2‖w₀‖: time per ln(1/ε), least gaps, against 2/(v₀² - ‖w₀‖²)",
                2 / (longer**2 - 1),
                float(per_log_longer[-1]),
                0.02,
            ),
            close("v₀ = ½‖w₀‖: exponent of ε in the time", -4.0, exponents["v₀ = ½‖w₀‖"], 0.05),
        ],
        measured={
            "exponents": {**exponents, "held": _exponent(gaps, frozen)},
            "time per ln(1/ε), outgoing weight held and v₀ = 2‖w₀‖": [float(per_log[-1]), float(per_log_longer[-1])],
        },
        notes=(
            "‖w‖² - v² is conserved. From a balanced start v = ‖w‖ all along, and the flow is Eq. 10. With a longer v "
            "the student shrinks like exp(-(v₀² - ‖w₀‖²) t/2) and turns quickly; with a shorter one v becomes small "
            "and the student hardly turns. The numbers are for ‖w₀‖ = 1. The two last rules were inequalities before "
            "(exponents of at least -0.5 and at most -1.5)."
        ),
    )


BOTH_LAYERS = Claim(
    paper="alignment",
    id="both-layers",
    where="Eq. 8-10, Sec. 5.2",
    statement="A student turned away by π - ε needs a time like 1/ε to align.",
    paper_value={"time from π - ε": "~ 1/ε"},
    measured_by=(
        "Gradient flow of one ReLU student with both layers trained, from balanced and unbalanced starts, integrated "
        "in polar coordinates."
    ),
    tolerance="1e-4 relative; exponents 0.05; times per ln(1/ε) 0.1 and 0.02",
    tolerance_reason="The integrator's tolerance, and a power law read off a decade of gaps.",
    quick={"gaps": [0.1, 0.03, 0.01]},
    full={"gaps": [0.3, 0.1, 0.03, 0.01, 0.003]},
    measure=_measure_both,
)


def _measure_opposite(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    epsilon, first, delta, radius, bias = (settings[n] for n in ("epsilon", "epsilon_0", "delta", "radius", "bias"))
    # Node 1 has its boundary at x_1 = -bias, node 2 faces the other way and is turned by η = ε. |c_1| = 1.
    eta, dim, nodes = epsilon, 2, 2
    second = -np.array([np.cos(eta), np.sin(eta)])
    points = np.stack([np.full(2001, -bias), np.linspace(-radius, radius, 2001)], axis=1)
    m = 10 * first**delta / radius * np.sqrt(dim / (2 * np.pi))
    m2 = 2 * np.hypot(bias, radius) * m * nodes * first**delta + 5 * first ** (2 * delta)
    angle_bound, bias_bound = m * nodes * epsilon ** (1 - delta), m2 * epsilon ** (1 - 2 * delta)
    farthest = float(np.max(np.abs(points @ second - bias)))
    apart, apart_signed = 2 * bias, 0.0  # |b_2 - b_1| and |b_2 + b_1| for b_2 = -b_1
    first_holds = bool(np.sin(eta) <= angle_bound and apart <= bias_bound)
    second_holds = bool(farthest > 5 * epsilon)
    evidence = {
        "|b' - b|": apart,
        "its bound": bias_bound,
        "largest |w'·x| on the boundary": farthest,
        "5ε": 5 * epsilon,
    }
    return Measurement(
        checks=[
            at_most("sin of the angle over its bound", np.sin(eta) / angle_bound, bound=1.0),
            at_most(
                "|b' + b|, the biases of nodes that face opposite ways, over its bound",
                apart_signed / bias_bound,
                bound=1.0,
            ),
        ],
        measured=evidence,
        printed=[holds("Lemma 5: alternative (1) or (2)", first_holds or second_holds, evidence)],
        erratum_note=(
            "For w' near -w neither alternative holds: the proof uses 2 sin(θ/2) ≤ 2 sin θ, which fails near π. With "
            "biases compared up to the sign of w·w' alternative (1) holds."
        ),
    )


NEAR_OPPOSITE = Claim(
    paper="alignment",
    id="near-opposite",
    where="Lemma 5",
    statement=(
        "A node either has another one nearly on its boundary, with nearly its bias, or a point of its boundary that "
        "is far from all others."
    ),
    paper_value="(1) or (2)",
    measured_by=(
        "Two nodes in the plane that face opposite ways on nearly the same line, with the lemma's own constants."
    ),
    tolerance="none",
    tolerance_reason="Inequalities, evaluated; the margins are factors of five and more.",
    quick={"epsilon": 1e-4, "epsilon_0": 0.01, "delta": 0.1, "radius": 1.0, "bias": 0.5},
    full={"epsilon": 1e-4, "epsilon_0": 0.01, "delta": 0.1, "radius": 1.0, "bias": 0.5},
    measure=_measure_opposite,
)
