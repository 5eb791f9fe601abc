"""What the table of a fit says beside its rows."""

import numpy as np
import pytest

import understudy as us
from understudy.dynamics import FlowOptions
from understudy.results.table import tell_biases, tell_reasons, tell_recovery


def test_recovered_teachers_are_counted():
    task = us.Population(us.Teacher.orthonormal(2, dim=3), width=2)
    assert tell_recovery(us.fit(task, seeds=2)) == "2 of 2 runs recover the teacher: loss below 1e-20."
    assert tell_recovery(us.fit(us.Population(us.Teacher.orthonormal(2, dim=3), width=1), seeds=1)) is None


def test_the_bias_of_each_neuron_is_told():
    teacher = us.Teacher(np.eye(1, 2), [1.0], "erf", bias=[0.5], offset=0.25)
    runs = us.fit(us.Population(teacher, 1, bias="trained"), seeds=1)
    (told,) = tell_biases(runs)
    assert told in {f"Biases of minimum 1-copy (seed 0): {sign}0.5000; offset 0.2500." for sign in ("", "-")}
    assert tell_biases(us.fit(us.Population(us.Teacher.orthonormal(1, dim=2), 1), seeds=1)) == []


def test_why_a_verdict_is_open_is_told_once():
    task = us.Population(us.Teacher.orthonormal(2, dim=3), width=1)
    stopped = us.fit(task, seeds=2, options=FlowOptions(max_time=0.1))
    assert {run.certificate.kind for run in stopped} == {"unconverged"}
    (told,) = tell_reasons(stopped)
    assert told == f"Why unconverged (seed 0): {stopped[0].certificate.evidence[0]}."
    assert tell_reasons(us.fit(task, seeds=1)) == []


@pytest.mark.thorough
@pytest.mark.parametrize("width", [2, 3, 4])
def test_students_of_four_teachers_with_biases(width):
    teacher = us.Teacher(np.eye(4, 5), np.ones(4), "erf", bias=[0.5, -0.5, 0.5, -0.5])
    runs = us.fit(us.Population(teacher, width, bias="trained"), seeds=20)
    assert {run.certificate.kind for run in runs} <= {"minimum", "strict saddle"}
    assert all(run.structure.label for run in runs)
    assert all(run.parameters.bias.shape == (width,) for run in runs)
    if width == 4:
        assert tell_recovery(runs) == "20 of 20 runs recover the teacher: loss below 1e-20."
        assert {run.structure.label for run in runs} == {"4-copy"}
