"""Enclosures against float64, against mpmath with 50 digits, and against themselves at higher precision."""

import mpmath
import numpy as np
import pytest

import understudy as us
from understudy.proofs.balls import ball, from_floats, precision, to_floats
from understudy.proofs.enclosure import Enclosure

ACTIVATIONS = ["erf", "relu", "abs", "linear", "quadratic", "hermite:3", "hermite:4"]


def population(activation, outputs=None, fixed="trained", parallel=False):
    rng = np.random.default_rng(5)
    v = rng.normal(size=(3, 4)) / 2
    b = rng.normal(size=3 if outputs is None else (3, outputs))
    task = us.Population(us.Teacher(v, b, activation), 2, outgoing=fixed)
    vector = rng.normal(size=task.size) / 2
    if parallel:
        vector[:4] = -2 * v[0]
    return task, vector


def enclosed(task, vector, bits=192, radius=0.0):
    form = task.exact_form()
    with precision(bits):
        box = [x + ball(0, radius) for x in map(ball, np.asarray(vector).tolist())]
        return Enclosure(form, from_floats(form.incoming)).evaluate(box)


def contained(enclosure, values, slack):
    balls = enclosure.entries() if hasattr(enclosure, "entries") else enclosure
    return all((b + ball(0, slack)).contains(ball(float(v))) for b, v in zip(balls, np.ravel(values), strict=True))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("options", [{}, {"outputs": 2}, {"fixed": 0.7}, {"parallel": True}], ids=str)
def test_enclosures_contain_float64(activation, options):
    task, vector = population(activation, **options)
    found = enclosed(task, vector)
    # Rounding of float64: a few hundred operations on numbers up to about 30 (the moments of hermite:4).
    slack = 1e-12 if activation.startswith("hermite") or activation == "quadratic" else 1e-13
    assert contained([found.loss], task.loss(vector), slack)
    assert contained(found.gradient, task.gradient(vector), slack)
    assert contained(found.hessian, task.hessian(vector), slack)


def test_sphere_enclosures_contain_float64():
    task = us.Sphere(np.eye(3, 4), 2, activation="hermite:5", repulsion=0.5)
    rows = np.random.default_rng(1).normal(size=(2, 4))
    vector = (rows / np.linalg.norm(rows, axis=1)[:, None]).ravel()
    found = enclosed(task, vector)
    assert contained([found.loss], task.loss(vector), 1e-14)
    assert contained(found.gradient, task.gradient(vector), 1e-14)
    assert contained(found.hessian, task.hessian(vector), 1e-14)


def direct_loss(activation, v, b, w, a):
    """E|f - f*|² in 50 digits, from the definition and textbook formulas in the angle."""
    mp = mpmath.mp

    def pair(p, q):
        p11, p12, p22 = mp.fdot(p, p), mp.fdot(p, q), mp.fdot(q, q)
        if activation == "erf":
            return 2 / mp.pi * mp.asin(p12 / mp.sqrt((1 + p11) * (1 + p22)))
        u = min(mp.mpf(1), max(mp.mpf(-1), p12 / mp.sqrt(p11 * p22)))
        if activation == "relu":
            return mp.sqrt(p11 * p22) / (2 * mp.pi) * (mp.sqrt(1 - u * u) + (mp.pi - mp.acos(u)) * u)
        return p12 * p12 * 2 + p11 * p22  # E[(p·x)²(q·x)²]

    vectors, weights = [*w, *v], [*a, *[-x for x in b]]
    return mp.fsum(x * y * pair(p, q) for x, p in zip(weights, vectors, strict=True)
                   for y, q in zip(weights, vectors, strict=True))  # fmt: skip


@pytest.mark.parametrize("activation", ["erf", "relu", "quadratic"])
def test_enclosures_contain_50_digits(activation):
    task, vector = population(activation)
    found = enclosed(task, vector)
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(float(x)) for x in row] for row in vector.reshape(2, 5)]
        v = [[mpmath.mpf(float(x)) for x in row] for row in np.asarray(task.teacher.incoming)]
        b = [mpmath.mpf(float(x)) for x in np.asarray(task.teacher.outgoing)]

        def loss(t, i=0):
            moved = [[x + (t if i == 5 * r + c else 0) for c, x in enumerate(row)] for r, row in enumerate(rows)]
            return direct_loss(activation, v, b, [row[:4] for row in moved], [row[4] for row in moved])

        exact = loss(0)
        slopes = [mpmath.diff(lambda t, i=i: loss(t, i), 0) for i in (0, 4, 7)]
        exact, slopes = mpmath.nstr(exact, 50), [mpmath.nstr(slope, 30) for slope in slopes]
    with precision(192):
        assert abs(ball(exact) - found.loss) < ball("1e-46")
        for i, slope in zip((0, 4, 7), slopes, strict=True):
            assert abs(ball(slope) - found.gradient[i]) < ball("1e-15")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_widths_shrink_with_precision_and_radius(activation):
    task, vector = population(activation)
    coarse, fine = (float(enclosed(task, vector, bits).hessian[0, 0].rad()) for bits in (80, 160))
    assert fine <= coarse * 2.0**-70 or coarse == 0
    wide, narrow = (float(enclosed(task, vector, 160, r).hessian[0, 4].rad()) for r in (1e-10, 1e-20))
    assert 0 < narrow < 1e-8 * wide


@pytest.mark.parametrize("activation", ["relu", "abs"])
def test_a_box_around_parallel_kinked_neurons_encloses_the_hessian_on_both_sides(activation):
    task, vector = population(activation, parallel=True)
    over = enclosed(task, vector, radius=1e-6)
    for sign in (-1, 1):
        beside = np.array(vector)
        beside[0] += sign * 0.9e-6
        assert contained(over.hessian, task.hessian(beside), 1e-13)
    assert np.abs(to_floats(over.hessian) - np.asarray(task.hessian(vector))).max() < 1e-4


def test_the_block_outside_is_the_hessian_of_a_further_direction():
    task, vector = population("erf")
    wide = us.Population(
        us.Teacher(np.pad(np.asarray(task.teacher.incoming), ((0, 0), (0, 1))), task.teacher.outgoing, "erf"), 2
    )
    rows = np.insert(vector.reshape(2, 5), 4, 0.0, axis=1)
    further = [4, 10]
    block = np.asarray(wide.hessian(rows.ravel()))[np.ix_(further, further)]
    assert contained(enclosed(task, vector).outside, block, 1e-14)
