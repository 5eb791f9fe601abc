"""Claims `bounds` and `spectrum-mu`: the Hessian's spectrum along the line of split points."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.few_neurons.four import minima, split_line, teacher
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ZERO = 1e-10
"""Below this an eigenvalue is zero: those of interest are 1e-7 and larger, and the points critical to 1e-14."""


def _line(neuron: int, mus: np.ndarray, name: str = "local-I") -> dict[str, Any]:
    """Spectrum, bounds and matrices along one line."""
    from understudy.points.splitting import lower_bound, non_trivial, split_matrices
    from understudy.tasks import on_grid

    network = minima()[name]
    matrices = split_matrices(on_grid(teacher(), network.width), network, neuron)
    _, _, hessians = split_line(neuron, np.concatenate([mus, [-1.0, 0.0, 1.0]]), name)
    spectra = np.linalg.eigvalsh(hessians[:-3])
    # The Hessian grows like μ²: its eigenvalues are known to this much.
    rounding = 64 * np.finfo(float).eps * np.abs(spectra).max(axis=1)
    below = lower_bound(*hessians[-3:])
    return {
        "a": float(network.outgoing[neuron]),
        "scenario": matrices.scenario,
        "Y": np.linalg.eigvalsh(matrices.curvature),
        "five": spectra[:, :5],
        "at_zero": np.linalg.eigvalsh(hessians[-2])[:5],
        "least": np.array([non_trivial(s, max(ZERO, r)) for s, r in zip(spectra, rounding, strict=True)]),
        "upper": matrices.upper_bound(mus),
        "lower": below(mus),
        "rounding": rounding,
        "convex": below.least_quadratic,
    }


def _measure_bounds(settings: Settings, progress: Progress) -> Measurement:
    near = np.linspace(-2.0, 0.5, settings["points"])
    far = -np.geomspace(2.5, 100.0, settings["points"] // 2)[::-1]
    mus = np.concatenate([far, near])
    mus = mus[np.abs(mus) > 1e-9]
    data: dict[str, Any] = {"mu": mus}
    above, under, convex, limits = [], [], [], []
    for name in settings["minima"]:
        for neuron in progress.over(range(4), f"{name}, neuron"):
            line = _line(neuron, mus, name)
            above.append(float(np.max(line["least"] - line["upper"] - line["rounding"])))
            under.append(float(np.min(line["five"][:, 0] - line["lower"] + line["rounding"])))
            convex.append(line["convex"])
            limits.append(float(line["least"][0] + 0.5 * line["Y"][-1] - line["rounding"][0]))
            for what in ("five", "least", "upper", "lower"):
                data[f"{name}|{neuron}|{what}"] = line[what]
            data[f"{name}|{neuron}|a"] = np.array(line["a"])
    checks = [
        at_most("least non-trivial eigenvalue above the upper bound of Lemma 4.2", above, bound=0.0),
        at_least("least eigenvalue above the lower bound of App. D.2.1", under, bound=0.0),
        at_least("M_2 is positive semidefinite: least eigenvalue", convex, bound=-1e-12),
        at_most("at μ = -100: least eigenvalue above -½ λ_max(Y)", limits, bound=0.0),
    ]
    measured = {
        "lines": len(above),
        "values of μ": len(mus),
        "closest approach to the upper bound": float(-max(above)),
        "closest approach to the lower bound": float(min(under)),
    }
    notes = "M_1 and M_0 include the blocks between the split neuron and the others, which the paper prints as zero."
    return Measurement(checks, measured, data=data, notes=notes)


def _figure_bounds(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    mu = data["mu"]
    shown = mu >= -2
    figure.set_size_inches(11.0, 6.2)
    axes = figure.subplots(2, 4, sharex=True)
    for neuron in range(4):
        key = f"local-I|{neuron}|"
        top, bottom = axes[:, neuron]
        top.plot(mu[shown], data[key + "least"][shown], color="black", label="measured")
        top.plot(mu[shown], data[key + "upper"][shown], "--", color="C0", label="upper bound")
        top.axhline(0, color="grey", lw=0.6)
        top.set(title=f"a = {float(data[key + 'a']):.2f}")
        top.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)
        bottom.plot(mu[shown], data[key + "five"][shown, 0], color="black", label="least eigenvalue")
        bottom.plot(mu[shown], data[key + "lower"][shown], "-.", color="C1", label="lower bound")
        bottom.set_yscale("symlog", linthresh=1e-6)
        bottom.set(xlabel="μ")
    axes[0, 0].set_ylabel("least non-trivial eigenvalue")
    axes[1, 0].set_ylabel("least eigenvalue\n(linear within ±1e-6)")
    axes[0, 0].legend(fontsize=8)
    axes[1, 0].legend(fontsize=8, loc="center left")
    figure.suptitle("Splits of local-I: the bounds of Lemma 4.2 and of App. D.2.1", fontsize=11)


def _measure_spectrum(settings: Settings, progress: Progress) -> Measurement:
    mus = np.linspace(-1.0, 0.5, settings["points"])
    data: dict[str, Any] = {"mu": mus}
    pattern, expected, scenarios = [], [], []
    triple = []
    for neuron in progress.over(range(4), "neuron"):
        line = _line(neuron, mus)
        five = line["five"]
        index = (five < -ZERO).sum(axis=1)
        left, right = index[mus < -1e-9], index[mus > 1e-9]
        pattern.append([sorted({int(i) for i in left}), sorted({int(i) for i in right})])
        positive = int((line["Y"] > 0).sum())
        expected.append([[positive], [2 - positive]])
        scenarios.append(line["scenario"])
        triple.append(int((np.abs(line["at_zero"]) <= ZERO).sum()))
        data[f"{neuron}|five"], data[f"{neuron}|a"], data[f"{neuron}|Y"] = five, np.array(line["a"]), line["Y"]
    weights = [round(float(data[f"{j}|a"]), 2) for j in range(4)]
    checks = [
        equal("scenarios of a = 1.98, 1.35, 1.35, -0.67", ["iii", "iii", "iii", "i"], scenarios),
        equal("negative eigenvalues for μ < 0 and for μ > 0", expected, pattern),
        equal("negative eigenvalue, a = -0.67: two for μ < 0, none for μ > 0", [[2], [0]], pattern[3]),
        equal("zero eigenvalues at μ = 0", [3, 3, 3, 3], triple),
    ]
    measured = {
        "outgoing weights": weights,
        "eigenvalues of Y": {
            f"neuron {j}, a = {weights[j]}": [float(f"{x:.4g}") for x in data[f"{j}|Y"]] for j in range(4)
        },
    }
    return Measurement(checks, measured, data=data)


def _figure_spectrum(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    figure.set_size_inches(11.0, 3.6)
    axes = figure.subplots(1, 4)
    for neuron, ax in enumerate(axes):
        for mode in range(5):
            ax.plot(data["mu"], data[f"{neuron}|five"][:, mode], color=f"C{mode}", label=f"{mode + 1}")
        ax.axhline(0, color="black", lw=0.6)
        ax.set_yscale("symlog", linthresh=1e-7)
        ax.set(title=f"a = {float(data[f'{neuron}|a']):.2f}", xlabel="μ")
        if neuron:
            ax.tick_params(labelleft=False)
        ax.set_ylim(-1e-4, 1e-4)
    axes[0].set_ylabel("eigenvalue (linear within ±1e-7)")
    axes[3].legend(title="mode", fontsize=8, loc="lower right")
    figure.suptitle("Five least eigenvalues when a neuron of local-I is split", fontsize=11)


CLAIMS = (
    Claim(
        paper="few-neurons",
        id="bounds",
        where="Lemma 4.2, App. D.2, Fig. 6",
        statement=(
            "The least non-trivial eigenvalue at a split point is at most u(μ)λ_min(Y) for μ in (0, 1) and "
            "u(μ)λ_max(Y) outside, and the least one at least λ_min(M_0) + μ λ(M_1)."
        ),
        paper_value="upper and lower bound hold",
        measured_by=(
            "Spectra at split points of every neuron of the local minima, μ from -100 to ½ (1 - μ gives the same "
            "spectrum)."
        ),
        tolerance="64 ε ‖H‖",
        tolerance_reason="Rounding of eigenvalues; the Hessian grows like μ².",
        quick={"points": 41, "minima": ["local-I"]},
        full={"points": 401, "minima": ["local-I", "local-II"]},
        measure=_measure_bounds,
        figure=_figure_bounds,
    ),
    Claim(
        paper="few-neurons",
        id="spectrum-mu",
        where="Fig. 3b-d",
        statement=(
            "Split at a = 1.35 or 1.98, Y has both signs and the Hessian a negative eigenvalue for every μ ≠ 0; split "
            "at a = -0.66, Y is positive "
            "definite: local minima on (0, ½], saddles of index 2 for μ < 0. At μ = 0 zero is a triple eigenvalue."
        ),
        paper_value="b, c: strict saddles; d: minima on (0, 0.5], index 2 for μ < 0; three zeros at μ = 0",
        measured_by="The five least eigenvalues of the Hessian along the line of split points of local-I.",
        tolerance="exact",
        tolerance_reason="Numbers of eigenvalues.",
        quick={"points": 31},
        full={"points": 301},
        measure=_measure_spectrum,
        figure=_figure_spectrum,
    ),
)
