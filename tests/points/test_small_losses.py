"""Losses next to a recovered teacher, against 50-digit integrals."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import understudy as us
from understudy.points.small_losses import refined_loss

SIGMA = {
    "erf": lambda x: mp.erf(x / mp.sqrt(2)),
    "relu": lambda x: x if x > 0 else mpf(0),
    "tanh": mp.tanh,
}


def exact_loss(name, student, teacher):
    """E[(f - f*)²] for networks of one input, each a list of (w, c, a), and an offset last."""

    def value(network, x):
        *neurons, offset = network
        return sum((mpf(a) * SIGMA[name](mpf(w) * x + mpf(c)) for w, c, a in neurons), mpf(offset))

    with mp.workdps(60):
        kinks = {-mpf(c) / mpf(w) for w, c, _ in [*student[:-1], *teacher[:-1]]}
        cuts = sorted({mpf(-14), *(mpf(x) for x in range(-8, 9, 2)), *kinks, mpf(14)})
        return mpmath.quad(lambda x: (value(student, x) - value(teacher, x)) ** 2 * mp.npdf(x), cuts)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ["erf", "relu", "tanh"])
@pytest.mark.parametrize("size", [1e-5, 1e-9, 1e-13])
def test_a_loss_that_sums_cannot_resolve(name, size):
    """Students 0 and 1 share a teacher, student 2 is the other one, and for erf and tanh with the opposite sign."""
    teacher = us.Teacher([[1.0], [-0.7]], [1.0, 0.8], name, [0.5, -0.25], 0.1)
    task = us.Population(teacher, 3, bias="trained")
    sign = 1.0 if name == "relu" else -1.0
    perfect = us.TwoLayer([[1.0], [1.0], [-0.7 * sign]], [0.25, 0.75, 0.8 * sign], [0.5, 0.5, -0.25 * sign], 0.1)
    shift = size * np.random.default_rng(0).normal(size=task.size)
    vector = np.asarray(task.flatten(perfect)) + shift
    point = task.unflatten(jnp.asarray(vector))
    rows = zip(point.incoming, point.bias, point.outgoing, strict=True)
    neurons = [(float(w[0]), float(c), float(a)) for w, c, a in rows]
    exact = exact_loss(name, [*neurons, float(point.offset)], [(1.0, 0.5, 1.0), (-0.7, -0.25, 0.8), 0.1])
    found = refined_loss(task, vector, float(task.loss(vector)))
    assert found == pytest.approx(float(exact), rel=1e-9)


def test_a_scaled_relu_copy_and_a_neuron_without_outgoing_weight():
    """E[(g (v·x)₊)²] = g²|v|²/2 for an error g of the outgoing weight."""
    task = us.Population(us.Teacher(np.eye(2), [1.0, 2.0], "relu"), 3)
    vector = np.asarray(task.flatten(us.TwoLayer([[4.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.25 + 1e-10, 2.0, 0.0])))
    assert refined_loss(task, vector, float(task.loss(vector))) == pytest.approx((4e-10) ** 2 / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("student", "options"),
    [
        (us.TwoLayer(np.eye(2) + 0.01, [1.0, 1.0]), {}),
        (us.TwoLayer([[1.0, 0.0], [1.0, 0.0]], [0.5, 0.5]), {}),
        (us.TwoLayer(np.eye(2), [1.0, 1.0]), {"activation": "tanh"}),
        (us.TwoLayer(np.eye(2), [1.0, 1.0]), {"bias": 0.3}),
        (us.TwoLayer(np.eye(2), [1.0, 2.0]), {"outgoing": [1.0, 2.0]}),
    ],
)
def test_where_no_teacher_is_near_the_loss_stays(student, options):
    task = us.Population(us.Teacher(np.eye(2), [1.0, 1.0], "erf"), 2, **options)
    vector = np.asarray(task.flatten(student))
    assert task.known_minimiser(vector) is None
    assert refined_loss(task, vector, 1e-15) == 1e-15


def test_fixed_parts_stay():
    """With fixed biases and outgoing weights only incoming weights move."""
    task = us.Population(us.Teacher(np.eye(2), [1.0, 1.0], "erf", [0.5, 0.5]), 2, bias=0.5, outgoing="fixed")
    vector = np.asarray(task.flatten(us.TwoLayer(np.eye(2), [1.0, 1.0]))) + 1e-8
    np.testing.assert_array_equal(task.known_minimiser(vector), np.eye(2).ravel())
    assert 0 < refined_loss(task, vector, float(task.loss(vector))) < 1e-14


def test_fits_report_it():
    runs = us.fit(us.Population(us.Teacher.orthonormal(2, dim=3), width=2), seeds=3)
    assert all(0 <= run.loss < 1e-24 for run in runs)
