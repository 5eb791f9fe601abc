"""Claim `tightness`: inputs X = I and outputs Y = B_N need N²/4 neurons for the least norm; one-hot outputs as many
as classes.
"""

from __future__ import annotations

from typing import Any

from understudy.papers.check import at_least, at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

PENALTY = 1e-4


def _train(outputs: Any, width: int, settings: Settings, seed: int = 0) -> tuple[float, float, float, int]:
    """Best of many starts for X = I and outputs Y (m × N): squared norm, the same over 2‖Z‖_*, largest error, neurons
    at work.

    2‖Z‖_* bounds the squared norm of every network with outputs Z from below, whatever its width.
    """
    import jax.numpy as jnp
    import numpy as np

    from understudy.dynamics.descent import descend_to_least_norm, quasi_newton
    from understudy.tasks.regularised import Regularised

    m, n = outputs.shape
    task = Regularised(np.eye(n), outputs.T, (width,), penalty=PENALTY, bias=0.0, weights=np.ones(n))
    rng = np.random.default_rng([seed, width])
    starts = settings["starts"]
    draws = (np.abs(rng.normal(size=(starts, width, n))), rng.normal(size=(starts, m, width)))
    points, losses = descend_to_least_norm(task, task.flatten(draws), steps=settings["steps"])
    best, _, _ = quasi_newton(task, points[int(jnp.argmin(losses))])
    first, second = (np.asarray(w) for w in task.unflatten(best))
    reached = second @ np.maximum(first, 0)
    norm = float(np.sum(first**2) + np.sum(second**2))
    bound = 2 * float(np.sum(np.linalg.svd(reached, compute_uv=False)))
    working = int(np.sum(np.linalg.norm(np.maximum(first, 0), axis=1) * np.linalg.norm(second, axis=0) > 1e-3))
    return norm, norm / bound, float(np.max(np.abs(reached - outputs))), working


def _remark(n: int) -> tuple[float, float]:
    """Squared norm and largest error of the N neurons of Remark 23: W_1 = √(N/2) I, W_2 = √(2/N) B_N."""
    import numpy as np

    from understudy.papers.attraction_repulsion.cp_rank import bipartite_matrix

    matrix = bipartite_matrix(n)
    first, second = np.sqrt(n / 2) * np.eye(n), np.sqrt(2 / n) * matrix
    return float(np.sum(first**2) + np.sum(second**2)), float(np.max(np.abs(second @ np.maximum(first, 0) - matrix)))


def _one_hot(settings: Settings) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """One-hot outputs: (YᵀY)^(1/2) has constant blocks and cp-rank = classes; training reaches 2Σ√m_i with that many
    neurons.
    """
    import numpy as np

    from understudy.papers.attraction_repulsion.cp_rank import cp_rank

    members = settings["classes"]
    labels = np.repeat(np.arange(len(members)), members)
    outputs = np.eye(len(members))[:, labels]
    _, values, rows = np.linalg.svd(outputs, full_matrices=False)
    root = (rows.T * values) @ rows  # (YᵀY)^(1/2) = V S Vᵀ for Y = U S Vᵀ
    rank = cp_rank(root)
    least = 2 * float(np.sum(np.sqrt(members)))
    norm, _, error, _ = _train(outputs, len(members), settings)
    wide, _, _, _ = _train(outputs, len(members) + 2, settings)
    # With fewer neurons the outputs have a lower rank; of these the nearest is this far away (Eckart and Young).
    fewer = _train(outputs, len(members) - 1, settings)[2]
    blocks = [root[labels == c][:, labels == c] for c in range(len(members))]
    checks = [
        equal("cp-rank of (YᵀY)^(1/2), one-hot, from both sides", [len(members)] * 2, [rank.lower, rank.upper]),
        close("training one-hot outputs with as many neurons as classes: norm over 2 Σ √m_i", 1.0, norm / least, 1e-3),
        at_most("its largest error", error, bound=1e-3),
        at_least("two more neurons gain nothing: norm over 2 Σ √m_i", wide / least, bound=1 - 1e-3),
        at_least("one neuron fewer does not fit: largest error", fewer, bound=0.1),
        close(
            "entries of the block of a class with m inputs: 1/√m",
            [1 / np.sqrt(m) for m in members],
            [b.mean() for b in blocks],
            1e-12,
        ),
    ]
    printed = [
        close("entries of the block: 1/m, as printed", [1 / m for m in members], [b.mean() for b in blocks], 1e-12)
    ]
    return checks, printed, {"one-hot, norm / 2Σ√m": norm / least}


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.papers.attraction_repulsion.cp_rank import bipartite_matrix

    checks: list[Any] = []
    measured: dict[str, Any] = {}
    data: dict[str, Any] = {"sizes": np.array(settings["sizes"])}
    plans = {n: _widths(n, settings["fewer"], settings["wider"]) for n in settings["sizes"]}
    done, total = 0, sum(len(widths) for widths in plans.values())
    for n, widths in plans.items():
        quarter, norms = n * n // 4, {}
        for width in widths:
            progress(done / (total + 3), f"N = {n}, {width} neurons")
            norm, ratio, error, working = _train(bipartite_matrix(n), width, settings)
            norms[width] = (norm / n**2, ratio, error, working)
            done += 1
        table = np.array([norms[w] for w in widths])
        data |= {f"widths_{n}": np.array(widths), f"norms_{n}": table[:, 0]}
        remark, wrong = _remark(n)
        below = [w for w in widths if w < quarter]
        checks += [
            close(f"N = {n}, {quarter} neurons: norm over N²", 1.0, norms[quarter][0], 1e-3),
            close(f"N = {n}: the same over its lower bound 2‖Z‖_*", 1.0, norms[quarter][1], 1e-3),
            at_most(f"N = {n}: largest error of an output", table[:, 2], bound=1e-3),
            at_least(
                f"N = {n}, fewer than {quarter} neurons: norm over its lower bound",
                [norms[w][1] for w in below],
                bound=1.001,
            ),
            at_least(
                f"N = {n}: neurons at work in the networks of at least {quarter}",
                [norms[w][3] for w in widths if w >= quarter],
                bound=quarter,
            ),
            close(f"N = {n}: Remark 23, N neurons, N² + N", n**2 + n, remark, 1e-12, relative=True),
            at_most(f"N = {n}: Remark 23, error of its outputs", wrong, bound=1e-12),
        ]
        measured |= {f"N = {n}, N²/4 neurons: norm / N²": norms[quarter][0]}
        measured |= {
            f"N = {n}, {w} neurons: norm / N²": norms[w][0] for w in (quarter - 1, n) if w in norms and w != quarter
        }
    progress(total / (total + 3), "one-hot outputs")
    more, printed, found = _one_hot(settings)
    return Measurement(
        checks + more,
        measured | found,
        data,
        notes=(
            "Norms are those of the best of many starts at penalty 1e-4, which lowers them by about 4e-5 relative. "
            "N neurons can do better than the N² + N of Remark 23: trained ones come to about 1.01 N²."
        ),
        printed=printed,
        erratum_note=(
            "App. D.1 gives the blocks of (YᵀY)^(1/2) for one-hot outputs the value 1/m_i; the square root of the m × "
            "m matrix of ones is "
            "that matrix over √m, so the value is 1/√m_i. Its cp-rank, the number of classes, is as stated."
        ),
    )


