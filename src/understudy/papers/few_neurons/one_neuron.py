"""Claim `one-neuron`: norm and outgoing weight of the best single neuron, and how far the theorem's range reaches."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from understudy.papers.check import Check, at_least, at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("relu", "softplus", "sigmoid", "tanh")


def _relu(u: float) -> float:
    """h of Eq. 46."""
    return math.sqrt(1 - u * u) + (math.pi - math.acos(u)) * u


class Solutions(NamedTuple):
    """For k teachers and each activation: the solution itself, ‖w‖, a and ‖w‖a."""

    k: np.ndarray
    points: dict[str, list[Any]]
    norm: dict[str, np.ndarray]
    outgoing: dict[str, np.ndarray]
    magnitude: dict[str, np.ndarray]

    @property
    def sigmoid_error(self) -> float:
        """The largest |a/k - 1| for sigmoid."""
        return float(np.abs(self.outgoing["sigmoid"] / self.k - 1).max())

    @property
    def softplus_error(self) -> float:
        """The largest |‖w‖a/√k - 1| for softplus."""
        return float(np.abs(self.magnitude["softplus"] / np.sqrt(self.k) - 1).max())


class Extremes(NamedTuple):
    """Over k, for each β: the largest ‖w‖√k and the least a/k; and how many critical points each β and k has."""

    norm: list[float]
    outgoing: list[float]
    counts: list[int]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    found = _solutions(np.arange(2, 11))
    reached = _over_betas(settings, progress)
    betas, roots = settings["betas"], np.sqrt(found.k)
    notes = (
        "Theorem 3.4 is stated for every β > 0; the later paper proves its Eq. 74 for β ≤ 2 only. For β from "
        f"{min(betas):g} to {max(betas):g} both inequalities were found to hold: Lemma C.3's properties do not change "
        "with β, which only rescales the argument. tanh here is tanh(x), outside both papers' proofs (Eq. 31-34 treat "
        "it as a shifted sigmoid; it is one with argument doubled)."
    )
    data: dict[str, Any] = {
        "k": found.k,
        "betas": np.array(betas),
        "worst_norm": np.array(reached.norm),
        "worst_outgoing": np.array(reached.outgoing),
    }
    for name in NAMES:
        data[f"{name}|norm"], data[f"{name}|outgoing"] = found.norm[name], found.outgoing[name]
    measured = {
        "sigmoid: largest |a/k - 1|": found.sigmoid_error,
        "softplus: largest |‖w‖a/√k - 1|": found.softplus_error,
        "sigmoid: ‖w‖a/√k": [float(x.round(4)) for x in (found.magnitude["sigmoid"] / roots)[[0, -1]]],
        "tanh: ‖w‖a/√k": [float(x.round(4)) for x in (found.magnitude["tanh"] / roots)[[0, -1]]],
        "softplus:β: largest ‖w‖√k": max(reached.norm),
        "softplus:β: least a/k": min(reached.outgoing),
    }
    return Measurement(
        [*_checks_of_relu(found), *_checks_of_smooth(found), *_checks_of_betas(reached)],
        measured,
        data=data,
        notes=notes,
        printed=[
            at_most("sigmoid: a = k exactly, as printed", found.sigmoid_error, bound=1e-9),
            at_most("softplus: ‖w‖a = √k exactly, as printed", found.softplus_error, bound=1e-9),
        ],
        erratum_note=_erratum(found),
    )


def _solutions(ks: np.ndarray) -> Solutions:
    """The best single neuron for each number of teachers."""
    from understudy.theory.one_neuron import one_neuron

    points = {name: [one_neuron(name, int(k)) for k in ks] for name in NAMES}
    norm = {name: np.array([p.norm for p in points[name]]) for name in NAMES}
    outgoing = {name: np.array([p.outgoing for p in points[name]]) for name in NAMES}
    return Solutions(ks, points, norm, outgoing, {name: norm[name] * outgoing[name] for name in NAMES})


def _over_betas(settings: Settings, progress: Progress) -> Extremes:
    """All critical points of one softplus neuron, for each β."""
    from understudy.theory.one_neuron import critical_points

    reached = Extremes([], [], [])
    for beta in progress.over(settings["betas"], "softplus, β ="):
        found = [critical_points(f"softplus:{beta:g}", int(k)) for k in settings["teachers"]]
        reached.counts.extend(len(f) for f in found)
        reached.norm.append(max(p.norm * math.sqrt(p.teachers) for f in found for p in f))
        reached.outgoing.append(min(p.outgoing / p.teachers for f in found for p in f))
    return reached


def _checks_of_relu(found: Solutions) -> list[Check]:
    """Whether magnitude and loss are those of Eq. 15 and 16."""
    h = [_relu(1 / math.sqrt(k)) / _relu(1.0) for k in found.k]
    wanted = found.k * np.array(h)
    # Eq. 46 has h without the 1/2π of Eq. 29: losses of Eq. 16 are in units of 2π.
    losses = [
        (k**2 * (_relu(0.0) - _relu(1 / math.sqrt(k)) ** 2 / _relu(1.0)) + k * (_relu(1.0) - _relu(0.0)))
        / (2 * math.pi)
        for k in found.k
    ]
    return [
        close("relu: ‖w‖a = k h(1/√k)/h(1) (Eq. 15)", wanted, found.magnitude["relu"], 1e-12, relative=True),
        close("relu: loss (Eq. 16, times 1/2π)", losses, [p.loss for p in found.points["relu"]], 1e-12),
    ]


def _checks_of_smooth(found: Solutions) -> list[Check]:
    """Whether the other activations are as in Fig. 2."""
    roots = np.sqrt(found.k)
    norms = [float((found.norm[name] * roots).max()) for name in NAMES[1:]]
    magnitudes = np.concatenate([found.magnitude[name] / roots for name in ("sigmoid", "tanh")])
    return [
        at_most("softplus, sigmoid, tanh: ‖w‖√k ≤ 1", norms, bound=1.0),
        at_least("softplus: a/k ≥ 1", found.outgoing["softplus"] / found.k, bound=1.0),
        at_least("tanh: a/k ≥ 1", found.outgoing["tanh"] / found.k, bound=1.0),
        at_most("sigmoid and tanh: ‖w‖a/√k, just below 1", magnitudes, bound=1.0),
        at_most("sigmoid: a is k to the eye: largest |a/k - 1|", found.sigmoid_error, bound=0.01),
        at_most("softplus: ‖w‖a is √k to the eye: largest |‖w‖a/√k - 1|", found.softplus_error, bound=0.05),
    ]


def _checks_of_betas(reached: Extremes) -> list[Check]:
    """Whether the theorem holds for every β."""
    return [
        equal("softplus:β: critical points found for each β and k", [1], sorted(set(reached.counts))),
        at_most("softplus:β, every β: ‖w‖√k ≤ 1", reached.norm, bound=1.0),
        at_least("softplus:β, every β: a/k ≥ 1", reached.outgoing, bound=1.0),
    ]


def _erratum(found: Solutions) -> str:
    """How far the equalities of the figure hold."""
    return (
        f"Read from a plot, both equalities are approximate: for sigmoid a/k - 1 reaches {found.sigmoid_error:.2g}, "
        f"for softplus ‖w‖a/√k - 1 reaches {found.softplus_error:.2g} for k = 2 … 10. The caption's 'for softplus and "
        "tanh, it is just below √k' must mean sigmoid and tanh. Eq. 16 is in units of 2π: Eq. 46 splits 1/2π off h."
    )


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
