"""Merging by name does what the functions behind the names do."""

import numpy as np
import pytest

from understudy.networks import TwoLayer
from understudy.surgery import merge, merge_by_activity
from understudy.surgery.methods import METHODS, change_elsewhere, merge_by

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(5, 2))
NETWORK = TwoLayer([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [-1.0, 1.0]], [1.0, 1.0, 3.0, 0.5])


def same(one, other):
    return all(np.array_equal(a, b) for a, b in ((one.incoming, other.incoming), (one.outgoing, other.outgoing)))


def test_names_stand_for_functions():
    assert same(merge_by("weights", NETWORK, "relu").network, merge(NETWORK, "relu").network)
    expected = merge(NETWORK, "relu", inputs=INPUTS).network
    assert same(merge_by("activations", NETWORK, "relu", INPUTS).network, expected)
    expected = merge_by_activity(NETWORK, INPUTS, "relu").network
    assert same(merge_by("activity", NETWORK, "relu", INPUTS).network, expected)


def test_the_change_is_measured_on_given_inputs():
    assert merge_by("weights", NETWORK, "relu").report.inputs == "probes"
    assert merge_by("weights", NETWORK, "relu", INPUTS).report.inputs == "data"


@pytest.mark.parametrize("method", METHODS)
def test_outputs_are_kept_on_the_inputs_and_elsewhere_only_by_weights(method):
    merged = merge_by(method, NETWORK, "relu", INPUTS)
    assert merged.report.relative_change < 1e-9
    elsewhere = change_elsewhere(NETWORK, merged, "relu", INPUTS)
    assert elsewhere < 1e-12 or method != "weights"


def test_what_cannot_be_done_is_said():
    with pytest.raises(ValueError, match="received 'luck'"):
        merge_by("luck", NETWORK, "relu", INPUTS)
    with pytest.raises(ValueError, match="need inputs; received 'activity' and no inputs"):
        merge_by("activity", NETWORK, "relu")
    with pytest.raises(ValueError, match=r"N\(N\+1\) = 2450 neurons per layer for N = 49"):
        merge_by("covariance", NETWORK, "relu", RNG.normal(size=(49, 2)))
