"""Growing: every stage a certified minimum, stable neurons copies, the average as theory has it."""

import numpy as np
import pytest

import understudy as us
from understudy.surgery import grow
from understudy.theory import copy_average_loss


@pytest.fixture(scope="module")
def stages():
    return grow(us.Teacher.orthonormal(3, 4, "erf"), 2)


@pytest.mark.thorough
def test_three_stages():
    through_copy_average_points(grow(us.Teacher.orthonormal(4, 5, "erf"), 3), 4)


@pytest.mark.thorough
def test_erf_students_grow_through_copy_average_points(stages):
    through_copy_average_points(stages, 3)


def through_copy_average_points(stages, teachers):
    """With erf the points are known: n-1 copies and the average of the rest."""
    assert [s.width for s in stages] == list(range(1, teachers))
    for copies, stage in enumerate(stages):
        partition = (*[1] * copies, teachers - copies)
        assert stage.certificate.kind == "minimum"
        assert abs(stage.loss - float(copy_average_loss("erf", partition))) < 1e-12
        assert stage.structure.neurons[stage.averaging].role == "average"
    assert stages[0].split_neuron is None
    assert stages[1].pushed_along < 0
    y = np.linalg.eigvalsh(stages[1].matrices.curvature)  # erf: zero along the average itself and outside the teachers
    assert np.sum(y < -0.1) == teachers - 1
    assert np.abs(y[teachers - 1 :]).max() < 1e-12
    assert abs(stages[-1].outgoing[stages[-1].averaging]) == pytest.approx(2.0, abs=1e-9)
    assert np.abs(stages[-1].correlations).max() <= 1 + 1e-12


def test_bad_input_is_refused():
    teacher = us.Teacher.orthonormal(3)
    with pytest.raises(ValueError, match="silent neuron"):
        grow(teacher, 2, mu=1.0)
    with pytest.raises(ValueError, match="from 2 neurons upward"):
        grow(teacher, 1, start=us.TwoLayer(np.eye(2, teacher.dim), np.ones(2)))
