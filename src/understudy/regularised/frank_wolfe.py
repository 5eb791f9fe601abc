"""The global minimum of a regularised network of depth two, with a certificate: Frank-Wolfe over the covariance cone.

At depth 2 the covariance loss C(Z) + λTr[K₁K₀⁺] + λTr[ZᵀZ(K^σ)⁺] is jointly convex in (K₁, K^σ, Z). For a set of
directions w_k (unit vectors) and weights α_k ≥ 0, K₁ = Σ α_k z_k z_kᵀ and K^σ = Σ α_k σ(z_k)σ(z_k)ᵀ + β²11ᵀ with z_k =
(Z^σ_0)ᵀw_k, so that Tr[K₁K₀⁺] = Σ α_k, and the loss minimised over Z is

  f(α) = λ Σ α_k + g(K^σ),   g(K) = min_V C(VK) + λTr[VKVᵀ],   Z = VK,   ∂f/∂α_k = λ(1 - ‖V σ(z_k)‖²).

Let ρ = max_w ‖V σ((Z^σ_0)ᵀw)‖² over unit w. Every competitor with a loss below f has Σα ≤ f/λ, so by convexity

  f - min L ≤ ⟨∇f, α⟩ + λ max(0, ρ - 1) f/λ.

This gap holds for networks of any width and for any upper bound of ρ: from enumeration (`ConeOracle`), from branch and
bound (`caps`), or from a semidefinite relaxation (`relaxation`). For the squared cost `dual_bound` is better where the
bound of ρ is loose. A corrective step minimises f over all α (the group lasso of the neurons found so far), so that the
first term vanishes. Before this step the neurons slide downhill.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import minimize

from understudy.activations import activate
from understudy.oracles.caps import branch_and_bound
from understudy.oracles.cone_oracle import MOST_INPUTS, MOST_SIGNS, ConeOracle, Maximum, sign_vectors
from understudy.oracles.local_search import search
from understudy.oracles.relaxation import Responses, relaxed_bound
from understudy.tasks.empirical import squared
from understudy.tasks.regularised import Regularised, Weights

Dual = np.ndarray | Array


@dataclass(frozen=True)
class GlobalMinimum:
    """`value` - `gap` ≤ min over all widths of L_λ ≤ `value`.

    `directions` (k × c) and `weights` (k,): the w_k and α_k; `network` the weights of a network of k neurons that has
    this loss; `history` (iterations × 2): value and lower bound along the way.
    """

    value: float
    gap: float
    directions: np.ndarray
    weights: np.ndarray
    network: Weights
    history: np.ndarray
    converged: bool

    @property
    def within(self) -> float:
        """The network's loss is at most this share of itself above the best one of any width; infinite if unknown."""
        return self.gap / self.value if self.value > 0 else 0.0

    def __str__(self) -> str:
        if not np.isfinite(self.gap):
            return f"loss {self.value:.9g}: the search was local and certifies nothing"
        loose = "; the bound may be loose, and the loss much closer to the best" if self.within > 0.05 else ""
        return f"loss {self.value:.9g}, within {100 * self.within:.3g} % of the best network of any width{loose}"


Oracle = Literal["auto", "exact", "caps", "relaxation", "local"]

MOST_DIMENSIONS = 4
"""Branch and bound over caps is the default up to this rank of the inputs (with bias)."""


