"""One neuron and any teacher: the equal-correlation theory, gradient flow as a second route, and bad input."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.theory import any_teacher, one_neuron_points


def test_orthonormal_teachers_have_the_points_of_the_theory():
    """Theorem 5.1 of Simsek et al. 2023: with erf all correlations are equal, and there is one point up to sign."""
    found = one_neuron_points("erf", [1.0, 1.0], np.eye(2))
    (point,) = found.points
    theory = us.theory.one_neuron("erf", teachers=2)
    assert found.complete
    assert point.kind == "minimum"
    assert (point.norm, point.outgoing, point.loss) == pytest.approx(
        (theory.norm, theory.outgoing, theory.loss), rel=1e-9
    )
    assert point.correlations == pytest.approx([0.5**0.5] * 2)


def test_starts_are_not_drawn_to_neurons_without_outgoing_weight():
    """Such neurons are critical on a whole surface. A solver of ∇L = 0 ends there from most starts."""
    task = us.Population(us.Teacher([[1.0, 0.0, 0.0], [0.3, 1.4, 0.0]], [1.0, -0.5], "erf"), 1)
    starts = any_teacher._grid(task, (0.1, 10.0), 1)
    ends, residuals = any_teacher._solve(task, jnp.asarray(np.pad(starts, ((0, 0), (0, 1)))))
    found = np.abs(np.asarray(ends)[np.asarray(residuals) < 1e-11, -1])
    assert np.sum(found > 1e-3) > len(starts) / 4
    assert np.sum(found <= 1e-3) < len(starts) / 50


@pytest.mark.thorough
def test_minima_of_gradient_flow_are_among_the_points():
    outgoing, gram = np.array([1.0, -0.5]), np.array([[1.0, 0.3], [0.3, 2.0]])
    found = one_neuron_points("erf", outgoing, gram)
    assert found.complete
    assert all(point.certificate.gradient_norm < 1e-10 for point in found.points)
    teacher = us.Teacher(np.linalg.cholesky(gram), outgoing, "erf")
    runs = us.fit(us.Population(teacher, 1), seeds=6, init_std=0.5)
    losses = [point.loss for point in found.points if point.kind == "minimum"]
    for run in runs:
        if run.certificate.kind == "minimum":
            assert min(abs(run.loss - loss) for loss in losses) < 1e-10


@pytest.mark.thorough
def test_many_teachers_say_that_the_search_is_not_complete():
    found = one_neuron_points("erf", np.ones(5), np.eye(5), starts=64)
    assert not found.complete
    assert "random starts" in found.reason
    assert found.points[0].norm == pytest.approx(1 / 3, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("erf", [1.0], np.eye(2)), "one finite number per teacher"),
        (("erf", [1.0, 1.0], [[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (("erf", [1.0, 1.0], [[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (("erf", [1.0, 1.0], np.ones((2, 3))), "square matrix"),
        (("relu", [1.0, 1.0], np.eye(2)), "smooth activation"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        one_neuron_points(*arguments)


def test_bad_norms():
    with pytest.raises(ValueError, match="largest_norm"):
        one_neuron_points("erf", [1.0], [[1.0]], largest_norm=-1.0)
