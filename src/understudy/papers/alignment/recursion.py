"""Claim `recursion`: the backpropagated gradient of every layer is a mixture of teacher and student activations."""

from __future__ import annotations

from functools import cache
from typing import Any

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def autodiff(network: Any, inputs: Any, targets: Any) -> list[Any]:
    """-∂J/∂z_l of every layer and sample, J = ½‖f* - f‖², by automatic differentiation: z_l shifted, the shift
    differentiated.
    """
    import jax.numpy as jnp

    zeros = [jnp.zeros((len(inputs), len(w))) for w in network.weights]
    return [-g for g in _slopes()(zeros, network, inputs, targets)]


@cache
def _slopes() -> Any:
    """The compiled gradient of J with respect to the shifts, one program for all networks of the same widths."""
    import jax
    import jax.numpy as jnp

    def cost(shifts: list[Any], network: Any, inputs: Any, targets: Any) -> Any:
        x = inputs
        for l, (w, b, shift) in enumerate(zip(network.weights, network.biases, shifts, strict=True), start=1):
            z = x @ w.T
            z = z + jnp.broadcast_to(b, z.shape) + shift
            x = z if l == network.depth else jax.nn.relu(z)
        return 0.5 * jnp.sum((targets - x) ** 2)

    return jax.jit(jax.grad(cost))


def _constancy(student: Any, teacher: Any, layer: int, mixtures: Any) -> tuple[float, int, int]:
    """Largest spread of A_l and B_l among samples with equal gates above l, how many regions, and how many with
    several samples.
    """
    import numpy as np

    gates = [np.asarray(v.gates) for views in (student, teacher) for v in views[layer + 1 :]]
    patterns = np.concatenate(gates, axis=1)
    _, region = np.unique(patterns, axis=0, return_inverse=True)
    region = region.ravel()
    largest, shared = 0.0, 0
    for r in range(region.max() + 1):
        inside = np.flatnonzero(region == r)
        if len(inside) > 1:
            shared += 1
            largest = max(largest, *(float(np.max(np.ptp(np.asarray(m)[inside], axis=0))) for m in mixtures))
    return largest, int(region.max() + 1), shared


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import jax.numpy as jnp
    import numpy as np

    from understudy.alignment import backpropagated, mixtures, view
    from understudy.networks import Deep

    direct, mixed, spread, regions, changes, lowest = [], [], [], [], [], []
    low, high = settings["widths"]
    for depth in progress.over(settings["depths"], "depth"):
        rng = np.random.default_rng(depth)
        widths = [settings["dim"], *rng.integers(low, high, size=depth - 1).tolist(), settings["outputs"]]
        for seed in range(settings["networks"]):
            over = [widths[0], *(2 * n for n in widths[1:-1]), widths[-1]]
            teacher = Deep.glorot(widths, seed=seed, bias=0.3)
            student = Deep.glorot(over, seed=seed + 1000, bias=0.3)
            x = jnp.asarray(rng.normal(size=(settings["samples"], settings["dim"])))
            above, below = view(student, x), view(teacher, x)
            truth = autodiff(student, x, teacher(x, "relu"))
            found = backpropagated(above, below)
            for layer, (g, h) in enumerate(zip(truth, found, strict=True)):
                scale = float(jnp.max(jnp.abs(g)))
                direct.append(float(jnp.max(jnp.abs(g - h))) / scale)
                a, b = mixtures(above[layer], below[layer])
                f, t = (
                    jnp.concatenate([v.activations, jnp.ones((len(x), 1))], axis=1)
                    for v in (above[layer], below[layer])
                )
                whole = jnp.einsum("skj,sj->sk", a, t) - jnp.einsum("skj,sj->sk", b, f)
                mixed.append(float(jnp.max(jnp.abs(above[layer].gates * whole[:, :-1] - g))) / scale)
                if layer + 1 < depth:
                    largest, count, shared = _constancy(above, below, layer, (a, b))
                    spread.append(largest)
                    regions.append(shared)
                    if layer == 0 and count > 1:
                        changes.append(float(jnp.max(jnp.ptp(b, axis=0))))
                    if layer == depth - 2:
                        lowest.append(count)
    checks = [
        at_most("g_l by V_l against automatic differentiation, relative", direct, bound=1e-12),
        at_most("D_l(A_l f*_l - B_l f_l) against automatic differentiation, relative", mixed, bound=1e-12),
        at_most("spread of A_l and B_l within regions of equal gates above", spread, bound=1e-12),
        at_least("regions with several samples, all layers", sum(regions), bound=1),
        at_least("B_1 differs between regions in deep networks", changes, bound=1e-6),
        equal("below the last layer there is one region", 1, max(lowest)),
    ]
    measured = {"largest relative deviation": max(direct + mixed), "gradients compared": len(direct)}
    return Measurement(checks, measured, {"direct": np.array(direct), "mixed": np.array(mixed)})


CLAIM = Claim(
    paper="alignment",
    id="recursion",
    where="Lemma 1, Cor. 1, App. 9.1, 9.3",
    statement=(
        "At every layer and sample the backpropagated gradient is g_l = D_l(A_l f*_l - B_l f_l), with A_l = V_lᵀV*_l, "
        "B_l = V_lᵀV_l from a recursion over the layers above; A_l and B_l are constant where no gate above switches."
    ),
    paper_value="equality",
    measured_by=(
        "Random teachers and twice as wide students with biases, depths 2 to 6, sample by sample against automatic "
        "differentiation."
    ),
    tolerance=1e-12,
    tolerance_reason="Products of up to six matrices of a few dozen rows in rounded arithmetic.",
    quick={"depths": [2, 4], "networks": 1, "samples": 64, "dim": 4, "widths": [4, 9], "outputs": 3},
    full={"depths": [2, 3, 4, 5, 6], "networks": 10, "samples": 1000, "dim": 10, "widths": [10, 31], "outputs": 5},
    measure=_measure,
)
