"""Claim `dynamics`: the ratio law of winners that take all, and how long a student turned away needs."""

from __future__ import annotations

from typing import Any, NamedTuple

from understudy.papers.check import Check, at_least, at_most, close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

ENOUGH = 1.0  # radians: where a student counts as on its way
SIZES = (0.1, 0.01, 0.001)  # of the starts with a common residue


def _integrate(field: Any, start: Any, times: Any) -> Any:
    """Solution of ẇ = field(w) at these times, (times, n, d)."""
    import numpy as np
    from scipy.integrate import solve_ivp

    shape = np.shape(start)
    found = solve_ivp(
        lambda _, w: np.ravel(field(w.reshape(shape))),
        (times[0], times[-1]),
        np.ravel(start),
        method="DOP853",
        t_eval=times,
        rtol=1e-11,
        atol=1e-13,
    )
    return found.y.T.reshape(len(times), *shape)


def _ratio_law(settings: Settings) -> list[float]:
    """d/dt ln(‖w_k‖/‖w_k'‖) against w̄_k·r_k - w̄_k'·r_k', both integrated along the flow ẇ_k = ‖w_k‖ r_k of Eq. 8."""
    import numpy as np

    from understudy.papers.alignment.attraction_field import per_node_residue

    deviations = []
    for seed in range(settings["flows"]):
        rng = np.random.default_rng(seed)
        n, m, d = 4, 3, 5
        teachers, alpha, beta = rng.normal(size=(m, d)), rng.uniform(0, 1, (m, n)), rng.uniform(0, 0.5, (n, n))

        def residue(w: Any, t: Any = teachers, a: Any = alpha, b: Any = beta) -> Any:
            return per_node_residue(w, t, a, b, nu=0.1)

        def both(state: Any, residue: Any = residue) -> Any:
            w = state[:, :-1]  # the last column integrates w̄_k·r_k
            r, lengths = residue(w), np.linalg.norm(w, axis=1, keepdims=True)
            return np.concatenate([lengths * r, np.sum(w / lengths * r, axis=1, keepdims=True)], axis=1)

        start = np.concatenate([0.3 * rng.normal(size=(n, d)), np.zeros((n, 1))], axis=1)
        states = _integrate(both, start, np.linspace(0, 5, 21))
        logs = np.log(np.linalg.norm(states[:, :, :-1], axis=2))
        law = (logs - logs[:, :1]) - (logs[0] - logs[0, :1]) - (states[:, :, -1] - states[:, :1, -1])
        deviations.append(float(np.max(np.abs(law))))
    return deviations


def _common_residue(extra: float, size: float = 0.1) -> tuple[Any, Any, Any]:
    """r_k = w* - Σ c w with `extra` w* more for the first, from weights of that size: times, norms, and cosines with
    w*.
    """
    import numpy as np

    rng = np.random.default_rng(7)
    target, weights = np.array([1.0, 0.0, 0.0]), np.array([0.4, 0.3, 0.3])
    more = np.array([extra, 0.0, 0.0])

    def field(w: Any) -> Any:
        r = target - weights @ w + more[:, None] * target
        return np.linalg.norm(w, axis=1, keepdims=True) * r

    times = np.linspace(0, 60, 121)
    found = _integrate(field, size * rng.normal(size=(3, 3)), times)
    norms = np.linalg.norm(found, axis=2)
    return times, norms, found[:, :, 0] / norms


def _turning_time(gap: float, *, factor: bool) -> float:
    """Time of one student from angle π - gap to `ENOUGH`, one unit teacher: ẇ = ‖w‖ r with r = ψ(θ)w* (Eq. 8), or
    gradient flow itself.
    """
    import numpy as np
    from scipy.integrate import solve_ivp

    from understudy.papers.alignment.attraction_field import angle, attraction

    teacher = np.array([1.0, 0.0])

    def field(_: float, w: Any) -> Any:
        if factor:  # ν is chosen to keep the length; it does not turn the student
            r = (np.pi - angle(teacher, w)) / (2 * np.pi) * teacher
            return np.linalg.norm(w) * (r - (r @ w) * w / (w @ w))
        return attraction(teacher, w) - 0.5 * w  # E[x z (f* - f)]; E[x z f_k] = w_k/2

    def arrived(_: float, w: Any) -> float:
        return angle(teacher, w) - ENOUGH

    arrived.terminal = True  # type: ignore[attr-defined]
    start = np.array([np.cos(np.pi - gap), np.sin(np.pi - gap)])
    found = solve_ivp(field, (0, 1e9), start, method="DOP853", events=arrived, rtol=1e-9, atol=1e-14)
    return float(found.t_events[0][0])


