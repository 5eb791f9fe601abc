"""Claim `one-neuron`: norm and outgoing weight of the best single neuron, and how far the theorem's range reaches."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("relu", "softplus", "sigmoid", "tanh")


def _relu(u: float) -> float:
    """h of Eq. 46."""
    return math.sqrt(1 - u * u) + (math.pi - math.acos(u)) * u


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory.one_neuron import critical_points, one_neuron

    ks = np.arange(2, 11)
    roots = np.sqrt(ks)
    points = {name: [one_neuron(name, int(k)) for k in ks] for name in NAMES}
    norm = {name: np.array([p.norm for p in points[name]]) for name in NAMES}
    outgoing = {name: np.array([p.outgoing for p in points[name]]) for name in NAMES}
    magnitude = {name: norm[name] * outgoing[name] for name in NAMES}
    h = [_relu(1 / math.sqrt(k)) / _relu(1.0) for k in ks]
    wanted = ks * np.array(h)
    # Eq. 46 has h without the 1/2π of Eq. 29: losses of Eq. 16 are in units of 2π.
    losses = [
        (k**2 * (_relu(0.0) - _relu(1 / math.sqrt(k)) ** 2 / _relu(1.0)) + k * (_relu(1.0) - _relu(0.0)))
        / (2 * math.pi)
        for k in ks
    ]
    checks = [
        close("relu: ‖w‖a = k h(1/√k)/h(1) (Eq. 15)", wanted, magnitude["relu"], 1e-12, relative=True),
        close("relu: loss (Eq. 16, times 1/2π)", losses, [p.loss for p in points["relu"]], 1e-12),
        at_most("softplus, sigmoid, tanh: ‖w‖√k ≤ 1", [float((norm[n] * roots).max()) for n in NAMES[1:]], bound=1.0),
        at_least("softplus: a/k ≥ 1", outgoing["softplus"] / ks, bound=1.0),
        at_least("tanh: a/k ≥ 1", outgoing["tanh"] / ks, bound=1.0),
        at_most(
            "sigmoid and tanh: ‖w‖a/√k, just below 1",
            np.concatenate([magnitude[n] / roots for n in ("sigmoid", "tanh")]),
            bound=1.0,
        ),
    ]
    sigmoid = float(np.abs(outgoing["sigmoid"] / ks - 1).max())
    softplus = float(np.abs(magnitude["softplus"] / roots - 1).max())
    checks += [
        at_most("sigmoid: a is k to the eye: largest |a/k - 1|", sigmoid, bound=0.01),
        at_most("softplus: ‖w‖a is √k to the eye: largest |‖w‖a/√k - 1|", softplus, bound=0.05),
    ]
    printed = [
        at_most("sigmoid: a = k exactly, as printed", sigmoid, bound=1e-9),
        at_most("softplus: ‖w‖a = √k exactly, as printed", softplus, bound=1e-9),
    ]
    betas, worst_norm, worst_outgoing, counts = settings["betas"], [], [], []
    for beta in progress.over(betas, "softplus, β ="):
        found = [critical_points(f"softplus:{beta:g}", int(k)) for k in settings["teachers"]]
        counts += [len(f) for f in found]
        worst_norm.append(max(p.norm * math.sqrt(p.teachers) for f in found for p in f))
        worst_outgoing.append(min(p.outgoing / p.teachers for f in found for p in f))
    checks += [
        equal("softplus:β: critical points found for each β and k", [1], sorted(set(counts))),
        at_most("softplus:β, every β: ‖w‖√k ≤ 1", worst_norm, bound=1.0),
        at_least("softplus:β, every β: a/k ≥ 1", worst_outgoing, bound=1.0),
    ]
    note = (
        f"Read from a plot, both equalities are approximate: for sigmoid a/k - 1 reaches {sigmoid:.2g}, for softplus "
        f"‖w‖a/√k - 1 reaches {softplus:.2g} for k = 2 … 10. The caption's 'for softplus and tanh, it is just below "
        "√k' must mean sigmoid and tanh. Eq. 16 is in units of 2π: Eq. 46 splits 1/2π off h."
    )
    notes = (
        "Theorem 3.4 is stated for every β > 0; the later paper proves its Eq. 74 for β ≤ 2 only. For β from "
        f"{min(betas):g} to {max(betas):g} both inequalities were found to hold: Lemma C.3's properties do not change "
        "with β, which only rescales the argument. tanh here is tanh(x), outside both papers' proofs (Eq. 31-34 treat "
        "it as a shifted sigmoid; it is one with argument doubled)."
    )
    data: dict[str, Any] = {
        "k": ks,
        "betas": np.array(betas),
        "worst_norm": np.array(worst_norm),
        "worst_outgoing": np.array(worst_outgoing),
    }
    for name in NAMES:
        data[f"{name}|norm"], data[f"{name}|outgoing"] = norm[name], outgoing[name]
    measured = {
        "sigmoid: largest |a/k - 1|": sigmoid,
        "softplus: largest |‖w‖a/√k - 1|": softplus,
        "sigmoid: ‖w‖a/√k": [float(x.round(4)) for x in (magnitude["sigmoid"] / roots)[[0, -1]]],
        "tanh: ‖w‖a/√k": [float(x.round(4)) for x in (magnitude["tanh"] / roots)[[0, -1]]],
        "softplus:β: largest ‖w‖√k": max(worst_norm),
        "softplus:β: least a/k": min(worst_outgoing),
    }
    return Measurement(checks, measured, data=data, notes=notes, printed=printed, erratum_note=note)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    k = data["k"]
    figure.set_size_inches(11.0, 3.4)
    axes = figure.subplots(1, 4)
    for i, name in enumerate(NAMES):
        r, a = data[f"{name}|norm"], data[f"{name}|outgoing"]
        axes[0].plot(k, r * a, "o-", ms=3, color=f"C{i}", label=name)
        if name != "relu":
            axes[1].plot(k, r, "o-", ms=3, color=f"C{i}", label=name)
            axes[2].plot(k, a, "o-", ms=3, color=f"C{i}", label=name)
    axes[0].plot(k, np.sqrt(k), "k:", label="√k")
    axes[1].plot(k, 1 / np.sqrt(k), "k:", label="1/√k")
    axes[2].plot(k, k, "k:", label="k")
    axes[3].semilogx(data["betas"], data["worst_norm"], "o-", label="largest ‖w‖√k")
    axes[3].semilogx(data["betas"], data["worst_outgoing"], "s-", color="C1", label="least a/k")
    axes[3].axhline(1, color="black", ls=":")
    axes[3].minorticks_off()
    axes[3].set_xticks([b for b in (0.1, 0.2, 0.5, 1, 2, 4, 8) if data["betas"].min() <= b <= data["betas"].max()])
    axes[3].xaxis.set_major_formatter("{x:g}")
    for ax, x, y in zip(
        axes, ["teachers k"] * 3 + ["softplus: β"], ["‖w‖a", "‖w‖", "a", "bounds of Thm 3.4"], strict=True
    ):
        ax.set(xlabel=x, ylabel=y)
        ax.legend(fontsize=7.5)


CLAIM = Claim(
    paper="few-neurons",
    id="one-neuron",
    where="Thm 3.2-3.4, Fig. 2",
    statement=(
        "One neuron and k orthonormal teachers: ‖w‖a = k h(1/√k)/h(1) for ReLU; ‖w‖ ≤ 1/√k and a ≥ k for softplus with "
        "every β > 0, and as seen in simulations for tanh; for sigmoid a = k, for softplus ‖w‖a = √k exactly."
    ),
    paper_value={"softplus": "‖w‖ ≤ 1/√k, a ≥ k, ‖w‖a = √k", "sigmoid": "a = k", "relu": "‖w‖a = k h(u)/h(1)"},
    measured_by=(
        "The one-neuron solver (zeros of the radial derivative) for k = 2 … 10, and for softplus over a range of β."
    ),
    tolerance="1e-12 (ReLU); inequalities",
    tolerance_reason="Solved to rounding.",
    quick={"betas": [0.2, 1.0, 2.0, 4.0], "teachers": [2, 4, 10]},
    full={"betas": [0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0], "teachers": [2, 3, 4, 5, 6, 7, 8, 9, 10]},
    measure=_measure,
    figure=_figure,
)
