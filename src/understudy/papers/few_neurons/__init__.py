"""Claims of "Towards a Complete Theory of Neural Networks with Few Neurons" (anonymous, under review)."""

from understudy.papers.few_neurons import (
    bounds,
    destinations,
    four_minima,
    growing,
    inertia,
    multi_output,
    one_neuron,
    potentials,
    sampled,
    sampled_destinations,
    scenarios,
    slips,
    splitting,
    toy_infinity,
    unequal,
)

CLAIMS = (
    one_neuron.CLAIM,
    sampled.CLAIM,
    splitting.CLAIM,
    inertia.CLAIM,
    scenarios.CLAIM,
    multi_output.CLAIM,
    bounds.CLAIMS[0],
    four_minima.CLAIM,
    bounds.CLAIMS[1],
    destinations.CLAIM,
    sampled_destinations.CLAIM,
    toy_infinity.CLAIM,
    growing.CLAIM,
    slips.RELU_POINTS,
    slips.SOFTPLUS_PROOF,
    unequal.CLAIM,
    potentials.CLAIM,
)
