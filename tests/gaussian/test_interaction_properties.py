"""What holds of an expectation of two neurons at all norms and correlations."""

import numpy as np
import pytest

import understudy as us
from cases import thorough_but
from examples import arrays, few_or_many, for_all
from understudy.gaussian import has_closed_form

LARGEST = 4.0
NAMES = thorough_but(["erf", "relu", "hermite:3", "softplus", "tanh", "gelu"], ["erf", "relu"])


@few_or_many
@pytest.mark.parametrize("name", NAMES)
def test_cauchy_schwarz_and_exchange(name, examples):
    sigma = us.activations.get(name)
    parity = sigma.parity
    if not has_closed_form(sigma, sigma):
        examples //= 5  # each takes a quadrature, of the same number of nodes, so that one program serves all

    @for_all(arrays(8, largest=LARGEST), arrays(8, largest=LARGEST), arrays(8, largest=1.0), examples=examples)
    def check(first, second, cosine):
        r, s = np.abs(first) + 1e-3, np.abs(second) + 1e-3
        r[0] = s[0] = LARGEST
        both, other = (np.asarray(us.interaction(name, *x)) for x in ((r, s, cosine), (s, r, cosine)))
        own, own_other = (np.asarray(us.interaction(name, x, x, np.ones(8))) for x in (r, s))
        noise = 1e-12 * (1 + own + own_other)
        assert np.all(both**2 <= own * own_other + noise * (own + own_other))
        assert np.all(np.abs(both - other) <= noise)
        assert np.all(2 * both <= own + own_other + noise)
        if parity is not None:
            mirrored = np.asarray(us.interaction(name, r, s, -cosine))
            assert np.all(np.abs(mirrored - (1 if parity == "even" else -1) * both) <= noise)
