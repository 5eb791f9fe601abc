"""Continuation of toy families whose folds, pitchforks and transcritical points are known, and of a teacher's angle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy import branches

TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
SHIFT = np.array([0.3, -0.2, 0.5])


def turned(form):
    """The family p → form(y, p) + y₁² + 3y₂² in rotated and shifted coordinates x."""

    def family(p):
        def loss(x):
            y = TURN.T @ (x - SHIFT)
            return form(y[0], p) + y[1] ** 2 + 3 * y[2] ** 2 + 0.3 * y[0] ** 2 * y[1]

        return us.Loss(loss, 3)

    return family


def at(y):
    return TURN @ np.array([y, 0.0, 0.0]) + SHIFT


# With y₁ eliminated, 0.3 y₀² y₁ + y₁² adds -0.0225 y₀⁴.
FORMS = {
    "fold": (lambda y, p: y**3 / 3 + (p - 0.2) * y + 0.0225 * y**4, 0.9, (-0.6, 0.6), "fold", 0.2),
    "pitchfork": (lambda y, p: y**4 / 4 - (p - 0.1) * y**2 / 2, 0.0, (-0.5, 0.7), "pitchfork", 0.1),
    "transcritical": (lambda y, p: y**3 / 3 - (p + 0.15) * y**2 / 2, 0.0, (-0.6, 0.6), "transcritical", -0.15),
}


@pytest.mark.parametrize("name", FORMS)
def test_normal_forms_are_found_where_they_are_and_certified(name):
    form, y, interval, kind, where = FORMS[name]
    family = turned(form)
    slope = jax.jit(lambda x, p: jax.grad(family(p).value)(x))
    bend = jax.jit(lambda x, p: jax.hessian(family(p).value)(x))
    start = at(y)
    for _ in range(30 if name == "fold" else 0):
        start = start - np.linalg.solve(bend(start, interval[0]), slope(start, interval[0]))
    result = us.continuation(family, start, interval)
    (special,) = result.special_points
    assert (special.kind, special.multiplicity, special.certified) == (kind, 1, True)
    assert special.parameter == pytest.approx(where, abs=1e-10)
    assert special.error < 1e-10
    assert {special.before.index, special.after.index} == {0, 1}
    assert abs(special.null[0] @ TURN[:, 0]) == pytest.approx(1, abs=1e-8)
    assert result.slope == "traced"
    assert result.slope_error < 1e-4
    for branch in result.branches:
        for p, x, index in zip(branch.parameters, branch.points, branch.index, strict=True):
            assert np.linalg.norm(slope(x, p)) < 1e-12
            if abs(p - where) > 1e-3:
                assert np.sum(np.linalg.eigvalsh(bend(x, p)) < 0) == index


def along_y(form, size=1):
    """The family p → form(x, p)."""
    return lambda p: us.Loss(lambda x: form(x, p), size)


def test_branches_leave_a_pitchfork_and_turn_at_known_folds():
    # -p y²/2 - y⁴/4 + y⁶/6: pitchfork at 0, and both forks (copies of one another) fold at p = -1/4.
    family = along_y(lambda x, p: -p * x[0] ** 2 / 2 - x[0] ** 4 / 4 + x[0] ** 6 / 6 + x[1] ** 2, 2)
    result = us.continuation(family, [0.0, 0.0], (-0.6, 0.5))
    kinds = {special.kind: special for special in result.special_points}
    assert set(kinds) == {"pitchfork", "fold"}
    assert kinds["pitchfork"].parameter == pytest.approx(0, abs=1e-10)
    assert kinds["fold"].parameter == pytest.approx(-0.25, abs=1e-10)
    assert all(special.certified for special in result.special_points)
    fork = result.branches[1]
    assert len(result.branches) == 2
    assert (fork.leaves, fork.twins) == (0, 1)
    assert set(fork.index) == {0, 1}
    found = sorted((found.index, round(abs(found.point[0]), 6)) for found in result.at(-0.1))
    roots = np.sqrt((1 + np.array([1, -1]) * np.sqrt(0.6)) / 2)
    assert found == [(0, 0.0), (0, round(roots[0], 6)), (1, round(roots[1], 6))]


def test_an_imperfect_pitchfork_is_not_taken_for_a_meeting():
    # The critical points of y⁴/4 - p y²/2 + ε y with negative y fold where p = 3 y², 2 y³ = ε.
    push = 1e-3
    family = along_y(lambda x, p: x[0] ** 4 / 4 - p * x[0] ** 2 / 2 + push * x[0])
    start = np.roots([1, 0, -1, push]).real.max()
    result = us.continuation(family, [start], (-1.0, 1.0), start=1.0)
    (fold,) = result.special_points
    assert fold.kind == "fold"
    assert fold.parameter == pytest.approx(3 * (push / 2) ** (2 / 3), abs=1e-10)


def test_eigenvalues_that_vanish_together_are_counted_and_their_branches_found():
    # -p|y|²/2 + (y₀⁴ + y₁⁴)/4: at p = 0 minima (±√p, ±√p) and saddles (±√p, 0) leave.
    def form(x, p):
        return -p * (x[0] ** 2 + x[1] ** 2) / 2 + (x[0] ** 4 + x[1] ** 4) / 4 + (x[2] - p) ** 2

    result = us.continuation(along_y(form, 3), [0.0, 0.0, -0.5], (-0.5, 0.7))
    (special,) = result.special_points
    assert (special.kind, special.multiplicity, special.certified) == ("multiple", 2, True)
    assert special.parameter == pytest.approx(0, abs=1e-10)
    found = sorted((f.index, round(f.loss, 9)) for f in result.at(0.5))
    assert found == [(0, -0.125), (1, -0.0625), (2, 0.0)]


def test_a_point_inside_the_interval_is_followed_both_ways():
    family = along_y(lambda x, p: (x[0] - p) ** 2 + (x[1] - p**2) ** 2, 2)
    (branch,) = us.continuation(family, [0.5, 0.25], (-1.0, 1.0), start=0.5).branches
    assert (branch.parameters[0], branch.parameters[-1]) == (-1.0, 1.0)
    assert np.all(np.diff(branch.parameters) > 0)
    np.testing.assert_allclose(branch.points, np.stack([branch.parameters, branch.parameters**2], 1), atol=1e-12)


def test_a_closed_curve_of_critical_points_ends_where_it_began():
    # ∂L/∂x = x² + p² - 1: a circle with folds at p = ±1.
    family = along_y(lambda x, p: x[0] ** 3 / 3 + (p**2 - 1) * x[0])
    result = us.continuation(family, [1.0], (-2.0, 2.0), start=0.0)
    assert result.branches[0].ending == "closed loop"
    assert sorted(s.parameter for s in result.special_points) == pytest.approx([-1, 1], abs=1e-10)


@pytest.mark.thorough
def test_the_averaging_relu_student_splits_where_its_eigenvalue_vanishes():
    """Twenty angles: the branch has the flow's minima; the pitchfork is where certified eigenvalues change sign."""
    family = branches.teacher_angle(us.Teacher.orthonormal(2, activation="relu"), width=1)
    first = us.fit(family(0.4), seeds=2)[0]
    result = us.continuation(family, first.parameters, (0.4, 3.0))
    (special,) = result.special_points
    assert (special.kind, special.certified) == ("pitchfork", True)
    assert special.before.kind == "minimum"
    assert special.after.kind == "strict saddle"
    assert result.slope == "arrays"
    for angle in np.linspace(0.4, 3.0, 20):
        flow = us.fit(family(angle), seeds=1)[0]
        found = result.at(angle)[-1]
        student = family(angle).unflatten(jnp.asarray(found.point))
        assert (found.index, flow.certificate.kind) == (0, "minimum")
        assert found.loss == pytest.approx(flow.loss, abs=1e-10)
        ours, theirs = (
            float(abs(net.outgoing[0]) * np.linalg.norm(net.incoming)) for net in (student, flow.parameters)
        )
        assert ours == pytest.approx(theirs, abs=1e-10)


