"""Slips that stand apart from the rows: each with the printed statement, the corrected one, and the numbers."""

import math

import numpy as np

from understudy.papers.check import at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _loss_factor(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.gaussian import interaction

    rng = np.random.default_rng(0)
    task = us.Population(us.Teacher.orthonormal(3, dim=4), width=3)
    right, wrong, exact = [], [], []
    for _ in range(settings["students"]):
        w, a = rng.normal(size=(3, 4)), rng.normal(size=3)
        exact.append(float(task.loss(us.TwoLayer(w, a))))
        r = np.linalg.norm(w, axis=1)
        u, rho = w[:, :3] / r[:, None], np.clip(w @ w.T / np.outer(r, r), -1, 1)
        students = np.outer(a, a) * np.asarray(interaction("erf", r[:, None], r[None, :], rho))
        rest = -2 * float(a @ np.asarray(interaction("erf", r[:, None], 1.0, u)).sum(axis=1)) + 3 * float(
            interaction("erf", 1.0, 1.0, 1.0)
        )
        own, off = float(np.trace(students)), float(students.sum() - np.trace(students))
        right.append(own + off + rest)
        wrong.append(own + 2 * off + rest)
    note = (
        "The student-student sum of Eq. 10, 25 and 34 runs over i ≠ i' and carries a factor 2, so every pair is "
        f"counted four times instead of twice: the first random student has the loss {exact[0]:.6f}, the formula as "
        f"printed gives {wrong[0]:.6f}. Either the factor goes, or the sum runs over i < i'."
    )
    return Measurement(
        [close("Σ_{i≠i'} with factor 1", exact, right, 1e-12)],
        {"loss": exact[0], "as printed": wrong[0], "corrected": right[0]},
        printed=[close("Σ_{i≠i'} with factor 2, as printed", exact, wrong, 1e-12)],
        erratum_note=note,
    )


def _correlation(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.tasks import order_parameters
    from understudy.theory import one_neuron

    k = settings["teachers"]
    task = us.Population(us.Teacher.orthonormal(k, dim=k + 1), width=1)
    found = [
        np.abs(np.asarray(order_parameters(task, run.parameters).student_teacher))[0]
        for run in us.fit(task, seeds=settings["seeds"])
    ]
    norm = one_neuron("softplus", k).norm
    note = (
        f"App. C.1 says the flow ends with all correlations 1/k; they are 1/√k ({found[0][0]:.6f} for k = {k}). The "
        f"same slip ends App. G.5.2: the bound shown there is r ≤ u = 1/√k, not 1/k (softplus, k = {k}: r = "
        f"{norm:.4f}, between {1 / k:.4f} and {1 / math.sqrt(k):.4f})."
    )
    return Measurement(
        [
            close("correlations 1/√k", 1 / math.sqrt(k), np.concatenate(found), 1e-9),
            at_most("softplus: r ≤ 1/√k", norm, bound=1 / math.sqrt(k)),
        ],
        {"correlation": float(found[0][0]), "r of softplus": norm},
        printed=[
            close("correlations 1/k, as printed", 1 / k, np.concatenate(found), 1e-9),
            at_most("softplus: r ≤ 1/k, as printed", norm, bound=1 / k),
        ],
        erratum_note=note,
    )


def _erf_slope(settings: Settings, progress: Progress) -> Measurement:
    from scipy.special import erf

    from understudy.papers.copy_average.activation_conditions import sufficient

    x = np.linspace(-3, 3, settings["points"])
    step = 1e-4
    slope = (erf((x + step) / math.sqrt(2)) - erf((x - step) / math.sqrt(2))) / (2 * step)
    shape = np.exp(-(x**2) / 2)
    expression = sufficient("erf", x)
    note = (
        "With σ(x) = erf(x/√2) as defined in Thm 4.2 the derivative is √(2/π) exp(-x²/2), at zero "
        f"{math.sqrt(2 / math.pi):.4f}, as Eq. 54-55 have it; Eq. 85 prints 2/√π = {2 / math.sqrt(math.pi):.4f} and "
        "Eq. 86 4/√π for 2√(2/π). The sign, all that the lemma needs, is not affected."
    )
    return Measurement(
        [
            close("σ' = √(2/π) exp(-x²/2)", slope, math.sqrt(2 / math.pi) * shape, 1e-7),
            close("Eq. 86 with 2√(2/π)", expression, 2 * math.sqrt(2 / math.pi) * x**2 * shape, 1e-12),
        ],
        {"σ'(0)": float(slope[len(x) // 2]), "as printed": 2 / math.sqrt(math.pi)},
        printed=[close("σ' = (2/√π) exp(-x²/2), as printed", slope, 2 / math.sqrt(math.pi) * shape, 1e-7)],
        erratum_note=note,
    )


def _unit_norms(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.papers.copy_average.realisation import constraints, reconstruct
    from understudy.tasks import OrderParameters

    teacher = us.Teacher(2.0 * np.eye(2, 3), [1.0, 1.0], "erf")
    u = np.array([[0.9, 0.9]])
    order = OrderParameters(np.ones(1), u, np.ones((1, 1)), np.ones(1))  # type: ignore[arg-type]
    v = np.asarray(teacher.incoming).T
    literal = float((u @ np.linalg.inv(v.T @ v) @ u.T)[0, 0])
    ours = float(constraints(teacher, order).ball[0])
    try:
        reconstruct(teacher, order)
        exists = 1
    except ValueError:
        exists = 0
    n, k = settings["students"], settings["teachers"]
    note = (
        "Eq. 26 and 31 hold for teachers of unit norm. In general V must be replaced by the unit vectors v_j/‖v_j‖: "
        f"for two orthogonal teachers of norm 2 and correlations (0.9, 0.9) Eq. 31 as printed gives {literal:.3f} ≤ 1, "
        "yet no vector has these correlations (0.81 + 0.81 > 1). And App. D.1 has n equality constraints ‖u_i‖ = 1, "
        f"not k: only then do n(k+2) parameters reduce to the n(k+1) it states (n = {n}, k = {k}: {n * (k + 2)} - {n} "
        f"= {n * (k + 1)})."
    )
    return Measurement(
        [
            equal("with unit vectors: inside the constraint, weights exist", [ours >= 0, bool(exists)], [False, False]),
            equal("n constraints", n * (k + 1), n * (k + 2) - n),
        ],
        {"Eq. 31 as printed": literal, "with unit vectors": 1 - ours, "weights exist": bool(exists)},
        printed=[
            equal("Eq. 31 as printed tells whether weights exist", bool(exists), literal <= 1),
            equal("k constraints, as printed", n * (k + 1), n * (k + 2) - k),
        ],
        erratum_note=note,
    )


def _one_neuron_formulas(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory import one_neuron

    ks = np.arange(1, settings["largest"] + 1)
    losses = np.array([one_neuron("erf", int(k)).loss for k in ks])
    formula = ks * math.asin(0.5) - ks**2 * np.arcsin(1 / (2 * ks))
    x = np.array([1.0, 1.5, 2.0])
    z = 1 / (2 * x)
    # f = x² asin(1/2x): f'' exactly, and the first two terms of its series with x⁻³ or x⁻⁵ in the second.
    exact = 2 * np.arcsin(z) - 2 * z / np.sqrt(1 - z**2) + z**3 / (1 - z**2) ** 1.5
    series, literal = (2 / (6 * 8 * x**3) + 4 * (9 / 40) / (32 * x**power) for power in (5, 3))
    order = float(np.log(abs((exact - series)[0] / (exact - series)[2])) / math.log(2))
    note = (
        "Eq. 65 lacks the factor 2/π of Eq. 16. The second term of Eq. 61 goes like x⁻⁵, not x⁻³ (the remainder then "
        f"falls like x^-{order:.1f}). Eq. 102 lacks the square: as printed the expectation is zero for every student, "
        "erf being odd. Eq. 14 means g(r, r, 1) by g(r, 1). None of them touches a result."
    )
    return Measurement(
        [
            close("L* = (2/π)(k asin ½ - k² asin 1/2k)", losses, 2 / math.pi * formula, 1e-12),
            at_most("remainder of f'' with x⁻⁵ falls faster than x⁻⁶", -order, bound=-6.0),
        ],
        {"L*(2)": float(losses[1]), "Eq. 65 at 2": float(formula[1])},
        printed=[
            close("Eq. 65 as printed", losses, formula, 1e-12),
            at_most(
                "remainder with x⁻³, as printed, beside the one with x⁻⁵ (x = 2)",
                abs(exact - literal)[2] / abs(exact - series)[2],
                bound=1.0,
            ),
        ],
        erratum_note=note,
    )


CLAIMS = (
    Claim(
        paper="copy-average",
        id="loss-factor",
        where="Eq. 10, 25, 34",
        statement="The projected loss: the student-student term as a sum over i ≠ i' with a factor 2.",
        paper_value="2 Σ_{i≠i'} a_i a_i' g(r_i, r_i', ρ_ii')",
        measured_by="The exact loss of random students.",
        tolerance=1e-12,
        tolerance_reason="Closed forms.",
        quick={"students": 5},
        full={"students": 100},
        measure=_loss_factor,
    ),
    Claim(
        paper="copy-average",
        id="correlation-slip",
        where="App. C.1, end of G.5.2",
        statement="Gradient flow ends with all student-teacher correlations 1/k, and r ≤ 1/k.",
        paper_value="1/k (Thm 5.1: 1/√k)",
        measured_by="fit of one erf neuron; one-neuron solver for softplus.",
        tolerance=1e-9,
        tolerance_reason="Polished points.",
        quick={"teachers": 4, "seeds": 3},
        full={"teachers": 10, "seeds": 20},
        measure=_correlation,
    ),
    Claim(
        paper="copy-average",
        id="erf-slope",
        where="Eq. 85-86",
        statement="The derivative of the paper's erf activation has the prefactor 2/√π.",
        paper_value="2/√π",
        measured_by="Difference quotients of SciPy's erf.",
        tolerance=1e-7,
        tolerance_reason="Step 1e-4, error 1e-9.",
        quick={"points": 61},
        full={"points": 601},
        measure=_erf_slope,
    ),
    Claim(
        paper="copy-average",
        id="unit-norms",
        where="Eq. 26, 29-31, App. D.1",
        statement=(
            "Correlations u are realisable if and only if uᵀ(VᵀV)⁻¹u ≤ 1; for d = k there are k equality constraints."
        ),
        paper_value="uᵀ(VᵀV)⁻¹u ≤ 1; k constraints",
        measured_by="Reconstruction of weights for teachers of norm 2; counting.",
        tolerance="exact",
        tolerance_reason="Yes or no.",
        quick={"students": 2, "teachers": 5},
        full={"students": 2, "teachers": 5},
        measure=_unit_norms,
    ),
    Claim(
        paper="copy-average",
        id="one-neuron-formulas",
        where="Eq. 14, 61, 65, 102",
        statement="Formulas along the proof of Lemma E.2: L*(x) and the second derivative of x² asin(1/2x).",
        paper_value="L*(x) = x asin ½ - x² asin 1/2x; f'' with x⁻³ twice",
        measured_by="The loss at the one-neuron optimum; the exact second derivative.",
        tolerance=1e-12,
        tolerance_reason="Closed forms.",
        quick={"largest": 20},
        full={"largest": 100},
        measure=_one_neuron_formulas,
    ),
)
