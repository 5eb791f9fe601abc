"""Claim `trajectories`: order parameters along the flow, Figures 1, 7 and 8."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _follow(n: int, k: int, seed: int, points: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One run: (run, times, norms, correlations, outgoing weights) along it, the end included."""
    import understudy as us
    from understudy.dynamics import FlowOptions
    from understudy.tasks import order_parameters

    task = us.Population(us.Teacher.orthonormal(k, dim=k + 1), width=n)
    options = FlowOptions(snapshots=tuple(np.geomspace(0.05, 1e7, points).tolist()))
    run = us.fit(task, seeds=[seed], options=options)[0]
    kept = np.concatenate([run.trajectory.snapshots, run.trajectory.vector[None]])
    times = np.append(run.trajectory.times, run.trajectory.time * 1.2)
    order = order_parameters(run.flow_task, run.flow_task.unflatten(kept))
    norms, correlations, outgoing = (np.asarray(x) for x in (order.norms, order.student_teacher, order.outgoing))
    return run, times, norms, correlations, outgoing


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory import one_neuron

    checks: list[Any] = []
    measured: dict[str, Any] = {}
    data: dict[str, Any] = {}
    for n, k in progress.over([tuple(pair) for pair in settings["averaging"]], "flow, (n, k) ="):
        run, times, norms, u, outgoing = _follow(n, k, settings["seed"], settings["points"])
        name = f"{n}/{k}"
        data |= {f"{name}|time": times, f"{name}|norms": norms, f"{name}|u": u, f"{name}|outgoing": outgoing}
        checks.append(equal(f"{name}: ends as", f"{n - 1}-copy-1-average", run.structure.label))
        checks.append(close(f"{name}: loss", one_neuron("erf", k - n + 1).loss, run.loss, 1e-11))
        # Phase 1: every student is close to the average of all teachers, w ∥ Σ_j v_j, before it specialises.
        alignment = np.abs(u.sum(axis=2)) / np.sqrt(k)
        together = float(alignment.min(axis=1).max())
        average = int(np.argmin(np.abs(u[-1]).max(axis=1)))
        copied = [int(np.argmax(np.abs(u[-1, i]))) for i in range(n) if i != average]
        sign = np.sign(u[-1, average].sum())
        opposed = float((sign * u[:, average][:, copied]).min())
        rest = [j for j in range(k) if j not in copied]
        spread = float(np.ptp(u[-1, average, rest]))
        final = float(np.abs(u[-1, average, copied]).max())
        measured[name] = {
            "best common alignment with Σv (phase 1)": together,
            "most negative correlation of the average with a copied teacher (phase 2)": opposed,
            "the same at the end (phase 3)": final,
        }
        if k >= 3 * n:
            checks.append(
                at_least(
                    f"{name}: phase 1, all students lean towards the one-neuron direction at one time",
                    together,
                    bound=0.5,
                )
            )
        checks.append(at_most(f"{name}: phase 2, the average turns against copied teachers", opposed, bound=-0.01))
        checks.append(
            at_most(f"{name}: phase 3, that correlation vanishes, the others are equal", [final, spread], bound=1e-7)
        )
    n, k = settings["copying"]
    run, times, norms, u, outgoing = _follow(n, k, settings["seed"], settings["points"])
    data |= {"copy|time": times, "copy|norms": norms, "copy|u": u, "copy|outgoing": outgoing}
    best = np.abs(u[-1]).max(axis=1)
    checks.append(equal(f"{n}/{k}: ends as", f"perturbed-{n}-copy", run.structure.label))
    checks.append(at_most(f"{n}/{k}: best correlations are not exactly one", best, bound=1 - 1e-4))
    checks.append(at_least(f"{n}/{k}: but close to it", best, bound=0.9))
    checks.append(equal(f"{n}/{k}: copied teachers are distinct", n, len(set(np.abs(u[-1]).argmax(axis=1).tolist()))))
    measured[f"{n}/{k}"] = {
        "correlation of each copy with its teacher": float(best.mean()),
        "loss": run.loss,
        "outgoing weight": float(np.abs(outgoing[-1]).mean()),
    }
    return Measurement(checks, measured, data=data)


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
    measured_by="One seed of the flow for each (n, k), order parameters at log-spaced times.",
    tolerance="1e-7 at the end",
    tolerance_reason=(
        "Gradient norm at the end divided by the least eigenvalue (k^-3). Phase 1 is told by words only: a random "
        "student's correlation with Σv is 0.12 for k = 64, and 0.5 is four standard deviations."
    ),
    quick={"averaging": [[2, 3], [2, 12]], "copying": [8, 9], "seed": 0, "points": 120},
    full={"averaging": [[2, 3], [4, 8], [2, 64], [4, 64], [8, 64]], "copying": [8, 9], "seed": 0, "points": 160},
    measure=_measure,
    figure=_figure,
)
