"""Averages over four Gaussians: 30-digit references, second routes, degenerate covariances, symmetries."""

import json
import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from understudy import activations
from understudy.gaussian import Covariance, pair_partials
from understudy.gaussian.four_erf import erf_averages
from understudy.gaussian.four_piecewise import _four_signs, piecewise_averages
from understudy.gaussian.four_quadrature import quadrature_averages
from understudy.gaussian.fourfold import gradient_moments, is_exact, nodes_for

FILE = Path(__file__).parents[1] / "references" / "fourfold.json"
POINTS = json.loads(FILE.read_text())["points"]
RNG = np.random.default_rng(7)
ZERO, ONE = jnp.asarray(0), jnp.asarray(1)


def covariance(count=4, rank=4, scale=1.0):
    vectors = scale / math.sqrt(rank) * RNG.normal(size=(count, rank))
    return jnp.asarray(vectors @ vectors.T)


def piecewise(c, i, j, name="relu"):
    sigma = activations.get(name)
    parts = jnp.full(len(c), sigma.slope), jnp.full(len(c), sigma.kink)
    return piecewise_averages(c, jnp.asarray(i), jnp.asarray(j), (sigma.slope, sigma.kink), *parts)


def test_erf_references():
    """Every stored covariance, singular and zero ones among them, to 1e-12."""
    assert len(POINTS) >= 50
    for point in POINTS:
        vectors = np.array(point["vectors"])
        found = erf_averages(jnp.asarray(vectors @ vectors.T), ZERO, ONE)[2, 3]
        assert float(found) == pytest.approx(float(point["value"]), abs=1e-13, rel=1e-12)


def test_erf_by_quadrature():
    """The general rule, which knows nothing of erf, at a generic and a singular covariance."""
    for rank in (2, 4):
        c = covariance(5, rank, 0.8)
        sigma = activations.get("erf")
        found = quadrature_averages(c, ZERO, ONE, 3, sigma, sigma, 40)
        np.testing.assert_allclose(found, erf_averages(c, ZERO, ONE), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["quadratic", "hermite:3", "linear"])
def test_polynomials_are_exact(name):
    """With exactly twice the degree and with more nodes: the same to rounding."""
    sigma = activations.get(name)
    c = covariance(5, 3)
    nodes = max(2 * sigma.growth, 2)
    few, many = (quadrature_averages(c, ZERO, ONE, 5, sigma, sigma, count) for count in (nodes, nodes + 5))
    np.testing.assert_allclose(few, many, rtol=0, atol=1e-12 * float(jnp.abs(many).max()))


def test_quadratic_by_isserlis():
    """E[2x₁ 2x₂ x₃² x₄²] by Isserlis' theorem: the sum over all pairings of six Gaussians."""
    c = np.asarray(covariance())
    sigma = activations.get("quadratic")

    def pairings(items):
        if not items:
            return 1.0
        return sum(c[items[0], items[i]] * pairings(items[1:i] + items[i + 1 :]) for i in range(1, len(items)))

    found = quadrature_averages(jnp.asarray(c), ZERO, ONE, 4, sigma, sigma, 4)
    assert float(found[2, 3]) == pytest.approx(4 * pairings([0, 1, 2, 2, 3, 3]), rel=1e-12)


@pytest.mark.parametrize("name", ["relu", "abs"])
def test_piecewise_by_sampling(name):
    sigma = activations.get(name)
    c = np.asarray(covariance())
    x = RNG.normal(size=(400_000, 4)) @ np.linalg.cholesky(c).T
    h, first = (np.asarray(z) for z in sigma.derivatives(jnp.asarray(x), 1))
    found = np.asarray(piecewise(jnp.asarray(c), 0, 1, name))
    for l, m in ((2, 3), (0, 3), (1, 1), (0, 1), (3, 3)):
        samples = first[:, 0] * first[:, 1] * h[:, l] * h[:, m]
        assert abs(samples.mean() - found[l, m]) < 5 * samples.std() / math.sqrt(len(x))


