"""The largest response ρ(V) = max ‖V σ(Bᵀw)‖² over ‖w‖ = 1, by the method that fits the inputs."""

import contextlib

import numpy as np

from understudy.activations import Activation
from understudy.oracles.caps import branch_and_bound
from understudy.oracles.cone_oracle import MOST_INPUTS, MOST_SIGNS, ConeOracle, Maximum, sign_vectors
from understudy.oracles.local_search import search
from understudy.oracles.relaxation import Responses, relaxed_bound

MOST_DIMENSIONS = 4
"""Branch and bound over caps is taken up to this rank of the inputs (with bias)."""


def largest_response(
    basis: np.ndarray, activation: Activation, duals: np.ndarray, *, enough: float, tolerance: float
) -> Maximum:
    """A response that is reached, its direction, and an upper bound of all responses.

    `basis` is B (c × N), `duals` V (m × N). Up to 9 inputs are enumerated, and more if they span few dimensions. Others
    have branch and bound up to four dimensions, and a relaxation beyond. The bound is at most
    (1 + tolerance) max(ρ, enough) where the method allows it, and infinite if a response above `enough` was found.
    """
    responses, count = Responses.of(basis, activation), basis.shape[1]
    if count <= MOST_INPUTS or sign_vectors(count, responses.rank) <= MOST_SIGNS:
        with contextlib.suppress(ValueError):  # inputs in special positions have too many sign vectors
            return ConeOracle(basis, activation).maximise(np.zeros((count, count)), duals.T @ duals)
    value, direction = search(responses, duals)
    if value > enough:
        return Maximum(value, np.inf, direction)
    if responses.rank <= MOST_DIMENSIONS:
        upper, _ = branch_and_bound(responses, duals, enough, tolerance=tolerance)
    else:
        upper = relaxed_bound(responses, duals)
    return Maximum(value, max(upper, value), direction)
