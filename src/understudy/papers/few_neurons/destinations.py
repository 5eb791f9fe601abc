"""Claim `destinations`: where the flow goes from split points of local-I."""

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from understudy.papers.check import Check, at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.few_neurons.four import minima, teacher
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUSH = 1e-3


class Row(NamedTuple):
    """One push: the neuron that was split, the share μ of its first part, the side, the class of the end, its loss."""

    neuron: int
    mu: float
    sign: int
    end: str
    loss: float


def _measure(settings: Settings, progress: Progress) -> Measurement:
    network = minima()["local-I"]
    splits = [(neuron, mu) for neuron in settings["neurons"] for mu in settings["mus"]]
    found = _pushed(network, splits, settings["time"], progress)
    rows = [Row(neuron, mu, d.sign, _class(d), d.loss) for d in found for neuron, mu in [splits[d.origin]]]
    paired = [d.escape for d in found if d.escape is not None and d.escape.pairs]
    kinds = [e.limit_certificate.kind if e.limit_certificate else "not found" for e in paired]
    gaps = _gaps(paired)
    measured: dict[str, Any] = {
        "classes": dict(Counter(r.end for r in rows)),
        "limits at infinity": dict(Counter(kinds)),
        "destinations": {_words(network, r): _sentence(d) for r, d in zip(rows, found, strict=True)},
    }
    if gaps:
        measured["limits that are non-strict saddles: least |w + w'|"] = max(gaps)
    return Measurement(
        [*_checks_of_classes(network, settings["neurons"], rows), *_checks_at_infinity(found, paired, kinds)],
        measured,
        data=_data(network, rows, found),
        notes=_notes(paired, kinds, gaps),
    )


def _pushed(network: Any, splits: list[tuple[int, float]], time: float, progress: Progress) -> list[Any]:
    """Where the flow goes from each split of the network, pushed both ways along the least eigenvector."""
    from understudy.dynamics import FlowOptions
    from understudy.points.destinations import Catalogue, follow_pushes, least_direction
    from understudy.surgery import split
    from understudy.tasks import on_grid

    task = on_grid(teacher(), 5)
    catalogue = Catalogue(task, dict(minima()))
    points = [split(network, {neuron: [mu, 1 - mu]}) for neuron, mu in splits]
    directions = [least_direction(task, point)[1] for point in points]
    options = FlowOptions(max_time=time, rtol=1e-5, atol=1e-5)
    return follow_pushes(
        task, points, directions, size=PUSH, catalogue=catalogue, options=options,
        watch=lambda done, total: progress(done / total, f"{done} of {total} pushes"),
    )  # fmt: skip


def _checks_of_classes(network: Any, neurons: list[int], rows: list[Row]) -> list[Check]:
    """Whether every end has a name, and pushes from splits with μ in (0, 1) end as in Fig. 7b and 7d."""
    from understudy.points.splitting import split_matrices
    from understudy.tasks import on_grid

    narrow = on_grid(teacher(), 4)
    positive = [j for j in neurons if split_matrices(narrow, network, j).scenario == "i"]
    strongest = int(np.argmax(np.asarray(network.outgoing)))
    return [
        equal("pushes that end unconverged or without a name", 0, sum(r.end == "unnamed" for r in rows)),
        equal(
            "splits where Y is positive definite, μ in (0, 1): all pushes stay at symmetry-induced minima (Fig. 7d)",
            ["symmetry-induced minimum"],
            sorted({r.end for r in rows if r.neuron in positive and 0 < r.mu < 1}),
        ),
        equal(
            "splits of a = 1.98, μ in (0, 1): all pushes reach a global minimum (Fig. 7b)",
            ["global minimum"],
            sorted({r.end for r in rows if r.neuron == strongest and 0 < r.mu < 1}),
        ),
    ]


def _checks_at_infinity(found: list[Any], paired: list[Any], kinds: list[str]) -> list[Check]:
    """Whether runs to infinity are pairs whose weights grow like t^¼, and what their limits are."""
    escapes = sum(d.escape is not None for d in found)
    return [
        at_least("runs to infinity, recognised as pairs with outgoing weights of opposite signs", len(paired), bound=1),
        equal("runs to infinity without such a pair", 0, escapes - len(paired)),
        at_most("|rate of the growing weights - ¼|", [abs(e.exponent - 0.25) for e in paired], bound=0.06),
        at_least("tangents |b| at infinity", [min(e.tangents) for e in paired], bound=1e-4),
        equal(
            "limits of the pairs that could be certified: minima of the four-neuron network with a tangent",
            ["minimum"],
            sorted({kind for kind in kinds if kind not in ("not found", "unconverged", "undecided")}),
        ),
        at_most(
            "loss at the limit less the loss at the end of the run",
            [e.limit_loss - d.loss for d in found if (e := d.escape) and e.limit_certificate],
            bound=0.0,
        ),
    ]


def _data(network: Any, rows: list[Row], found: list[Any]) -> dict[str, Any]:
    """One entry per push, and the outgoing weights along the first run to infinity."""
    data = {
        "neuron": np.array([r.neuron for r in rows]),
        "mu": np.array([r.mu for r in rows]),
        "sign": np.array([r.sign for r in rows]),
        "class": np.array([r.end for r in rows]),
        "loss": np.array([r.loss for r in rows]),
        "outgoing": np.asarray(network.outgoing),
    }
    first = next((i for i, d in enumerate(found) if d.escape is not None and d.escape.pairs), None)
    if first is not None:
        run = found[first].trajectory
        kept = run.times > 1e3
        data |= {"times": run.times[kept], "weights": run.snapshots[kept][:, -5:], "which": np.array(first)}
    return data