def minimise_globally(
    task: Regularised, *, tolerance: float = 1e-4, iterations: int = 300, oracle: Oracle = "auto"
) -> GlobalMinimum:
    """The minimum of L_λ over networks of depth 2 and any width, and how far the result can be above it.

    **Arguments**

    - `tolerance`: stop when the relative gap is this small.
    - `iterations`: stop after this many rounds; the gap is then that of the last one.
    - `oracle`: how ρ is bounded. `"exact"` enumerates sign patterns (N ≤ 9 inputs). `"caps"` is branch and bound over
      the sphere, for inputs that span few dimensions; it closes the gap there for any N. `"relaxation"` is a
      semidefinite relaxation for any N, with a gap that it states. `"local"` searches for directions and certifies
      nothing: the gap is infinite. `"auto"`: exact up to 9 inputs, and for more that have at most 60,000 sign
      vectors (80 inputs of rank 3, with bias); then caps up to rank 4, then the relaxation.

    >>> task = Regularised([[1.0], [-1.0]], [[1.0], [1.0]], (2,), penalty=0.1, bias=0.0, weights=[1.0, 1.0])
    >>> round(minimise_globally(task).value, 9)  # 2((1 - c)² + 2λc) at c = 1 - λ
    0.38
    """
    if task.depth != 2:
        raise ValueError(
            f"The covariance loss is jointly convex at depth 2 only; received depth {task.depth}. For deeper networks "
            "block_gap gives the gap of one layer with the others fixed."
        )
    entry = np.asarray(task.entry)
    bounds = _oracle(oracle, entry, task)
    directions, alpha = np.zeros((0, entry.shape[0])), np.zeros(0)
    duals: Dual = np.zeros((task.widths[-1], task.samples))
    history: list[tuple[float, float]] = []
    value = gap = np.inf
    lower = -np.inf
    for number in range(iterations):
        directions, alpha = _slide(task, directions, alpha, duals)
        alpha, value, duals = _correct(task, directions, alpha, duals)
        keep = alpha > 1e-12 * alpha.max(initial=1e-300)
        directions, alpha = directions[keep], alpha[keep]
        v = np.asarray(duals)
        last = number == iterations - 1
        found = bounds(v, tolerance, last)
        along = float(task.penalty * alpha @ (1 - _responses(task, directions, v)))
        if np.isfinite(found.upper):
            convex = value - (max(along, 0.0) + max(found.upper - 1, 0.0) * value)
            lower = max(lower, convex, dual_bound(task, v, found.upper))
        gap = value - lower
        history.append((value, lower))
        if gap <= tolerance * value or found.value <= 1 + 0.01 * tolerance or last:
            break
        directions = np.concatenate([directions, found.direction[None]])
        alpha = np.concatenate([alpha, [1e-3 * (1 + alpha.mean() if len(alpha) else 1.0)]])
    network = _network(task, directions, alpha, np.asarray(duals))
    converged = bool(gap <= tolerance * max(value, 1e-300))
    return GlobalMinimum(value, gap, directions, alpha, network, np.array(history), converged)


def _oracle(name: Oracle, entry: np.ndarray, task: Regularised) -> Callable[[np.ndarray, float, bool], Maximum]:
    """A function from V and a tolerance to a large response, an upper bound of all responses, and a direction.

    The upper bound is infinite where another round can follow and needs none. The last argument says that none can.
    """
    if name not in get_args(Oracle):
        raise ValueError(f"oracle is one of {', '.join(get_args(Oracle))}; received {name!r}.")
    if name == "exact" or (name == "auto" and entry.shape[1] <= MOST_INPUTS):
        exact, none = ConeOracle(entry, task.activation), np.zeros((task.samples, task.samples))
        return lambda v, tolerance, last: exact.maximise(none, v.T @ v)
    responses = Responses.of(entry, task.activation)
    listed = None
    if name == "auto":
        name = "caps" if responses.rank <= MOST_DIMENSIONS else "relaxation"
        if sign_vectors(task.samples, responses.rank) <= MOST_SIGNS:
            with contextlib.suppress(ValueError):  # inputs in special positions have too many sign vectors
                listed = ConeOracle(entry, task.activation)

    def bounded(v: np.ndarray, tolerance: float, last: bool) -> Maximum:
        value, direction = search(responses, v)
        if name == "local":
            return Maximum(value, np.inf, direction)
        if value > 1 + 0.01 * tolerance and not last:
            return Maximum(value, np.inf, direction)
        if listed is not None:
            return listed.maximise(np.zeros((task.samples, task.samples)), v.T @ v)
        if name == "caps":
            upper, _ = branch_and_bound(responses, v, max(value, 1.0), tolerance=0.1 * tolerance)
        else:
            upper = relaxed_bound(responses, v)
        return Maximum(value, max(upper, value), direction)

    return bounded


def dual_bound(task: Regularised, duals: np.ndarray, upper: float) -> float:
    """A lower bound of the loss of every network of any width, from V and an upper bound of ρ(V); squared cost only.

    Fenchel duality gives min L ≥ D(V) = Σ_s (2λ v_s·y_s - λ²‖v_s‖²/p_s) - λβ²‖V 1‖² for every V with ρ(V) ≤ 1. Because
    ρ(tV) = t²ρ(V), this is the largest D(tV) with t² ≤ 1/upper. It is -inf for other costs.
    """
    if task.cost is not squared:
        return -np.inf
    weights, targets = np.asarray(task.sample_weights), np.asarray(task.targets).T
    linear = task.penalty * float(np.sum(duals * targets))
    seen = weights > 0
    square = task.penalty**2 * float(np.sum(duals[:, seen] ** 2 / weights[seen])) + task.penalty * task.bias**2 * float(
        np.sum(duals.sum(axis=1) ** 2)
    )
    if np.any(duals[:, ~seen]) or linear <= 0:
        return 0.0  # D(0)
    t = min(linear / max(square, 1e-300), 1 / np.sqrt(max(upper, 1e-300)))
    return 2 * linear * t - square * t**2


