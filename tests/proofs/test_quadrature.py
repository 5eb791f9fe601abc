"""Bounded quadrature: against mpmath, against the engine, against the checker's own rule; and its bounds on a grid."""

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest

import understudy as us
from understudy.papers.few_neurons.four import teacher
from understudy.proofs import prove, verify
from understudy.proofs.balls import ball, from_floats, precision
from understudy.proofs.checker import gaussian, interactions
from understudy.proofs.named import kernel_of
from understudy.proofs.quadrature import HEIGHT, CostlyError, logistic_of

NAMES = ["softplus", "sigmoid", "tanh", "softplus:2", "tanh:0.5"]
POINTS = json.loads((Path(__file__).parent / "softplus_minima.json").read_text())


def function(name, x):
    kind, _, beta = name.partition(":")
    z = mpmath.mpf(float(beta or 1)) * x
    if kind == "softplus":
        return mpmath.log1p(mpmath.exp(z)) / mpmath.mpf(float(beta or 1))
    return mpmath.tanh(z) if kind == "tanh" else 1 / (1 + mpmath.exp(-z))


def expectation(f):
    return mpmath.quad(lambda z: f(z) * mpmath.npdf(z), [-14, -6, -2, 0, 2, 6, 14])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("r2", [0.8, -0.8], ids=["own", "antiparallel"])
def test_one_dimensional_expectations_contain_mpmath(name, r2):
    with mpmath.workdps(40):
        exact = mpmath.nstr(
            expectation(lambda z: function(name, mpmath.mpf(0.8) * z) * function(name, mpmath.mpf(r2) * z)), 30
        )
        slope = mpmath.nstr(expectation(lambda z: mpmath.diff(lambda t: function(name, t), 0.8 * z) ** 2), 15)
    p, q = (from_floats(np.array([[x], [0.0]])) for x in (0.8, r2))
    with precision(192):
        kernel = kernel_of("population", name, name)
        square, across = ball(0.8) * ball(0.8), ball(0.8) * ball(r2)
        pair = kernel.pair(p, q, square, across, square)
        found = [pair.value] if r2 < 0 else [pair.value, kernel.own(square).value]
        assert all(abs(value - ball(exact)) < ball("3e-22") and float(value.rad()) < 1e-21 for value in found)
        if r2 > 0:
            assert abs(pair.g12 - ball(slope)) < ball("1e-13")


@pytest.mark.parametrize("name", ["softplus", "tanh:0.5"])
def test_the_engine_agrees(name):
    p, q = np.array([[0.9], [0.2]]), np.array([[-0.3], [0.7]])
    norms = np.linalg.norm(p), np.linalg.norm(q)
    expected = float(us.interaction(name, *norms, float((p * q).sum() / norms[0] / norms[1])))
    with precision(128):
        gram = [ball(float((a * b).sum())) for a, b in ((p, p), (p, q), (q, q))]
        assert (
            abs(float(kernel_of("population", name, name).pair(from_floats(p), from_floats(q), *gram).value) - expected)
            < 1e-12
        )


@pytest.mark.parametrize(("first", "second"), [("softplus", "softplus"), ("tanh", "sigmoid")])
def test_two_rules_enclose_the_same_numbers(first, second):
    p, q = (from_floats(np.array(x)) for x in ([[0.4], [0.3]], [[-0.3], [0.5]]))
    with precision(192):
        gram = [(a.transpose() * b)[0, 0] for a, b in ((p, p), (p, q), (q, q))]
        ours = kernel_of("population", first, second).pair(p, q, *gram)
        theirs = interactions.interaction("population", first, second, p, q)
        assert ours.value.overlaps(theirs.value)
        blocks = [
            (ours.own_block(), theirs.pp),
            (ours.cross_block(), theirs.pq),
            (ours.swapped().own_block(), theirs.qq),
        ]
        for one, other in blocks:
            assert one.overlaps(other)
            assert max(float(x.rad()) for m in (one, other) for x in m.entries()) < 1e-19


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whose", ["prover", "checker"])
def test_bounds_hold_in_the_strip(name, whose):
    ours = logistic_of(name)
    height = float(HEIGHT) if whose == "prover" else np.pi / 2
    bounds = ours.bounds() if whose == "prover" else gaussian._Function(name).bounds()
    x, y = np.meshgrid(np.linspace(-12, 12, 97), np.linspace(-1, 1, 41) * height / float(ours.inner))
    z = float(ours.inner) * (x + 1j * y)
    s = 1 / (1 + np.exp(-z))
    p, k = s * (1 - s), float(ours.inner)
    tower = [s, p, p * (1 - 2 * s), p * (1 - 6 * p), p * (1 - 2 * s) * (1 - 12 * p)]
    if ours.softplus:
        values = [np.log1p(np.exp(z)) / k, *(t * k**m for m, t in enumerate(tower[:4]))]
    else:
        values = [float(ours.outer) * t * k**m for m, t in enumerate(tower)]
        values[0] = values[0] + ours.shift
    for value, (constant, linear) in zip(values, bounds, strict=True):
        assert np.all(np.abs(value) <= (float(constant) + float(linear) * np.abs(x)) * (1 + 1e-12))


def test_a_copy_is_proved_and_verified(tmp_path):
    task = us.Population(us.Teacher([[0.5, 0.25]], [1.0], "softplus"), 1)
    proof = prove(task, us.TwoLayer([[0.5, 0.25]], [1.0]))
    assert (proof.kind, proof.positives) == ("strict minimum", 3)
    assert verify(proof.save(tmp_path / "proof.json")).accepted


def test_vectors_that_are_too_long_are_refused():
    p, q = (from_floats(np.array(x)) for x in ([[60.0], [0.0]], [[0.0], [60.0]]))
    with precision(128), pytest.raises(CostlyError, match="too costly"):
        kernel_of("population", "sigmoid", "sigmoid").pair(p, q, ball(3600), ball(0), ball(3600))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "kind", "zeros"),
    [("global", "strict minimum", 0), ("local-I", "strict minimum", 0), ("local-II", "strict minimum", 0),
     ("symmetry-induced", "minimum", 1)],
)  # fmt: skip
def test_the_four_softplus_minima(name, kind, zeros, tmp_path):
    task = us.Population(teacher(), 4)
    proof = prove(task, us.TwoLayer(POINTS[name]["incoming"], POINTS[name]["outgoing"]))
    assert (proof.kind, proof.index, proof.zeros, proof.positives) == (kind, 0, zeros, 12 - zeros)
    assert abs(proof.loss - POINTS[name]["loss"]) < 1e-13
    if name == "symmetry-induced":
        assert verify(proof.save(tmp_path / "proof.json")).accepted