class _Residues(NamedTuple):
    """Students with a common residue, and with a little more for one of them."""

    times: Any
    equal: Any  # norms
    cosines: Any  # with w* at the end
    apart: Any  # largest 1 - cosine at the end, by size of the start
    change: Any  # of ln ratios of norms in the second half
    broken: Any  # norms with a little more for one
    speeds: Any  # of the growth of its ratio in the second half


def _common_residues() -> _Residues:
    """Integrate students with a common residue from starts of all sizes, and with 2 % more for one."""
    import numpy as np

    times, equal, cosines = _common_residue(0.0)
    apart = np.array([np.max(1 - _common_residue(0.0, size)[2][-1]) for size in SIZES])
    _, broken, _ = _common_residue(0.02)
    ratio = np.log(broken[:, 0] / broken[:, 1])
    later = times >= times[-1] / 2
    change = np.ptp(np.log(equal[later] / equal[later][:, :1]), axis=0)
    speeds = np.diff(ratio[later]) / np.diff(times[later])  # d ln(ratio)/dt: constant for exponential growth
    return _Residues(times, equal, cosines[-1], apart, change, broken, speeds)


def _checks_of_residues(found: _Residues) -> list[Check]:
    """How far students with a common residue align, and that a winner takes all."""
    return [
        close(
            "common residue: 1 - cosine with w* at the end, starts ten times smaller",
            0.01,
            found.apart[1:] / found.apart[:-1],
            0.1,
            relative=True,
        ),
        at_most("common residue: late change of ln ratios", found.change, bound=1e-6),
        at_least("a little more for one: its ratio grows, rate at the end", found.speeds.min(), bound=1e-3),
    ]


class _Times(NamedTuple):
    """How long a student needs from angle π - gap: by Eq. 10, by its dynamics, and in gradient flow."""

    gaps: Any
    formula: Any
    simulated: Any
    flow: Any


def _turning_times(gaps: Any) -> _Times:
    """The times of students turned away, by all three ways."""
    import numpy as np

    from understudy.papers.alignment.attraction_field import alignment_time

    return _Times(
        gaps,
        np.array([alignment_time(np.pi - e, ENOUGH) for e in gaps]),
        np.array([_turning_time(e, factor=True) for e in gaps]),
        np.array([_turning_time(e, factor=False) for e in gaps]),
    )


def _exponent(gaps: Any, times: Any) -> float:
    """The exponent of the gap in the time, from the last three."""
    import numpy as np

    return float(np.polyfit(np.log(gaps[-3:]), np.log(times[-3:]), 1)[0])


