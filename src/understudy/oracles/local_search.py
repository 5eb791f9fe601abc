"""A local search for the oracle. It finds directions of large response, and certifies nothing."""

import numpy as np

from understudy.oracles.relaxation import Responses


def search(responses: Responses, duals: np.ndarray, *, starts: int = 20, seed: int = 0) -> tuple[float, np.ndarray]:
    """The largest ‖Vσ(Bᵀw)‖² over ‖w‖ = 1 that was found, and its w in the coordinates of B's rows.

    The best of random directions and of the directions of single inputs are improved by L-BFGS. The true maximum may be
    larger: this is a lower bound of ρ(V).
    """
    from scipy.optimize import minimize  # slow to import, and rarely needed

    rank = responses.rank
    if rank == 0:
        return 0.0, np.eye(responses.frame.shape[0])[0]
    draw = np.random.default_rng(seed).normal(size=(50 * starts, rank))
    inputs = responses.inner.T[: 50 * starts]
    trials = np.concatenate([draw, inputs, -inputs])
    lengths = np.linalg.norm(trials, axis=1, keepdims=True)
    trials = (trials / np.maximum(lengths, 1e-300))[lengths[:, 0] > 0]
    order = np.argsort(-responses.values(duals, trials))[:starts]
    scale = max(float(responses.values(duals, trials[order[:1]])[0]), 1e-300)

    def both(w: np.ndarray) -> tuple[float, np.ndarray]:
        length = float(np.linalg.norm(w))
        unit = w / length
        z = unit @ responses.inner
        output = duals @ (responses.linear * z + responses.kink * np.abs(z))
        slope = responses.inner @ ((responses.linear + responses.kink * np.sign(z)) * (duals.T @ output))
        tangent = (slope - (slope @ unit) * unit) / length
        return -float(output @ output) / scale, -2 * tangent / scale

    best, where = -np.inf, trials[order[0]]
    for trial in trials[order]:
        found = minimize(both, trial, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
        unit = found / np.linalg.norm(found)
        value = float(responses.values(duals, unit[None])[0])
        if value > best:
            best, where = value, unit
    return best, responses.frame @ where