def _activated(task: Regularised, directions: np.ndarray) -> np.ndarray:
    """σ(z_k), one row per direction."""
    return activate(task.activation, directions @ np.asarray(task.entry))


def _responses(task: Regularised, directions: np.ndarray, duals: np.ndarray) -> np.ndarray:
    """‖V σ(z_k)‖² of every direction."""
    return np.sum((duals @ _activated(task, directions).T) ** 2, axis=0)


def _slide(task: Regularised, directions: np.ndarray, alpha: np.ndarray, duals: Dual) -> tuple[np.ndarray, np.ndarray]:
    """Move the neurons u_k = √α_k w_k downhill on λΣ‖u_k‖² + g(K^σ), and join those that have become parallel.

    The slope is 2λ(u_k - Z^σ_0 [σ'(z_k) ∘ VᵀVσ(z_k)]). This step makes the gap close fast, because the oracle's
    directions are only near the best ones.
    """
    if not len(alpha):
        return directions, alpha
    entry = np.asarray(task.entry)
    slope, kink = task.slopes
    state: dict[str, Dual] = {"V": duals}
    shape = directions.shape

    def both(flat: np.ndarray) -> tuple[float, np.ndarray]:
        u = flat.reshape(shape)
        z = u @ entry
        active = activate(task.activation, z)
        value, state["V"] = inner_minimum(task, active.T @ active + task.bias**2, state["V"])
        v = np.asarray(state["V"])
        pull = (slope + kink * np.sign(z)) * (active @ v.T @ v)
        return task.penalty * float(np.sum(u**2)) + value, 2 * task.penalty * (u - pull @ entry.T).ravel()

    start = (np.sqrt(alpha)[:, None] * directions).ravel()
    options = {"maxiter": 300, "maxfun": 600, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30}
    moved = minimize(both, start, jac=True, method="L-BFGS-B", options=options).x.reshape(shape)
    joined: list[np.ndarray] = []
    for u in sorted(moved, key=lambda u: -float(u @ u)):
        size = float(np.linalg.norm(u))
        if size <= 1e-9 * float(np.linalg.norm(moved)):
            continue
        for i, other in enumerate(joined):
            length = float(np.linalg.norm(other))
            if np.linalg.norm(u / size - other / length) <= 1e-6:
                joined[i] = other / length * np.sqrt(length**2 + size**2)
                break
        else:
            joined.append(u)
    if not joined:
        return directions, alpha
    stacked = np.stack(joined)
    lengths = np.linalg.norm(stacked, axis=1)
    return stacked / lengths[:, None], lengths**2


def _correct(
    task: Regularised, directions: np.ndarray, alpha: np.ndarray, duals: Dual
) -> tuple[np.ndarray, float, Dual]:
    """Minimise f over α ≥ 0: L-BFGS with bounds, then Newton's method on the positive ones."""
    active = _activated(task, directions)
    state: dict[str, Dual] = {"V": duals}

    def both(a: np.ndarray) -> tuple[float, np.ndarray]:
        gram = active.T @ (a[:, None] * active) + task.bias**2
        value, state["V"] = inner_minimum(task, gram, state["V"])
        response = np.sum((np.asarray(state["V"]) @ active.T) ** 2, axis=0)
        return task.penalty * float(a.sum()) + value, task.penalty * (1 - response)

    if len(alpha):
        options = {"maxiter": 2000, "maxfun": 4000, "ftol": 0.0, "gtol": 1e-13, "maxcor": 30}
        alpha = minimize(both, alpha, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(alpha), options=options).x
    value, _ = both(alpha)
    return alpha, value, state["V"]


def inner_minimum(task: Regularised, gram: np.ndarray, start: Dual) -> tuple[float, Dual]:
    """g(K) = min_V C(VK) + λTr[VKVᵀ] and its V; -2λV is the gradient of C at the output VK.

    Squared cost Σ_s p_s ‖·‖²: column-wise V = Y P (K P + λ)⁻¹ with P = diag(p); other costs by Newton's method on the
    stationarity 2λV + ∇C(VK) = 0.
    """
    if task.cost is squared:
        weights, targets = np.asarray(task.sample_weights), np.asarray(task.targets).T
        system = gram * weights[None, :] + task.penalty * np.eye(len(gram))
        dual = np.linalg.solve(system.T, (targets * weights).T).T
        output = dual @ gram
        missing = float(np.sum((output - targets) ** 2 @ weights))
        return missing + task.penalty * float(np.sum(dual * output)), dual
    return _inner_newton(task, jnp.asarray(gram), jnp.asarray(start))