def _widths(n: int, fewer: int, wider: int) -> list[int]:
    """N neurons, N²/4 and some fewer, and wider ones; at least N - 1, the rank of B_N, are needed to fit at all."""
    quarter = n * n // 4
    return sorted({n, *range(max(n - 1, quarter - fewer), quarter + 1), quarter + wider})


def _figure(measurement: Measurement, figure: Any) -> None:
    from understudy.plots.style import COLOURS

    data = measurement.data
    axes = figure.subplots()
    for n, colour, marker in zip(data["sizes"], COLOURS, "osDv", strict=False):
        widths, norms = data[f"widths_{n}"], data[f"norms_{n}"]
        axes.plot(widths, 100 * (norms - 1), marker + "-", color=colour, label=f"N = {n}")
        axes.axvline(n**2 // 4, color=colour, ls=":", lw=1.2)
    axes.axhline(0, color="black", lw=1)
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_yticks([0, 0.1, 1, 10], ["0", "0.1", "1", "10"])
    axes.set_ylim(bottom=-0.02)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(
        xlabel="hidden neurons (dotted: N²/4)",
        ylabel="least squared norm above N² (%)",
        title="Outputs B_N: the least norm needs N²/4 neurons",
    )
    axes.legend()


CLAIM = Claim(
    paper="attraction-repulsion",
    id="tightness",
    where="Prop. 14, Remark 23, App. D.1",
    statement=(
        "X = I_N and Y = B_N have representation cost N², reached with N²/4 neurons and not with fewer; N neurons "
        "reach N² + N; one-hot outputs need as many neurons as there are classes."
    ),
    paper_value={"cost with N²/4 neurons": "N²", "cost with N neurons": "N² + N", "one-hot": "number of classes"},
    measured_by=(
        "Two-layer ReLU networks without bias trained from many starts on squared error plus a falling penalty; every "
        "norm set against 2‖Z‖_*, its lower bound for any width."
    ),
    tolerance="0.1 %",
    tolerance_reason=(
        "A penalty λ lowers singular values of the outputs by λ and the norm by 2λ each: 4e-5 relative at λ = 1e-4. "
        "One neuron fewer costs 0.13 % (N = 8) or more."
    ),
    quick={"sizes": [4, 6], "starts": 32, "steps": 10000, "fewer": 1, "wider": 0, "classes": [3, 2, 4]},
    full={"sizes": [4, 6, 8], "starts": 128, "steps": 15000, "fewer": 9, "wider": 2, "classes": [6, 2, 4, 3, 5]},
    measure=_measure,
    figure=_figure,
)
