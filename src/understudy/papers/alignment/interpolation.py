"""Claim `interpolation`: where the gradient of every batch vanishes, every sample's own gradient does."""

from __future__ import annotations

import itertools
from typing import Any

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _parts(student: Any, teacher: Any, x: Any) -> list[Any]:
    """U_i = g_l(x_i) f_{l-1}(x_i)ᵀ of every layer, (samples, n_l, n_{l-1} + 1), the constant node last."""
    import jax.numpy as jnp

    from understudy.alignment import backpropagated, view

    views = view(student, x)
    below = [x, *(v.activations for v in views[:-1])]
    ones = jnp.ones((len(x), 1))
    gradients = backpropagated(views, view(teacher, x))
    return [
        jnp.einsum("sk,sj->skj", g, jnp.concatenate([f, ones], axis=1)) for g, f in zip(gradients, below, strict=True)
    ]


def _batch_gradients(student: Any, x: Any, y: Any, batches: Any) -> list[Any]:
    """Negative gradients of ½ Σ ‖f* - f‖² over each batch with respect to weights and bias, by automatic
    differentiation.
    """
    import jax
    import jax.numpy as jnp

    def cost(network: Any, chosen: Any) -> Any:
        return 0.5 * jnp.sum((network(x[chosen], "relu") - y[chosen]) ** 2)

    slopes = jax.jit(jax.vmap(jax.grad(cost), in_axes=(None, 0)))(student, batches)
    return [-jnp.concatenate([w, b[:, :, None]], axis=2) for w, b in zip(slopes.weights, slopes.biases, strict=True)]


def split_teacher(teacher: Any, copies: int, seed: int) -> Any:
    """A student that is the teacher with every hidden node split into `copies` of random sizes: it interpolates."""
    import jax.numpy as jnp
    import numpy as np

    from understudy.networks import Deep

    rng = np.random.default_rng(seed)
    weights, biases = [np.asarray(w) for w in teacher.weights], [np.asarray(b) for b in teacher.biases]
    for l in range(len(weights) - 1):
        count = len(weights[l])
        size, share = rng.uniform(0.5, 2, size=count * copies), rng.dirichlet(np.ones(copies), size=count).ravel()
        which = np.repeat(np.arange(count), copies)
        weights[l], biases[l] = size[:, None] * weights[l][which], size * biases[l][which]
        weights[l + 1] = weights[l + 1][:, which] * share / size
    return Deep(tuple(jnp.asarray(w) for w in weights), tuple(jnp.asarray(b) for b in biases))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import jax.numpy as jnp
    import numpy as np

    from understudy.networks import Deep

    samples, batch = settings["samples"], settings["batch"]
    batches = np.array(list(itertools.combinations(range(samples), batch)))
    incidence = np.zeros((len(batches), samples))
    np.put_along_axis(incidence, batches, 1.0, axis=1)
    inverse = np.linalg.pinv(incidence)
    recovered, zero, moved, dead, alive = [], [], [], [], []
    for depth in progress.over(settings["depths"], "depth"):
        for seed in range(settings["networks"]):
            rng = np.random.default_rng([depth, seed])
            widths = [4, *([5] * (depth - 1)), 3]
            teacher = Deep.glorot(widths, seed=seed, bias=0.3)
            x = jnp.asarray(rng.normal(size=(samples, 4)))
            y = teacher(x, "relu")
            other = Deep.glorot([4, *([7] * (depth - 1)), 3], seed=seed + 100, bias=0.3)
            for part, gradient in zip(
                _parts(other, teacher, x), _batch_gradients(other, x, y, jnp.asarray(batches)), strict=True
            ):
                back = np.einsum("sb,bkj->skj", inverse, np.asarray(gradient))
                recovered.append(float(np.max(np.abs(back - np.asarray(part)))) / float(np.max(np.abs(part))))
            student = split_teacher(teacher, 2, seed)
            zero.append(max(float(jnp.max(jnp.abs(p))) for p in _parts(student, teacher, x)))
            moved.append(float(jnp.max(jnp.abs(student.weights[0][:5] - teacher.weights[0]))))
            # A network whose first layer is silent: g_2 f_1ᵀ vanishes in the weights because f_1 does, and not g_2.
            silent = Deep(other.weights, (jnp.full(7, -100.0), *other.biases[1:]))
            second = np.asarray(_parts(silent, teacher, x)[1])
            dead.append(float(np.max(np.abs(second[:, :, :-1]))))
            alive.append(float(np.max(np.abs(second[:, :, -1]))))
    averaged = _critical_for_the_mean(teacher, x)
    checks = [
        equal("rank of the matrix of batches against samples", samples, int(np.linalg.matrix_rank(incidence))),
        at_most(
            "g_l f_{l-1}ᵀ of single samples, recovered from the gradients of batches, relative", recovered, bound=1e-11
        ),
        at_most("students that interpolate: largest g_l f_{l-1}ᵀ of any sample", zero, bound=1e-13),
        at_least("those students' distance from the teacher's weights", moved, bound=0.01),
        at_most("a silent layer: g_2 f_1ᵀ vanishes with f_1", dead, bound=0.0),
        at_least("there g_2 itself does not, and the bias sees it", alive, bound=1e-3),
        at_most("a point where the mean gradient vanishes: gradient", averaged["mean"], bound=1e-12),
        at_least("there every single sample's gradient does not", averaged["single"], bound=1e-3),
    ]
    measured = {
        "largest relative deviation": max(recovered),
        "batches": len(batches),
        "largest gradient of a sample at interpolation": max(zero),
    }
    return Measurement(
        checks,
        measured,
        notes=f"All {len(batches)} batches of {batch} among {samples} samples, depths {settings['depths']}.",
    )


def _critical_for_the_mean(teacher: Any, x: Any) -> dict[str, float]:
    """A silent student whose output is the mean of the targets: the gradient over all samples vanishes, that of a
    single sample does not.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    silent = jax.tree.map(jnp.zeros_like, teacher)
    y = teacher(x, "relu")
    student = type(teacher)(silent.weights, (*silent.biases[:-1], jnp.mean(y, axis=0)))
    whole = _batch_gradients(student, x, y, jnp.arange(len(x))[None])
    single = _parts(student, teacher, x)
    return {
        "mean": max(float(jnp.max(jnp.abs(g))) for g in whole),
        "single": float(np.max(np.abs(np.asarray(single[-1])), axis=(1, 2)).min()),
    }


CLAIM = Claim(
    paper="alignment",
    id="interpolation",
    where="Thm 1, Def. 1, App. 9.2",
    statement=(
        "At a point where the gradient of every batch vanishes, each sample has g_l = 0 or f_{l-1} = 0; with biases "
        "g_l = 0, and the training loss is zero."
    ),
    paper_value="g_l f_{l-1}ᵀ = 0 for every sample",
    measured_by=(
        "The gradients of all batches of a small data set are a linear image, of full rank, of those of the samples: "
        "these are recovered from automatic derivatives of batch losses and compared with Lemma 1; students that "
        "interpolate, a silent layer, and a point that is critical for the mean only."
    ),
    tolerance="1e-11 relative; 1e-13",
    tolerance_reason=(
        "Rounding times the condition of the matrix of batches; fan-out sums of split nodes cancel to rounding."
    ),
    quick={"samples": 7, "batch": 3, "depths": [2, 3], "networks": 2},
    full={"samples": 10, "batch": 4, "depths": [2, 3, 4, 5], "networks": 10},
    measure=_measure,
)