def _inner_newton(task: Regularised, gram: Array, dual: Array) -> tuple[float, Array]:
    """Newton's method on 2λV + ∇C(VK) = 0 with a line search on its norm."""
    for _ in range(100):
        residual, _, move = _newton_move(task, gram, dual)
        if float(jnp.abs(residual).max()) <= 1e-15:
            break
        share = 1.0
        while share > 1e-10:
            trial = dual + share * move
            if float(jnp.linalg.norm(_stationarity(task, gram, trial))) < float(jnp.linalg.norm(residual)):
                break
            share /= 2
        else:
            break
        dual = trial
    return float(_newton_move(task, gram, dual)[1]), dual


@eqx.filter_jit
def _stationarity(task: Regularised, gram: Array, dual: Array) -> Array:
    return 2 * task.penalty * dual + jax.grad(task.output_cost)(dual @ gram)


@eqx.filter_jit
def _newton_move(task: Regularised, gram: Array, dual: Array) -> tuple[Array, Array, Array]:
    residual = _stationarity(task, gram, dual)
    jacobian = jax.jacfwd(lambda v: _stationarity(task, gram, v.reshape(dual.shape)).ravel())(dual.ravel())
    value = task.output_cost(dual @ gram) + task.penalty * jnp.sum(dual * (dual @ gram))
    return residual, value, -jnp.linalg.solve(jacobian, residual.ravel()).reshape(dual.shape)


def _network(task: Regularised, directions: np.ndarray, alpha: np.ndarray, duals: np.ndarray) -> Weights:
    """Neurons w = √α_k w_k with outgoing weights √α_k V σ(z_k), and the output's bias V 1 β."""
    incoming = np.sqrt(alpha)[:, None] * directions
    outgoing = (np.sqrt(alpha)[:, None] * _activated(task, directions)) @ duals.T
    last = outgoing.T
    if task.bias:
        last = np.concatenate([last, task.bias * duals.sum(axis=1, keepdims=True)], axis=1)
    return jnp.asarray(incoming), jnp.asarray(last)


def block_gap(task: Regularised, parameters: object, layer: int) -> tuple[float, float]:
    """How far the covariances of hidden layer `layer` (from 1) could lower the loss if all others are fixed: (gap, ρ).

    The loss is convex in the pair (K_ℓ, K^σ_ℓ), for the last hidden layer jointly with Z_L. Its part is
    λTr[K_ℓ(K^σ_{ℓ-1})⁺] + λTr[K_{ℓ+1}(K^σ_ℓ)⁺], and Tr[ZK⁺Zᵀ] = max_V 2Tr[VZᵀ] - Tr[VKVᵀ]: any V with V K^σ_ℓ = Z_{ℓ+1}
    gives a subgradient. V = -(∂C/∂Z_{ℓ+1})/2λ, back-propagated, is one at a critical point. At other points the gap is
    computed with V = W_{ℓ+1}(Z^σ_ℓ)⁺ᵀ.
    """
    from understudy.regularised.forces import signals
    from understudy.regularised.representation import activations_before, to_representations, to_weights

    layers = to_representations(task, parameters)
    before = activations_before(task, layers)
    weights = [np.asarray(w) for w in to_weights(task, layers)]
    signal = signals(task, parameters)[layer]
    dual = -signal / (2 * task.penalty)
    mismatch = float(np.linalg.norm(dual @ before[layer].T - weights[layer])) / max(
        float(np.linalg.norm(weights[layer])), 1e-300
    )
    if mismatch > 1e-6:
        dual = weights[layer] @ np.linalg.pinv(before[layer]).T
    gram = dual.T @ dual
    found = ConeOracle(before[layer - 1], task.activation).maximise(np.zeros_like(gram), (gram + gram.T) / 2)
    own = task.penalty * float(np.sum(weights[layer - 1] ** 2))
    following = float(np.sum(weights[layer] ** 2)) * task.penalty
    if layer == task.depth - 1:
        following += float(task.output_cost(jnp.asarray(layers[-1])))
    neurons = np.sum((dual @ before[layer][: task.widths[layer]].T) ** 2)
    along = own - task.penalty * float(neurons)
    return max(along, 0.0) + max(found.upper - 1, 0.0) * (own + following), found.upper