@pytest.mark.thorough
def test_a_family_that_cannot_be_traced_uses_differences():
    def family(p):
        number = float(p)  # a traced number has no value
        return us.Loss(lambda x: (x[0] - number**3) ** 2 + x[1] ** 4 / 4 - (number - 0.55) * x[1] ** 2 / 2, 2)

    result = us.continuation(family, [0.064, 0.0], (0.4, 0.7), step=0.2, depth=0)
    assert result.slope == "differences"
    assert result.slope_error < 1e-5
    assert result.special_points[0].kind == "pitchfork"
    assert result.special_points[0].parameter == pytest.approx(0.55, abs=1e-10)
    np.testing.assert_allclose(result.branches[0].points[:, 0], result.branches[0].parameters ** 3, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"interval": (1.0, 0.0)}, "low < high"),
        ({"interval": 3.0}, "pair"),
        ({"start": 7.0}, "must lie in the interval"),
        ({"step": 0.5}, "step is"),
        ({"depth": -1}, "depth is"),
        ({"point": [30.0, 4.0]}, "not critical"),
        ({"point": [[0.0, 0.0], [0.0, 0.0]]}, "one point"),
        ({"family": 3}, "function from a number"),
        ({"family": lambda p: 3.0}, "family returns at 0 is of type float"),
        ({"family": lambda p: us.Loss(lambda x: x[0] ** 2, 1 if p < 0.5 else 2)}, "same number"),
        ({"family": lambda p: us.Loss(lambda x: x[0] ** 4 + x[1] ** 2, 2)}, "degenerate"),
        ({"family": lambda p: us.Sphere(np.eye(2), width=1, activation="hermite:3")}, "flat parameter"),
    ],
)
def test_bad_input_is_explained(change, words):
    given = {"family": _wave, "point": [0.0, 0.0], "interval": (0.0, 1.0)} | change
    with pytest.raises((ValueError, TypeError), match=words):
        us.continuation(**given)


def _wave(p):
    return us.Loss(lambda x: 1 - jnp.cos(x[0]) + (x[1] - p) ** 2, 2)


def test_results_print_are_saved_and_opened(tmp_path):
    def family(p):
        return us.Loss(lambda x: x[0] ** 4 / 4 - p * x[0] ** 2 / 2, 1)

    result = us.continuation(family, [0.0], (-0.3, 0.4), parameter="push")
    text = repr(result)
    assert "pitchfork" in text
    assert "push from -0.3 to 0.4" in text
    assert "<table>" in result._repr_html_()
    opened = us.open(result.save(tmp_path / "branches"))
    assert repr(opened) == text
    assert opened.to_dict() == result.to_dict()
    with pytest.raises(ValueError, match="does not know its family"):
        opened.at(0.1)
    with pytest.raises(ValueError, match="followed from"):
        result.at(3.0)
