"""Trajectories: plateaus at tight balance, how often they are met, and the squared against the correlation loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.dynamics import FlowOptions, follow, starts
from understudy.papers.check import at_least, at_most, equal, holds
from understudy.papers.claim import Progress, Settings
from understudy.papers.measurement import Measurement
from understudy.papers.tight_balance.meeting import RADII, meet
from understudy.papers.tight_balance.plateaus import find_plateaus
from understudy.tasks.sphere import Sphere


def plateau(settings: Settings, progress: Progress) -> Measurement:
    """Plateaus of runs that start beside one teacher, and the probability of meeting tight balance against d."""
    task = Sphere(np.eye(2), 2)
    rng = np.random.default_rng(5)
    mean = rng.uniform(0.002, 0.02, size=settings["beside"]) * rng.choice([-1.0, 1.0], size=settings["beside"])
    phi = np.stack([mean + 0.15, mean - 0.15], axis=1)
    rows = np.stack([np.cos(phi), np.sin(phi)], axis=-1).reshape(len(phi), -1)
    options = FlowOptions(rtol=1e-9, atol=1e-9, snapshots=np.logspace(-2, 6, 321).tolist())
    labels, durations, passed, final = [], [], [], []
    curves: dict[str, np.ndarray] = {}
    for i, run in follow(task, rows, options):
        found = find_plateaus(task, run)
        longest = max(found, key=lambda p: p.duration, default=None)
        final.append(task.structure(run.vector.reshape(2, 2)).label)
        labels.append("none" if longest is None else task.structure(longest.critical.reshape(2, 2)).label)
        durations.append(0.0 if longest is None else longest.duration)
        passed.append(np.nan if longest is None else longest.distance)
        if i == 0:
            curves = {"time": run.times, "points": run.snapshots, "loss": np.asarray(task.loss(run.snapshots))}
    meetings = [meet(d, settings["seeds"]) for d in progress.over(settings["dims"], "d =")]
    low = np.array([m.interval()[0] for m in meetings])
    high = np.array([m.interval()[1] for m in meetings])
    share = np.array([m.met[1] / m.runs for m in meetings])
    dims = np.array([m.dim for m in meetings])
    peak = int(np.argmax(share))
    rising = range(peak + 1)
    # Falls that the intervals cannot explain, before the peak and anywhere.
    falls = sum(bool(high[j] < low[i]) for i in rising for j in rising if j > i)
    all_falls = sum(bool(high[j] < low[i]) for i in range(len(dims)) for j in range(i + 1, len(dims)))
    return Measurement(
        checks=[
            equal("d = 2, started beside one teacher: what runs linger at", ["1-tight-pair"], sorted(set(labels))),
            equal("and where they end", ["2-copy"], sorted(set(final))),
            at_least("how long they stay, least", durations, bound=5.0),
            at_least(
                "largest probability less that at d = 2, beyond both 95 % intervals",
                float(low[peak] - high[0]),
                bound=0.0,
            ),
            equal(f"falls beyond the 95 % intervals up to the peak at d = {dims[peak]}", 0, falls),
            at_least("seeds for each d", [m.runs for m in meetings], bound=1000),
            at_most(
                "share of runs that end neither there nor at two teachers",
                [m.elsewhere / m.runs for m in meetings],
                bound=0.01,
            ),
        ],
        measured={
            "probability of meeting": {
                f"d = {m.dim}": f"{s:.3f} [{a:.3f}, {b:.3f}]"
                for m, s, a, b in zip(meetings, share, low, high, strict=True)
            },
            "still there at t = 10⁸": {f"d = {m.dim}": m.caught / m.runs for m in meetings},
        },
        data={
            "dims": dims,
            "share": np.array([[c / m.runs for c in m.met] for m in meetings]),
            "low": low,
            "high": high,
            "caught": np.array([m.caught / m.runs for m in meetings]),
            **curves,
        },
        notes=(
            "Meeting: within 0.1 of a tight-balance point in ℝ^(2d), up to symmetry, at some time up to 10⁸ (0.05 and "
            "0.2 are in the figure). Two students that go to the same teacher approach it, split in a direction that "
            "for large d is nearly orthogonal to the other teacher, and turn into the teachers' plane in a time that "
            "grows with d, while their mean angle s decays exponentially: what escapes after 1/(64 s²) at d = 2 is for "
            "large d caught for all practical purposes."
        ),
        printed=[
            equal(f"the probability grows with d: falls beyond the 95 % intervals, d = 2 … {dims[-1]}", 0, all_falls)
        ],
        erratum_note=(
            f"The probability grows up to d = {dims[peak]} or so and then falls: from overlaps of order d^(-1/2) the "
            "two students need times of order d to find a teacher, which differ by as much; the later one finds the "
            "teacher taken, where attraction and repulsion cancel, and goes to the other. (The range of d in Fig. 5 is "
            "not given in the text.)"
        ),
    )


def draw_plateau(measurement: Measurement, figure: Any) -> None:
    """Fig. 4 and 5: a trajectory with its plateau, and the probability of meeting against d."""
    left, right = figure.subplots(1, 2)
    data = measurement.data
    angles = np.degrees(np.arctan2(data["points"][:, 1::2], data["points"][:, 0::2]))
    left.semilogx(data["time"], angles, label=["student 1", "student 2"])
    for level in (22.5, -22.5):
        left.axhline(level, color="0.5", ls=":", lw=1)
    left.set(xlabel="time", ylabel="angle to the shared teacher (°)", title="d = 2: stuck at ±22.5°, then free")
    left.legend()
    dims, share = data["dims"], data["share"]
    right.errorbar(
        dims, share[:, 1], [share[:, 1] - data["low"], data["high"] - share[:, 1]], fmt="o-", label="meet (0.1)"
    )
    for which, radius in ((0, RADII[0]), (2, RADII[2])):
        right.plot(dims, share[:, which], ":", label=f"meet ({radius})")
    right.plot(dims, data["caught"], "s--", label="still there at t = 10⁸")
    right.set_xscale("log", base=2)
    right.set(xlabel="dimension d", ylabel="probability", title="Meeting tight balance", ylim=(0, None))
    right.legend(fontsize=8)
    figure.suptitle("n = k = 2, ρ = 4", fontsize=11)


def losses(settings: Settings, progress: Progress) -> Measurement:
    """The same starts under the squared and the correlation loss: n = k = 2, d = 3, ρ = 4."""
    ends: dict[str, np.ndarray] = {}
    labels = np.full(settings["seeds"], "", dtype="U40")
    monotone: list[float] = []
    curves: dict[str, np.ndarray] = {}
    squared_rises: list[float] = []
    times: dict[str, np.ndarray] = {}
    task = Sphere(np.eye(2, 3), 2)
    vectors = np.asarray(task.flatten(starts.uniform_sphere(task, settings["seeds"])))
    nearest = np.argmax(np.abs(vectors.reshape(-1, 2, 3)[:, :, :2]), axis=2)
    alike = nearest[:, 0] == nearest[:, 1]
    pick = int(np.flatnonzero(alike)[0])
    for loss in ("squared", "correlation"):
        own = Sphere(np.eye(2, 3), 2, loss=loss)  # type: ignore[arg-type]
        options = FlowOptions(snapshots=np.logspace(-2, 3, 201).tolist(), rtol=1e-9, atol=1e-9)
        reached, spent = np.zeros((len(vectors), 2), int), np.zeros(len(vectors))
        for i, run in follow(own, vectors, options):
            points = np.concatenate([vectors[i][None], run.snapshots]).reshape(-1, 2, 3)
            overlap = np.abs(points[:, [0, 1], nearest[i]])
            steps = np.diff(overlap, axis=0).min()
            (monotone if loss == "correlation" else squared_rises).append(float(steps))
            end = np.abs(run.vector.reshape(2, 3)[:, :2])
            reached[i] = np.where(end.max(axis=1) > 1 - 1e-6, end.argmax(axis=1), -1)
            spent[i] = run.time
            if loss == "squared":
                labels[i] = own.structure(run.vector.reshape(2, 3)).label
            if i == pick:
                curves[f"{loss}_time"], curves[loss] = run.times, np.abs(run.snapshots.reshape(-1, 2, 3)[:, :, :2])
        ends[loss], times[loss] = reached, spent
        progress(0.5 if loss == "squared" else 1.0, loss)
    together = np.mean(ends["correlation"][alike, 0] == ends["correlation"][alike, 1])
    apart = np.sort(ends["squared"], axis=1)
    split = np.mean(np.all(apart == [0, 1], axis=1))
    tight = np.mean(np.all(ends["squared"] == -1, axis=1))
    return Measurement(
        checks=[
            at_least("correlation loss: smallest step of |w·v_nearest| along any run", monotone, bound=-1e-9),
            holds(
                "correlation loss: every student ends at its nearest teacher",
                bool(np.all(ends["correlation"] == nearest)),
                f"{int(np.sum(ends['correlation'] == nearest))} of {nearest.size} students",
            ),
            at_most(
                "squared loss: most negative step of |w·v_nearest|, students beside one teacher",
                min(squared_rises),
                bound=-1e-3,
            ),
            equal("squared loss: what runs end in", ["1-tight-pair", "2-copy"], sorted(set(labels.tolist()))),
            at_least(
                "squared loss: students beside different teachers, share of runs that end at these",
                float(np.mean(np.all(ends["squared"][~alike] == nearest[~alike], axis=1))),
                bound=0.95,
            ),
            at_least(
                "squared loss: students beside one teacher, share that ends at different ones",
                float(np.mean(labels[alike] == "2-copy")),
                bound=0.5,
            ),
        ],
        measured={
            "same teacher, correlation loss, of starts nearest to one": float(together),
            "different teachers, squared loss": float(split),
            "tight balance, squared loss": float(tight),
            "starts beside different teachers, squared loss": {
                "all": int(np.sum(~alike)),
                "end at these": int(np.sum(np.all(ends["squared"][~alike] == nearest[~alike], axis=1))),
            },
            "of starts beside one teacher, squared loss": {
                "different teachers": float(np.mean(labels[alike] == "2-copy")),
                "still at tight balance": float(np.mean(labels[alike] == "1-tight-pair")),
            },
            "median time": {k: float(np.median(v)) for k, v in times.items()},
            "longest time": {k: float(np.max(v)) for k, v in times.items()},
        },
        data=curves,
        notes=(
            "With the correlation loss d|w·v|/dt = ρ|w·v|(|w·v|^(ρ-2) - Σ_j (w·v_j)^ρ) ≥ 0 for the nearest teacher. The "
            "last three checks replace one that asked for 'different teachers or tight balance' (1.0 measured) and took "
            "every run that ends beside no teacher for tight balance. The check of starts beside different teachers "
            "first "
            "asked for all of them, as Lemma 3.1 does for d = 2, and measured 0.992 of 257 starts in d = 3: two starts "
            "whose students have little of either teacher end elsewhere, in an independent integration too."
        ),
    )


def draw_losses(measurement: Measurement, figure: Any) -> None:
    """Fig. 7: overlaps with both teachers under both losses, from the same start."""
    for axes, loss in zip(figure.subplots(1, 2, sharey=True), ("squared", "correlation"), strict=True):
        overlaps = measurement.data[loss]
        for student in (0, 1):
            for teacher in (0, 1):
                label = f"$|w_{student + 1} \\cdot v_{teacher + 1}|$"
                axes.semilogx(
                    measurement.data[f"{loss}_time"],
                    overlaps[:, student, teacher],
                    color=f"C{student}",
                    ls="-:"[teacher],
                    label=label,
                )
        axes.set(xlabel="time", title=f"{loss} loss, d = 3, ρ = 4")
        axes.legend(fontsize=8)
