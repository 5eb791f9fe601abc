"""Neurons that change their scale for ever are recognised early, and the limit is named."""

import re

import numpy as np
import pytest

import understudy as us
from understudy.dynamics.flow import _numbers
from understudy.dynamics.lengthening import find_lengthening, limit_name, suspects

TEACHER = us.Teacher.orthonormal(2, dim=3, activation="gelu")


def best_loss(activation: str) -> float:
    """The least loss of one neuron of this homogeneous activation along the mean of the teachers: a parabola in s."""
    task = us.Population(TEACHER, 1, activation=activation)
    way = np.array([[1.0, 1.0, 0.0]]) / np.sqrt(2)
    low, here, high = (float(task.loss(us.TwoLayer(way, [s]))) for s in (0.0, 1.0, 2.0))
    bend, slope = (low - 2 * here + high) / 2, (high - low) / 2
    least = 1 - slope / (2 * bend)
    return here + slope * (least - 1) + bend * (least - 1) ** 2


def test_gelu_neurons_become_relu_or_linear_neurons():
    """Seeds 0 and 3 grow like t^¼, seeds 1 and 2 shrink like t^⅓; these were `unconverged` at a time of 1e12."""
    runs = us.fit(us.Population(TEACHER, 1), seeds=4)
    assert [run.certificate.kind for run in runs] == ["diverging"] * 4
    assert all(run.trajectory.ending == "lengthening" and run.trajectory.time < 1e5 for run in runs)
    for run, name in zip(runs, ("relu", "linear", "linear", "relu"), strict=True):
        words = run.certificate.evidence[0]
        assert f"become {'ReLU' if name == 'relu' else name} neurons" in words
        limit = float(re.findall(r"falls to about ([\d.]+)", words)[0])
        assert limit == pytest.approx(best_loss(name), abs=2e-6)
        assert run.loss > best_loss(name)
    assert len(runs.groups()) == 2  # the same end, whenever it was recognised


def test_suspects_are_neurons_of_smooth_activations_that_grow_like_x():
    far = us.TwoLayer([[20.0, 0.0], [1.0, 0.0]], [0.1, 1.0])
    for name, expected in (("gelu", (0,)), ("silu", (0,)), ("softplus", (0,)), ("erf", ()), ("relu", ()), ("tanh", ())):
        task = us.Population(us.Teacher.orthonormal(2, activation=name), 2)
        assert suspects(task.neurons(task.flatten(far)))[0] == expected


def test_a_long_neuron_with_a_minimum_is_no_suspect_for_long():
    """A teacher of norm 12 is learned: the run ends in a minimum."""
    teacher = us.Teacher([[12.0, 0.0]], [1.0], "gelu")
    run = us.fit(us.Population(teacher, 1), seeds=[0], init=us.TwoLayer([[[7.0, 2.0]]], [[1.2]]))[0]
    assert run.certificate.kind == "minimum"
    assert run.loss < 1e-15


@pytest.mark.parametrize(("name", "limit"), [("gelu", "ReLU"), ("softplus", "ReLU"), ("x*sigmoid(x)", "ReLU")])
def test_names_of_limits(name, limit):
    assert limit_name(us.activations.get(name)) == limit


@pytest.mark.parametrize(
    ("incoming", "outgoing", "growing", "limit"),
    [
        (
            [
                [5.229, 6.017, 5.17, -0.606, 5.412],
                [0.394, -0.843, 0.488, 9.919, 0.106],
                [-0.877, -1.024, -0.866, 0.277, -0.911],
            ],
            [0.1427, 0.1168, -0.2416],
            (0, 1),
            0.230474,
        ),
        (np.outer([-0.388, 23.472, 2.522], np.ones(5)), [-0.3895, 0.3334, -2.7646], (1,), 0.282842),
    ],
)
def test_runs_are_recognised_where_the_next_order_counts(incoming, outgoing, growing, limit):
    """On the way of silu runs, which went on for ever: slopes at 16 and 32 have ratios of 6.7 and 3.2 instead of 8.

    The limits are those of the bottom of the valley at ‖w‖ = 512.
    """
    task = us.Population(us.Teacher.orthonormal(5, activation="silu"), 3)
    vector = np.asarray(task.flatten(us.TwoLayer(incoming, outgoing)))
    found = find_lengthening(task, vector, _numbers)
    assert found is not None
    assert (found.growing, found.shrinking, found.limit) == (growing, (), "ReLU")
    assert found.limit_loss == pytest.approx(limit, abs=2e-5)
    # The end is at a standard scale, which the second run has passed already: its loss need not be below the run's.
    assert found.limit_loss < min(found.loss, float(task.loss(vector)))