def test_four_signs():
    """P(all positive) = 1/5 at equal correlations of ½; independent pairs factorise, also near and at parallel ones."""
    equal = 16 / 5 - 1 - 6 * 2 / math.pi * math.asin(0.5)
    assert float(_four_signs(jnp.asarray(0.5 * np.eye(4) + 0.5))) == pytest.approx(equal, abs=1e-14)
    for gap in (0.0, 1e-12, 1e-6, 0.5):
        rho = np.eye(4)
        rho[0, 2] = rho[2, 0] = 1 - gap
        rho[1, 3] = rho[3, 1] = 0.3
        wanted = 4 / math.pi**2 * math.asin(1 - gap) * math.asin(0.3)
        assert float(_four_signs(jnp.asarray(rho))) == pytest.approx(wanted, abs=1e-8)


def test_relu_derivative_rule():
    """∂E/∂C_lm = E[σ'_i σ'_j σ'_l σ'_m] = E[θθθθ], the orthant probability, by a central difference."""
    c = np.asarray(covariance())
    shift = np.zeros((4, 4))
    shift[2, 3] = shift[3, 2] = 1e-5
    slope = [float(piecewise(jnp.asarray(c + s * shift), 0, 1)[2, 3]) for s in (1, -1)]
    scale = 1 / np.sqrt(np.diagonal(c))
    rho = c * np.outer(scale, scale)
    pairs = sum(2 / math.pi * math.asin(rho[i, j]) for i in range(4) for j in range(i))
    orthant = (1 + pairs + float(_four_signs(jnp.asarray(c)))) / 16
    assert (slope[0] - slope[1]) / 2e-5 == pytest.approx(orthant, abs=1e-8)


def test_identical_relu_neurons():
    """Twins of one neuron: what each index gives is what the neuron itself gives."""
    c = np.asarray(covariance(3, 3))
    twins = [0, 0, 1, 2, 2]
    doubled = jnp.asarray(c[np.ix_(twins, twins)])
    for (i, j), (p, q) in (((0, 2), (0, 1)), ((0, 1), (0, 0)), ((1, 3), (0, 2))):
        found, wanted = piecewise(doubled, i, j), np.asarray(piecewise(jnp.asarray(c), p, q))
        np.testing.assert_allclose(found, wanted[np.ix_(twins, twins)], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("student", "teacher"), [("erf", "erf"), ("relu", "abs"), ("tanh", "erf"), ("quadratic", "hermite:3")]
)
def test_moments_are_a_gram_matrix(student, teacher):
    """Symmetric and positive semidefinite; with Δ constant it is E[σ'σ'], the partial by q12 of the interaction."""
    s, t = activations.get(student), activations.get(teacher)
    weights = jnp.asarray(RNG.normal(size=(3, 5)))
    found = np.asarray(gradient_moments(s, t, covariance(5, 3), weights, nodes_for(s, t)))
    np.testing.assert_allclose(found, found.T, atol=1e-15)
    assert np.linalg.eigvalsh(found)[0] > -1e-4 * np.linalg.eigvalsh(found)[-1]


def test_zero_norms():
    """A neuron without norm is the constant σ(0): E[σ'_i σ'_j σ(0)²] from the interaction of two."""
    sigma = activations.get("softplus")
    c = np.zeros((3, 3))
    c[:2, :2] = [[0.7, 0.2], [0.2, 0.4]]
    found = quadrature_averages(jnp.asarray(c), ZERO, ONE, 3, sigma, sigma, 32)[2, 2]
    one = Covariance(*(jnp.asarray(x) for x in (0.7, 0.2, 0.4, 0.7 * 0.4 - 0.04)))
    wanted = float(pair_partials(sigma, sigma, one).q12) * math.log(2) ** 2
    assert float(found) == pytest.approx(wanted, rel=1e-8)


def test_rules_for_activations():
    get = activations.get
    assert nodes_for(get("erf"), get("erf")) == nodes_for(get("relu"), get("abs")) == 0
    assert nodes_for(get("quadratic"), get("hermite:3")) == 6
    assert is_exact(get("erf"), get("erf"))
    assert not is_exact(get("tanh"), get("erf"))
    with pytest.raises(ValueError, match="both activations kinked or both smooth"):
        nodes_for(get("relu"), get("tanh"))
    with pytest.raises(ValueError, match="up to degree 12"):
        nodes_for(get("hermite:20"), get("hermite:20"))
