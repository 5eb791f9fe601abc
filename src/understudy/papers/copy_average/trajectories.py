"""Claim `trajectories`: order parameters along the flow, Figures 1, 7 and 8."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _follow(n: int, k: int, seeds: list[int], points: int) -> list[tuple[Any, ...]]:
    """Of each seed: (run, times, norms, correlations, outgoing weights) along it, the end included."""
    import understudy as us
    from understudy.dynamics import FlowOptions
    from understudy.tasks import order_parameters

    task = us.Population(us.Teacher.orthonormal(k, dim=k + 1), width=n)
    options = FlowOptions(snapshots=tuple(np.geomspace(0.05, 1e7, points).tolist()))
    found = []
    for run in us.fit(task, seeds=seeds, options=options):
        kept = np.concatenate([run.trajectory.snapshots, run.trajectory.vector[None]])
        times = np.append(run.trajectory.times, run.trajectory.time * 1.2)
        order = order_parameters(run.flow_task, run.flow_task.unflatten(kept))
        norms, correlations, outgoing = (np.asarray(x) for x in (order.norms, order.student_teacher, order.outgoing))
        found.append((run, times, norms, correlations, outgoing))
    return found


def _phases(u: np.ndarray) -> dict[str, Any]:
    """What the correlations u (times, n, k) of one run show of the three phases."""
    _, n, k = u.shape
    # Phase 1: every student is close to the average of all teachers, w ∥ Σ_j v_j, before it specialises.
    alignment = np.abs(u.sum(axis=2)) / np.sqrt(k)
    average = int(np.argmin(np.abs(u[-1]).max(axis=1)))
    copied = [int(np.argmax(np.abs(u[-1, i]))) for i in range(n) if i != average]
    first = int(alignment.mean(axis=1).argmax())
    # Phase 2 is looked for from phase 1 on: at its random start a student can be against any teacher.
    against = np.sign(u[-1, average].sum()) * u[first:, average][:, copied]
    rest = [j for j in range(k) if j not in copied]
    return {
        "least": float(alignment.min(axis=1).max()),
        "mean": float(alignment.mean(axis=1).max()),
        "later": int(against.min(axis=1).argmin()),
        "opposed": float(against.min()),
        "final": float(np.abs(u[-1, average, copied]).max()),
        "spread": float(np.ptp(u[-1, average, rest])),
    }


def _averaging(name: str, n: int, k: int, followed: list[tuple[Any, ...]], measured: dict[str, Any]) -> list[Any]:
    """The three phases in every seed."""
    from understudy.theory import one_neuron

    labels = sorted({run.structure.label for run, *_ in followed})
    phases = [_phases(u) for *_, u, _ in followed]
    told = {key: np.array([phase[key] for phase in phases]) for key in phases[0]}
    measured[name] = {
        "best common alignment with Σv (phase 1), of the student that is farthest from it": told["least"].tolist(),
        "the same, mean of the students": told["mean"].tolist(),
        "most negative correlation of the average with a copied teacher (phase 2)": told["opposed"].tolist(),
        "the same at the end (phase 3)": float(told["final"].max()),
    }
    checks = [
        equal(f"{name}: ends as", [f"{n - 1}-copy-1-average"], labels),
        close(f"{name}: loss", one_neuron("erf", k - n + 1).loss, [run.loss for run, *_ in followed], 1e-11),
        at_most(f"{name}: phase 2, the average turns against copied teachers", told["opposed"], bound=-0.01),
        at_least(f"{name}: phase 2 comes after phase 1 (snapshots between)", told["later"], bound=1),
        at_most(
            f"{name}: phase 3, that correlation vanishes, the others are equal",
            [told["final"], told["spread"]],
            bound=1e-7,
        ),
    ]
    if k >= 3 * n:
        checks += [
            at_least(
                f"{name}: phase 1, all students lean towards the one-neuron direction at one time",
                told["least"],
                bound=0.5,
            ),
            at_least(f"{name}: phase 1, mean of students and seeds", float(told["mean"].mean()), bound=0.8),
        ]
    return checks


def _measure(settings: Settings, progress: Progress) -> Measurement:
    checks: list[Any] = []
    measured: dict[str, Any] = {}
    data: dict[str, Any] = {}
    seeds = list(range(settings["seeds"]))
    for n, k in progress.over([tuple(pair) for pair in settings["averaging"]], "flow, (n, k) ="):
        followed = _follow(n, k, seeds, settings["points"])
        _, times, norms, u, outgoing = followed[0]
        name = f"{n}/{k}"
        data |= {f"{name}|time": times, f"{name}|norms": norms, f"{name}|u": u, f"{name}|outgoing": outgoing}
        checks += _averaging(name, n, k, followed, measured)
    n, k = settings["copying"]
    followed = _follow(n, k, seeds, settings["points"])
    run, times, norms, u, outgoing = followed[0]
    data |= {"copy|time": times, "copy|norms": norms, "copy|u": u, "copy|outgoing": outgoing}
    best = np.array([np.abs(found[-1]).max(axis=1) for *_, found, _ in followed])
    copied = sorted({len(set(np.abs(found[-1]).argmax(axis=1).tolist())) for *_, found, _ in followed})
    checks += [
        equal(f"{n}/{k}: ends as", [f"perturbed-{n}-copy"], sorted({each.structure.label for each, *_ in followed})),
        at_most(f"{n}/{k}: best correlations are not exactly one", best, bound=1 - 1e-4),
        at_least(f"{n}/{k}: but close to it", best, bound=0.9),
        equal(f"{n}/{k}: copied teachers are distinct", [n], copied),
    ]
    measured[f"{n}/{k}"] = {
        "correlation of each copy with its teacher": float(best.mean()),
        "loss": run.loss,
        "outgoing weight": float(np.abs(outgoing[-1]).mean()),
    }
    notes = (
        "Changed after a result: phase 2 was first looked for at all times, and was found at the random start of both "
        "quick seeds; it is looked for from phase 1 on."
    )
    return Measurement(checks, measured, data=data, notes=notes)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    names = [key.split("|")[0] for key in data if key.endswith("|time")]
    figure.set_size_inches(12.0, 2.7 * len(names))
    axes = np.atleast_2d(figure.subplots(len(names), 3))
    for row, name in zip(axes, names, strict=True):
        time, u = data[f"{name}|time"], data[f"{name}|u"]
        n, k = u.shape[1:]
        average = int(np.argmin(np.abs(u[-1]).max(axis=1)))
        copy = next(i for i in range(n) if i != average)
        title = f"n = {n}, k = {k}"
        for ax, i, what in (
            (row[0], copy, "a copying student"),
            (row[1], average, "the averaging student" if name != "copy" else "another student"),
        ):
            sign = np.sign(u[-1, i, np.argmax(np.abs(u[-1, i]))])
            ax.semilogx(time, sign * u[:, i, :], lw=0.9)
            ax.set(xlabel="flow time", ylabel="correlation u", title=f"{title}: {what}", ylim=(-1.05, 1.05))
        row[2].loglog(time, data[f"{name}|norms"], lw=1.0, color="C0")
        row[2].loglog(time, np.abs(data[f"{name}|outgoing"]), lw=1.0, color="C1", ls="--")
        row[2].set(xlabel="flow time", ylabel="norm (—), |a| (- -)", title=f"{title}: all students")


CLAIM = Claim(
    paper="copy-average",
    id="trajectories",
    where="Fig. 1, 7, 8, App. C.2",
    statement=(
        "On the way students first approach the one-neuron solution together, then n-1 of them specialise while the "
        "last one turns against the copied teachers, and finally decouples from them; for n = 8, k = 9 all students "
        "end as imperfect copies."
    ),
    paper_value="three phases; (n-1)-copy-1-average for k = 3 and 64, perturbed copies for n = 8, k = 9",
    measured_by="Several seeds of the flow for each (n, k), order parameters at log-spaced times.",
    tolerance="1e-7 at the end",
    tolerance_reason=(
        "Gradient norm at the end divided by the least eigenvalue (k^-3). Phase 1 is told by words only: a random "
        "student's correlation with Σv is 0.12 for k = 64. Every student of every seed must reach 0.5 (four standard "
        "deviations) at one time, and their mean 0.8."
    ),
    quick={"averaging": [[2, 3], [2, 12]], "copying": [8, 9], "seeds": 2, "points": 120},
    full={"averaging": [[2, 3], [4, 8], [2, 64], [4, 64], [8, 64]], "copying": [8, 9], "seeds": 5, "points": 160},
    measure=_measure,
    figure=_figure,
)