def _notes(paired: list[Any], kinds: list[str], gaps: list[float]) -> str:
    """What the limits at infinity are."""
    certified = ", ".join(f"{kind} ({count})" for kind, count in Counter(kinds).most_common())
    limits = sorted({float(f"{e.limit_loss:.6g}") for e in paired})
    notes = (
        "Runs to infinity do not end at a four-neuron minimum: the limit keeps a tangent (b·x)σ'(w·x) with b ≠ 0. As "
        f"points of the network with that tangent the limits are certified as {certified} (losses {limits}). Fig. 9a "
        "calls the late snapshot a symmetry-induced minimum of local-II; pushes that reach local-II here stop at "
        "finite weights of opposite signs on its line (Y negative definite). Fig. 7 is on one data set of 10⁵ samples, "
        "this on the population: which sign leads where can differ, the classes do not. Unnamed minima of five neurons "
        "are numbered as met."
    )
    if gaps and max(gaps) < 1e-6:
        notes += (
            f" The limits that are non-strict saddles have two opposite neurons, w + w' = 0 to {max(gaps):.0e}: with "
            "σ(z) - σ(-z) = z a change of length of w' is undone by b and the two outgoing weights to first order, and "
            "r ⟂ (b·x) x σ''(w·x), b ∥ w, leaves no second order: the loss goes like a cubic there. Such a point "
            "attracts from one side."
        )
    return notes


def _gaps(paired: list[Any]) -> list[float]:
    """How near two neurons are to opposite incoming vectors, at each limit that is a non-strict saddle."""
    limits = [
        e.limit for e in paired if e.limit and e.limit_certificate and e.limit_certificate.kind == "non-strict saddle"
    ]
    return [_opposite(np.asarray(limit.network.incoming)) for limit in limits]


def _opposite(incoming: np.ndarray) -> float:
    """How near two neurons are to opposite incoming vectors."""
    sums = np.linalg.norm(incoming[:, None] + incoming[None], axis=-1)
    return float(sums[np.triu_indices(len(incoming), 1)].min())


def _class(d: Any) -> str:
    """The class of a destination."""
    if d.escape is not None:
        return "infinity"
    if d.kind != "minimum":
        return "unnamed"
    if d.name == "global minimum":
        return "global minimum"
    return "symmetry-induced minimum" if d.name in ("local-I", "local-II") else "local minimum"


def _words(network: Any, r: Row) -> str:
    """Which neuron was split, where, and the side of the push."""
    a = float(network.outgoing[r.neuron])
    return f"a = {a:.2f} (neuron {r.neuron}), μ = {r.mu:g}, {'+' if r.sign > 0 else '-'}"


def _sentence(d: Any) -> str:
    """Where a push ended."""
    if d.escape is not None:
        return f"{d.name}: {d.escape.words}"
    outgoing = [round(float(x), 3) for x in np.asarray(d.parameters.outgoing)]
    return f"{d.kind}, {d.name}, loss {d.loss:.6g}, outgoing {outgoing}"


COLOURS = {
    "global minimum": "C0",
    "local minimum": "C1",
    "symmetry-induced minimum": "C2",
    "infinity": "C3",
    "unnamed": "C6",
}
MARKERS = {
    "global minimum": "o",
    "local minimum": "s",
    "symmetry-induced minimum": "X",
    "infinity": "^",
    "unnamed": "*",
}


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    figure.set_size_inches(11.0, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    neurons = sorted({int(j) for j in data["neuron"]})
    shown = set()
    for neuron, mu, sign, name, _loss in zip(
        *(data[k] for k in ("neuron", "mu", "sign", "class", "loss")), strict=True
    ):
        y = neurons.index(int(neuron)) + (0.16 if sign > 0 else -0.16)
        label = str(name) if name not in shown else None
        shown.add(name)
        left.plot(mu, y, MARKERS[str(name)], color=COLOURS[str(name)], ms=8, label=label)
    left.set_yticks(range(len(neurons)), [f"a = {data['outgoing'][j]:.2f}\n(neuron {j})" for j in neurons])
    left.set(
        xlabel="μ of the split",
        title="Destinations of pushes along + (upper) and - (lower)",
        ylim=(-0.6, len(neurons) - 0.1),
    )
    left.legend(fontsize=8, ncols=4, loc="upper center")
    if "times" in data:
        for i in range(5):
            right.semilogx(data["times"], data["weights"][:, i], color=f"C{i}", label=f"a{i}")
        right.set(xlabel="time", ylabel="outgoing weights", title="A run to infinity")
        right.legend(fontsize=8)


CLAIM = Claim(
    paper="few-neurons",
    id="destinations",
    where="Fig. 7, 9, Sec. 4.2",
    statement=(
        "Pushed along ± the least eigenvector, split points of local-I flow to a global minimum, a local minimum, a "
        "symmetry-induced minimum, or off to infinity with outgoing weights that grow in opposite signs."
    ),
    paper_value="four classes; the sign of the push decides",
    measured_by=(
        "Flow from each push; ends certified, named by their function; runs to infinity analysed by pair, rate and "
        "limit."
    ),
    tolerance="exact classes; rate ¼ ± 0.06",
    tolerance_reason=(
        "M ~ t^¼ holds asymptotically; over the last decades M has grown to a few times the other weights only."
    ),
    quick={"neurons": [0, 3], "mus": [-1.0, 0.5], "time": 1e13},
    full={"neurons": [0, 1, 2, 3], "mus": [-1.5, -1.0, -0.5, 0.1, 0.25, 0.5], "time": 1e13},
    measure=_measure,
    figure=_figure,
)
