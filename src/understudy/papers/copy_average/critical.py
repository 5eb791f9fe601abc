"""Claim `ca-critical`: which copy-average configurations are critical."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, at_most, close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _gradients(name: str, n: int, k: int) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """(partition, flat gradient) of every copy-average configuration of n students and k teachers, up to order."""
    import understudy as us
    from understudy.theory.copy_average import copy_average, partitions

    sizes = [p for total in range(n, k + 1) for p in partitions(total, n)]
    points = [copy_average(name, p, teachers=k) for p in sizes]
    task = us.Population(us.Teacher.orthonormal(k, activation=name), width=n)
    batch = us.TwoLayer(
        np.stack([np.asarray(p.incoming) for p in points]), np.stack([np.asarray(p.outgoing) for p in points])
    )
    return list(zip(sizes, np.asarray(task.gradient(batch)), strict=True))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory.copy_average import unmatched_force

    complete, incomplete, forces, left = [], [], [], []
    cells = [(n, k) for n in range(1, settings["students"] + 1) for k in range(n, settings["teachers"] + 1)]
    for n, k in progress.over(cells, "(n, k) ="):
        for sizes, gradient in _gradients("erf", n, k):
            norm = float(np.linalg.norm(gradient))
            if sum(sizes) == k:
                complete.append(norm)
            else:
                incomplete.append(norm)
                forces.append(unmatched_force("erf", sizes, k))
                left.append(k - sum(sizes))
    checks = [
        at_most(f"erf, every teacher in a group ({len(complete)} partitions): gradient norm", complete, bound=1e-12),
        at_least(f"erf, teachers left out ({len(incomplete)} partitions): gradient norm", incomplete, bound=0.1),
        close(
            "erf, teachers left out: ‖∇L‖ = 2√((k-Σℓ) Σ_i (a_i E[σ'(r_i z)] E[σ'(z)])²)",
            forces,
            incomplete,
            1e-11,
            relative=True,
        ),
    ]
    printed = [at_most("erf, any Σℓ ≤ k, as printed: gradient norm", complete + incomplete, bound=1e-12)]
    sizes_of_56 = {}
    for name in settings["others"]:
        gap, size, whole = _equation_56(name, settings["students_56"], settings["teachers_56"])
        sizes_of_56[name] = {"largest |∂L/∂a|": size, "largest ‖∇L‖, complete": whole}
        checks.append(at_most(f"{name}: Eq. 56 against the gradient", gap, bound=1e-10))
        if name == "tanh:0.5":
            checks.append(at_most(f"{name}: ∂L/∂a vanishes for an odd activation", size, bound=1e-11))
        else:
            checks.append(at_least(f"{name}: Eq. 56 is not zero", size, bound=1e-8))
        checks.append(at_least(f"{name}: ‖∇L‖ is not zero: not critical", whole, bound=1e-6))
    note = (
        "A copy-average configuration is critical for erf if and only if every teacher belongs to a group, Σℓ = k. The "
        f"theorem admits Σℓ < k, but of {len(incomplete)} such configurations the least gradient norm is "
        f"{min(incomplete):.4f}: each teacher v left out pulls student i along v with -2 a_i E[σ'(r_i z)] E[σ'(z)] ≠ "
        "0. The proof only treats teachers that belong to some group. n-copy is therefore not critical for n < k, "
        "which is why the points found near it are perturbed. (Eq. 50 and 55 print k where the group's own size ℓ_j is "
        "meant.)"
    )
    odd = sizes_of_56.get("tanh:0.5", {}).get("largest ‖∇L‖, complete", float("nan"))
    notes = (
        "Odd is not enough (Table 1: 'maybe for odd'): with tanh(x/2) complete configurations have gradients up to "
        f"{odd:.2g}."
    )
    measured = {
        "erf, complete: largest ‖∇L‖": max(complete),
        "erf, incomplete: least ‖∇L‖": min(incomplete),
        "other activations": sizes_of_56,
    }
    data: dict[str, Any] = {"left": np.array(left), "incomplete": np.array(incomplete), "complete": np.array(complete)}
    return Measurement(checks, measured, data=data, notes=notes, printed=printed, erratum_note=note)


def _equation_56(name: str, students: int, teachers: int) -> tuple[float, float, float]:
    """Largest gap between Eq. 56 and the gradient, largest value of it, largest gradient over complete partitions."""
    from understudy.gaussian import interaction
    from understudy.theory.copy_average import copy_average

    gap = size = whole = 0.0
    for sizes, gradient in _gradients(name, students, teachers):
        point = copy_average(name, sizes, teachers=teachers)
        norms = np.linalg.norm(np.asarray(point.incoming), axis=1)
        outgoing = np.asarray(point.outgoing)
        cross = np.asarray(interaction(name, norms[:, None], norms[None, :], 0.0))
        with_teachers = np.asarray(interaction(name, norms, 1.0, 0.0))
        predicted = (
            2 * (cross @ outgoing - np.diag(cross) * outgoing) - 2 * (teachers - np.array(sizes)) * with_teachers
        )
        slopes = gradient.reshape(students, -1)[:, -1]
        gap = max(gap, float(np.abs(predicted - slopes).max()))
        if sum(sizes) == teachers:
            size = max(size, float(np.abs(slopes).max()))
            whole = max(whole, float(np.linalg.norm(gradient)))
    return gap, size, whole


def _figure(measurement: Measurement, figure: "Figure") -> None:
    ax = figure.subplots()
    data = measurement.data
    jitter = np.random.default_rng(0).uniform(-0.2, 0.2, len(data["left"]))
    ax.semilogy(data["left"] + jitter, data["incomplete"], ".", alpha=0.6, label="some teachers in no group")
    zeros = np.maximum(data["complete"], 1e-17)
    ax.semilogy(
        np.random.default_rng(1).uniform(-0.2, 0.2, len(zeros)),
        zeros,
        ".",
        color="C2",
        label="every teacher in a group",
    )
    ax.set(
        xlabel="teachers in no group, k - Σℓ",
        ylabel="gradient norm",
        title="Copy-average configurations with erf: critical only if complete",
    )
    ax.legend(loc="center right")


CLAIM = Claim(
    paper="copy-average",
    id="ca-critical",
    where="Thm 4.2/E.1, Eq. 11, 44-56, Table 1",
    statement=(
        "With erf, concatenating the best neurons for disjoint groups of teachers, ℓ_1 + … + ℓ_n ≤ k, gives a critical "
        "point; with other activations it does not."
    ),
    paper_value="gradient 0 for erf, for every partition with Σℓ ≤ k",
    measured_by="Exact gradients over all partitions; Eq. 56 for other activations.",
    tolerance=1e-12,
    tolerance_reason="Rounding of sums of some hundred terms of order one to ten.",
    quick={
        "students": 3,
        "teachers": 5,
        "others": ["softplus", "relu", "tanh:0.5"],
        "students_56": 2,
        "teachers_56": 5,
    },
    full={
        "students": 4,
        "teachers": 10,
        "others": ["softplus", "sigmoid", "relu", "tanh:0.5"],
        "students_56": 3,
        "teachers_56": 8,
    },
    measure=_measure,
    figure=_figure,
)
