"""Claim `destinations`: where the flow goes from split points of local-I."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.few_neurons.four import minima, teacher
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUSH = 1e-3


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.dynamics import FlowOptions
    from understudy.points.destinations import Catalogue, follow_pushes, least_direction
    from understudy.points.splitting import split_matrices
    from understudy.surgery import split
    from understudy.tasks import on_grid

    network = minima()["local-I"]
    task = on_grid(teacher(), 5)
    narrow = on_grid(teacher(), 4)
    catalogue = Catalogue(task, dict(minima()))
    points, directions, labels, least = [], [], [], []
    for neuron in settings["neurons"]:
        for mu in settings["mus"]:
            point = split(network, {neuron: [mu, 1 - mu]})
            value, direction = least_direction(task, point)
            points.append(point)
            directions.append(direction)
            least.append(value)
            labels.append((neuron, mu))
    options = FlowOptions(max_time=settings["time"], rtol=1e-5, atol=1e-5)
    found = follow_pushes(
        task, points, directions, size=PUSH, catalogue=catalogue, options=options,
        watch=lambda done, total: progress(done / total, f"{done} of {total} pushes"),
    )  # fmt: skip
    table: dict[str, str] = {}
    rows = []
    for d in found:
        neuron, mu = labels[d.origin]
        a = float(network.outgoing[neuron])
        key = f"a = {a:.2f} (neuron {neuron}), μ = {mu:g}, {'+' if d.sign > 0 else '-'}"
        table[key] = _sentence(d)
        rows.append((neuron, mu, d.sign, _class(d), d.loss))
    classes = Counter(r[3] for r in rows)
    escapes = [d.escape for d in found if d.escape is not None]
    paired = [e for e in escapes if e.pairs]
    limit_kinds = [e.limit_certificate.kind if e.limit_certificate else "not found" for e in paired]
    positive = [j for j in settings["neurons"] if split_matrices(narrow, network, j).scenario == "i"]
    strongest = int(np.argmax(np.asarray(network.outgoing)))
    checks = [
        equal("pushes that end unconverged or without a name", 0, classes["unnamed"]),
        equal(
            "splits where Y is positive definite, μ in (0, 1): all pushes stay at symmetry-induced minima (Fig. 7d)",
            ["symmetry-induced minimum"],
            sorted({r[3] for r in rows if r[0] in positive and 0 < r[1] < 1}),
        ),
        equal(
            "splits of a = 1.98, μ in (0, 1): all pushes reach a global minimum (Fig. 7b)",
            ["global minimum"],
            sorted({r[3] for r in rows if r[0] == strongest and 0 < r[1] < 1}),
        ),
        at_least("runs to infinity, recognised as pairs with outgoing weights of opposite signs", len(paired), bound=1),
        equal("runs to infinity without such a pair", 0, len(escapes) - len(paired)),
        at_most("|rate of the growing weights - ¼|", [abs(e.exponent - 0.25) for e in paired], bound=0.06),
        at_least("tangents |b| at infinity", [min(e.tangents) for e in paired], bound=1e-4),
        equal(
            "limits of the pairs that could be certified: minima of the four-neuron network with a tangent",
            ["minimum"],
            sorted({kind for kind in limit_kinds if kind not in ("not found", "unconverged", "undecided")}),
        ),
        at_most(
            "loss at the limit less the loss at the end of the run",
            [e.limit_loss - d.loss for d in found if (e := d.escape) and e.limit_certificate],
            bound=0.0,
        ),
    ]
    data = {
        "neuron": np.array([r[0] for r in rows]),
        "mu": np.array([r[1] for r in rows]),
        "sign": np.array([r[2] for r in rows]),
        "class": np.array([r[3] for r in rows]),
        "loss": np.array([r[4] for r in rows]),
        "outgoing": np.asarray(network.outgoing),
    }
    for i, d in enumerate(found):
        if d.escape is not None and d.escape.pairs and "times" not in data:
            kept = d.trajectory.times > 1e3
            data["times"] = d.trajectory.times[kept]
            data["weights"] = d.trajectory.snapshots[kept][:, -5:]
            data["which"] = np.array(i)
    certified = ", ".join(f"{kind} ({count})" for kind, count in Counter(limit_kinds).most_common())
    limits = sorted({float(f"{e.limit_loss:.6g}") for e in paired})
    saddles = [
        e.limit for e in paired if e.limit and e.limit_certificate and e.limit_certificate.kind == "non-strict saddle"
    ]
    gaps = [_opposite(np.asarray(limit.network.incoming)) for limit in saddles]
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
    measured: dict[str, Any] = {
        "classes": dict(classes),
        "limits at infinity": dict(Counter(limit_kinds)),
        "destinations": table,
    }
    if gaps:
        measured["limits that are non-strict saddles: least |w + w'|"] = max(gaps)
    return Measurement(
        checks,
        measured,
        data=data,
        notes=notes,
    )


def _opposite(incoming: np.ndarray) -> float:
    """How near two neurons are to opposite incoming vectors."""
    sums = np.linalg.norm(incoming[:, None] + incoming[None], axis=-1)
    return float(sums[np.triu_indices(len(incoming), 1)].min())


def _class(d: Any) -> str:
    if d.escape is not None:
        return "infinity"
    if d.kind != "minimum":
        return "unnamed"
    if d.name == "global minimum":
        return "global minimum"
    return "symmetry-induced minimum" if d.name in ("local-I", "local-II") else "local minimum"


def _sentence(d: Any) -> str:
    if d.escape is not None:
        return f"{d.name}: {d.escape.words}"
    return f"{d.kind}, {d.name}, loss {d.loss:.6g}, outgoing {[round(float(x), 3) for x in np.asarray(d.parameters.outgoing)]}"


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
