"""Every claim of the paper: what it says, where, and what is compared. The computing modules are loaded when needed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

PAPER = "tight-balance"


def _measure(module: str, name: str) -> Callable[[Settings, Progress], Measurement]:
    home = f"understudy.papers.tight_balance.{module}"

    def measure(settings: Settings, progress: Progress) -> Measurement:
        return getattr(import_module(home), name)(settings, progress)

    measure.__module__ = home  # results are keyed by the code of this module
    return measure


def _draw(module: str, name: str) -> Callable[[Measurement, Any], None]:
    def draw(measurement: Measurement, figure: Any) -> None:
        getattr(import_module(f"understudy.papers.tight_balance.{module}"), name)(measurement, figure)

    return draw


CLAIMS: tuple[Claim, ...] = (
    Claim(
        paper=PAPER,
        id="loss-gradient",
        where="Sec. 1.2, 2.1, B.1, B.2",
        statement=(
            "L(W) = ½ 1ᵀ(WWᵀ)^∘ρ 1 - 1ᵀ(WVᵀ)^∘ρ 1 + C is half the mean squared error; its spherical gradient is A - "
            "(AWᵀ∘I)W."
        ),
        paper_value="formulas",
        measured_by="The general Gaussian calculus, automatic differentiation, and flows of length 10⁶.",
        tolerance="1e-14 relative to ρ²(n + k); norms 1e-13",
        tolerance_reason="Sums of n(n + k) powers of degree ρ in rounded arithmetic; norms are restored at every step.",
        quick={"degrees": [2, 3, 4], "samples": 5, "dim": 8, "seeds": 20},
        full={"degrees": list(range(1, 13)), "samples": 10, "dim": 8, "seeds": 200},
        measure=_measure("loss", "loss_gradient"),
    ),
    Claim(
        paper=PAPER,
        id="copy-critical",
        where="Thm 2.1, Thm 2.3, Lemma B.1",
        statement="Copies of orthonormal teachers are critical; distinct copies are the global minimum for even ρ > 2, "
        "n ≤ k, and for ρ = 2 any orthonormal frame in the teachers' span is.",
        paper_value={"loss of distinct copies": "(k - n)/2"},
        measured_by=(
            "Gradients at random copies; losses reached by the flow from uniform starts; random frames at ρ = 2."
        ),
        tolerance="1e-13; 1e-12 on losses",
        tolerance_reason="Rounding of sums of a few powers.",
        quick={
            "degrees": [2, 3, 4, 5, 6, 8],
            "samples": 5,
            "seeds": 40,
            "sizes": [[2, 2, 3, 4], [2, 3, 4, 4], [2, 3, 3, 2]],
        },
        full={
            "degrees": list(range(2, 13)),
            "samples": 20,
            "seeds": 200,
            "sizes": [[2, 2, 3, 4], [2, 3, 4, 4], [2, 3, 3, 2], [3, 3, 5, 4], [4, 6, 8, 4], [3, 4, 4, 6], [3, 5, 6, 2]],
        },
        measure=_measure("loss", "copy_critical"),
    ),
    Claim(
        paper=PAPER,
        id="euclid-nonzero",
        where="Lemma 2.2, B.3",
        statement="For n < k, orthonormal teachers and even ρ the Euclidean gradient B never vanishes.",
        paper_value="B ≠ 0",
        measured_by="Gauss-Newton from random starts for the smallest ‖B‖ over unit students.",
        tolerance="1e-13",
        tolerance_reason="Rounding; the search itself ends at 1e-9 or better.",
        quick={"sizes": [[1, 2, 4], [2, 3, 4], [2, 3, 6]], "starts": 20},
        full={"sizes": [[1, 2, 4], [2, 3, 4], [2, 3, 6], [2, 4, 4], [3, 4, 4], [3, 4, 6], [3, 4, 8]], "starts": 100},
        measure=_measure("loss", "euclid_nonzero"),
        figure=_draw("loss", "summary_table"),
    ),
    Claim(
        paper=PAPER,
        id="toy-points",
        where="Sec. 2.3, Fig. 1, Table 1",
        statement=(
            "At n = k = d = 2 there are five classes of critical points: copy, tight-balance, balance, same copy, same "
            "balance."
        ),
        paper_value={"classes": 5},
        measured_by=(
            "An exhaustive search of the torus of both angles with exclusion by derivative bounds; a certificate for "
            "each point."
        ),
        tolerance="exact counts",
        tolerance_reason="Counts.",
        quick={"degrees": [4, 6, 8]},
        full={"degrees": list(range(4, 21, 2))},
        measure=_measure("landscape", "toy_points"),
        figure=_draw("landscape", "draw_toy_points"),
    ),
    Claim(
        paper=PAPER,
        id="angle",
        where="Fig. 2, 3",
        statement="The tight-balance angle θ_ρ is π/8 at ρ = 4 and falls as ρ grows.",
        paper_value={"θ_4": 0.39269908169872414},
        measured_by="The one positive root of a polynomial in cos² 2θ, against the zero of the printed condition.",
        tolerance=1e-12,
        tolerance_reason="Both are roots of smooth functions with slopes of order one.",
        quick={"degrees": list(range(4, 21, 2))},
        full={"degrees": list(range(4, 41, 2))},
        measure=_measure("landscape", "angle"),
        figure=_draw("landscape", "draw_angle"),
    ),
    Claim(
        paper=PAPER,
        id="nature",
        where="beyond the paper; Sec. 3.1, 5",
        statement="What kind of critical point tight balance is for each ρ and d, and how long the flow stays there.",
        paper_value="open; 'eventually escape to the global minimum', 'we empirically observe global convergence'",
        measured_by=(
            "The closed-form spectrum, certificates, escape times from the slow curve, and uniform starts for ρ ≥ 6."
        ),
        tolerance="1e-10 on eigenvalues; 2 % on escape times",
        tolerance_reason=(
            "Eigenvalues of 6 × 6 matrices to rounding; the next order of the escape time is relatively O(s)."
        ),
        quick={"degrees": [4, 6], "dims": [2, 3], "finest": -4, "escapes": 13, "seeds": 60},
        full={"degrees": [4, 6, 8, 10], "dims": [2, 3, 4], "finest": -4, "escapes": 25, "seeds": 500},
        measure=_measure("nature", "nature"),
        figure=_draw("nature", "draw_nature"),
    ),
    Claim(
        paper=PAPER,
        id="plateau",
        where="Sec. 3.1, Fig. 4, 5",
        statement="Students started beside one teacher linger at tight balance; the probability of meeting it from "
        "uniform starts grows with d (n = k = 2, ρ = 4).",
        paper_value="increases with d",
        measured_by=(
            "Plateau detection along flows; within 0.1 of a tight-balance point up to time 10⁸, at least 1,000 starts "
            "a dimension."
        ),
        tolerance="95 % intervals",
        tolerance_reason="Clopper-Pearson, exact for counts.",
        quick={"beside": 12, "seeds": 1000, "dims": [2, 3, 4, 8, 16, 32, 64]},
        full={"beside": 100, "seeds": 4000, "dims": [2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64]},
        measure=_measure("flows", "plateau"),
        figure=_draw("flows", "draw_plateau"),
    ),
    Claim(
        paper=PAPER,
        id="pairs",
        where="Sec. 2.4, 3.1",
        statement="Pairs of students orthogonal to all others, in the span of two teachers, form tight-balance points "
        "for n ≤ k ≤ d. They occur frequently, but only a few pairs do so, and the rest copy a teacher each.",
        paper_value="frequently; only a few pairs; the rest converge to a teacher",
        measured_by="Gradients and certificates at constructed points; ends of runs from uniform starts.",
        tolerance="1e-12 on gradients",
        tolerance_reason="Rounding.",
        quick={
            "configurations": [[2, 3, 4, 1], [4, 4, 5, 2]],
            "degrees": [4, 6],
            "runs": [[4, 4, 6, 4]],
            "seeds": 20,
            "keep": False,
        },
        full={
            "configurations": [[2, 3, 4, 1], [3, 3, 3, 1], [4, 4, 5, 2], [4, 6, 7, 1], [6, 6, 8, 3], [6, 8, 9, 2]],
            "degrees": [4, 6, 8],
            "runs": [[4, 4, 6, 4], [4, 6, 8, 4], [6, 6, 12, 4], [4, 4, 6, 6]],
            "seeds": 200,
            "keep": True,
        },
        measure=_measure("pairs", "pairs"),
    ),
    Claim(
        paper=PAPER,
        id="double-pairs",
        where="Sec. 2.4, 3.1",
        statement="When a pair of students is not orthogonal to the others, its dynamics do not decouple. What such "
        "students end in is left open.",
        paper_value="left open",
        measured_by="Two families of points, polished and certified; ends of runs from uniform starts compared with them.",
        tolerance="1e-12 on the angle; 1e-6 on losses; exact counts",
        tolerance_reason="A root of a cubic; certified minima are isolated, up to symmetries.",
        quick={"dims": [4], "runs": [], "seeds": 0, "keep": False},
        full={"dims": [4, 6, 12], "runs": [[3, 4, 4, 4], [4, 4, 6, 4], [6, 6, 12, 4]], "seeds": 200, "keep": True},
        measure=_measure("double_pairs", "double_pairs"),
        figure=_draw("double_pairs", "draw_double_pairs"),
    ),
    Claim(
        paper=PAPER,
        id="split-cone",
        where="Lemma 3.1, 3.2, Fig. 6, 9",
        statement="Students started closest to different teachers converge to them (n = k = d = 2); with 1/n on the "
        "repulsion w_i·v_i > 2^(-1/2) + 1/(40(ρ - 3.9)) suffices for n ≤ k ≤ d.",
        paper_value={"ε": "1/(40(ρ - 3.9))"},
        measured_by="Flows from starts in the cones, random and on their edge; an adversarial search for starts that "
        "fail; a counterexample with many students.",
        tolerance="exact counts",
        tolerance_reason="One failing start would refute the lemma.",
        quick={
            "toy_degrees": [4, 8],
            "toy_seeds": 500,
            "degrees": [4, 6, 20],
            "widths": [3, 6],
            "seeds": 200,
            "rounds": 4,
            "batch": 64,
            "counterexample": {"n": 12, "k": 13, "degree": 8, "over": 1.02, "lean": 1.1},
        },
        full={
            "toy_degrees": [4, 6, 8, 12, 20],
            "toy_seeds": 2000,
            "degrees": list(range(4, 21, 2)),
            "widths": [2, 3, 4, 5, 6],
            "seeds": 500,
            "rounds": 6,
            "batch": 64,
            "counterexample": {"n": 12, "k": 13, "degree": 8, "over": 1.02, "lean": 1.1},
        },
        measure=_measure("split_cone", "split_cone"),
        figure=_draw("split_cone", "draw_split_cone"),
    ),
    Claim(
        paper=PAPER,
        id="losses",
        where="Sec. 3.3, Fig. 7",
        statement="Under the correlation loss students approach the closest teacher monotonically; under the squared "
        "loss students beside one teacher meet tight balance and end at different ones.",
        paper_value="monotone approach; different teachers in the end",
        measured_by="The same uniform starts under both losses, n = k = 2, d = 3, ρ = 4.",
        tolerance="1e-9 on monotony",
        tolerance_reason="The flow's tolerance.",
        quick={"seeds": 40},
        full={"seeds": 500},
        measure=_measure("flows", "losses"),
        figure=_draw("flows", "draw_losses"),
    ),
    Claim(
        paper=PAPER,
        id="quadratic",
        where="App. A",
        statement="With mean outputs and H_2 the loss is a constant plus half that of the quadratic activation.",
        paper_value={"constant": 2.5},
        measured_by="Both losses exactly, for vectors of any norm.",
        tolerance=1e-11,
        tolerance_reason="Rounding of fourth powers of norms up to about 5.",
        quick={"samples": 5},
        full={"samples": 50},
        measure=_measure("loss", "quadratic"),
    ),
    Claim(
        paper=PAPER,
        id="even-mnist",
        where="Sec. 4.1, Fig. 8",
        statement="On MNIST, 3 layers with 100 neurons each, Adam: the absolute value and the quadratic do about as "
        "well as ReLU, activations with small derivatives near 0, such as the quartic, poorly.",
        paper_value="abs and quadratic comparable to ReLU; quartic worse and unstable",
        measured_by="Training all seeds at once from the user's copy of MNIST; test accuracy after each epoch.",
        tolerance="3 points of accuracy for 'comparable', 5 for 'worse'",
        tolerance_reason="The figure's curves; seeds differ by about half a point.",
        quick={
            "activations": ["relu", "abs", "quadratic", "quartic"],
            "samples": 6000,
            "epochs": 4,
            "seeds": 3,
            "batch": 100,
            "rate": 1e-3,
        },
        full={
            "activations": ["relu", "abs", "quadratic", "quartic", "hermite:4", "cosine", "bump", "x tanh x"],
            "samples": 60_000,
            "epochs": 4,
            "seeds": 3,
            "batch": 100,
            "rate": 1e-3,
        },
        measure=_measure("even_mnist", "even_mnist"),
        figure=_draw("even_mnist", "draw_even_mnist"),
    ),
    Claim(
        paper=PAPER,
        id="even-control",
        where="Sec. 4.1, Fig. 8",
        statement="Even activations with small derivatives near 0 do poorly. The quartic may also be unstable because "
        "it grows: a bounded activation that is as flat at 0 tells the two apart.",
        paper_value="small derivatives near 0: poorly",
        measured_by="Training as in even-mnist with 1 - exp(-x²) and 1 - exp(-x⁴), which differ near 0 only.",
        tolerance="3 points of accuracy for 'comparable', 5 for 'worse'",
        tolerance_reason="Those of even-mnist, fixed before this was measured.",
        quick={"samples": 3000, "epochs": 2, "seeds": 3, "batch": 100, "rate": 1e-3},
        full={"samples": 20_000, "epochs": 4, "seeds": 3, "batch": 100, "rate": 1e-3},
        measure=_measure("even_mnist", "even_control"),
        figure=_draw("even_mnist", "draw_even_mnist"),
    ),
    Claim(
        paper="tight-balance",
        id="frames",
        where="Lemma 2.2",
        statement=(
            "For n < k, orthonormal teachers and even ρ, ρ = 2 among them, the Euclidean gradient B never vanishes."
        ),
        paper_value="B ≠ 0",
        measured_by="B at random orthonormal frames in the span of the teachers, ρ = 2.",
        tolerance="1e-13",
        tolerance_reason="Rounding.",
        quick={"sizes": [[1, 2, 2], [2, 3, 5]], "frames": 10},
        full={"sizes": [[1, 2, 2], [2, 3, 5], [3, 4, 4], [4, 8, 9]], "frames": 100},
        measure=_measure("counterexamples", "frames"),
    ),
    Claim(
        paper="tight-balance",
        id="leaves-cone",
        where="Sec. 3.2",
        statement=(
            "At n = 2, k = d = 3 students need not stay in the cones of their closest teachers, however the two forces "
            "are scaled."
        ),
        paper_value="not guaranteed to stay",
        measured_by="The flow from a start in the cones beside a boundary, with repulsion scaled from 0.1 to 10.",
        tolerance="-1e-6",
        tolerance_reason="A thousand times the integrator's tolerance.",
        quick={"margin": 1e-3, "degrees": [4], "scalings": [0.5, 1.0]},
        full={"margin": 1e-3, "degrees": [4, 6, 8], "scalings": [0.1, 0.5, 1.0, 2.0, 10.0]},
        measure=_measure("counterexamples", "leaves_cone"),
    ),
)