def _checks_of_times(found: _Times, slope: float) -> list[Check]:
    """Eq. 10 against its dynamics and its limit, and the time in gradient flow."""
    import numpy as np

    gaps, formula, flow = found.gaps, found.formula, found.flow
    return [
        close("Eq. 10: time from π - ε, integral against the dynamics", formula, found.simulated, 1e-4, relative=True),
        close("Eq. 10: exponent of ε in the time", -1.0, slope, 0.02),
        close("Eq. 10: ε times the time, against 2π", 2 * np.pi, float(formula[-1] * gaps[-1]), 0.02, relative=True),
        close(
            "gradient flow: time grows by 2 ln of the gaps' ratio",
            2 * np.log(gaps[-2] / gaps[-1]),
            float(flow[-1] - flow[-2]),
            0.05,
            relative=True,
        ),
    ]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    progress(0.0, "ratio law")
    law = _ratio_law(settings)
    progress(0.3, "common residue")
    residues = _common_residues()
    progress(0.5, "turned away")
    times = _turning_times(np.array(settings["gaps"]))
    slope, flow_slope = (_exponent(times.gaps, found) for found in (times.formula, times.flow))
    checks = [
        at_most("Thm 7: ln of the ratio of norms against the integrated law", law, bound=1e-8),
        *_checks_of_residues(residues),
        *_checks_of_times(times, slope),
    ]
    printed = [
        close("gradient flow of one student: exponent of ε in the time", -1.0, flow_slope, 0.1),
        at_least("common residue: cosines with w* at the end", residues.cosines, bound=1 - 1e-6),
    ]
    measured = {
        "exponent by Eq. 10": slope,
        "exponent in gradient flow": flow_slope,
        "times by Eq. 10": [float(t) for t in times.formula],
        "times in gradient flow": [float(t) for t in times.flow],
        "growth rate of the winner": float(residues.speeds.mean()),
        "common residue: largest 1 - cosine at the end, by size of the start": dict(
            zip(map(str, SIZES), residues.apart.tolist(), strict=True)
        ),
    }
    return Measurement(
        checks,
        measured,
        times._asdict() | {"times": residues.times, "broken": residues.broken, "equal": residues.equal},
        printed=printed,
        erratum_note=(
            "Thm 7 and Eq. 9-10 hold for the dynamics ẇ_k = ‖w_k‖ r_k, that of both layers trained from a balanced "
            "start. With the outgoing weight held at 1 the time from π - ε grows like 2 ln(1/ε); see both-layers. With "
            "a common residue students come closer to w* but do not align with it: r falls like exp(-∫S), and all "
            "directions stop where r vanishes, by Eq. 68-69 themselves. What is left of 1 - cos falls with the square "
            "of the size of the start."
        ),
    )


def _figure(measurement: Measurement, figure: Any) -> None:
    from understudy.plots.style import COLOURS

    data = measurement.data
    left, right = figure.subplots(1, 2)
    left.semilogy(data["times"], data["equal"][:, 0] / data["equal"][:, 1], color=COLOURS[0], label="equal residues")
    left.semilogy(
        data["times"], data["broken"][:, 0] / data["broken"][:, 1], color=COLOURS[1], label="2 % more for one"
    )
    left.set(xlabel="time", ylabel=r"$\|w_1\| / \|w_2\|$", title="Winner takes all")
    left.legend(fontsize=9)
    right.loglog(data["gaps"], data["formula"], color=COLOURS[0], label="Eq. 10")
    right.loglog(data["gaps"], data["simulated"], "o", color=COLOURS[0], label="its dynamics")
    right.loglog(data["gaps"], data["flow"], "s-", color=COLOURS[1], label="gradient flow")
    right.set(
        xlabel=r"$\varepsilon$, start at angle $\pi-\varepsilon$", ylabel="time to turn", title="A student turned away"
    )
    right.legend(fontsize=9)


CLAIM = Claim(
    paper="alignment",
    id="dynamics",
    where="Thm 7, Eq. 8-10, App. 9.15",
    statement=(
        "d/dt ln(‖w_k‖/‖w_k'‖) = w̄_k·r_k - w̄_k'·r_k'; with a common residue all students align and keep their "
        "ratios, with a little more for one its ratio grows exponentially; the time from angle π - ε grows like 1/ε."
    ),
    paper_value={"time from π - ε": "~ 1/ε"},
    measured_by=(
        "Eq. 8 integrated to 1e-11; Eq. 10 by quadrature and by its dynamics; the exact gradient flow of one student "
        "and one teacher."
    ),
    tolerance="1e-8 on the law; 2 % on the exponent",
    tolerance_reason="Tolerances of the integrator; the next term of the time is of relative order ε ln(1/ε).",
    quick={"flows": 3, "gaps": [0.1, 0.03, 0.01, 0.003, 0.001]},
    full={"flows": 20, "gaps": [0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001]},
    measure=_measure,
    figure=_figure,
)
