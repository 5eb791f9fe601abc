"""Claim `scenarios`: what each split of a minimum is, by the signs of Y."""

from typing import Any

import numpy as np

from understudy.papers.check import close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.few_neurons.four import minima, teacher
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.points.splitting import descent_beside, expected_kind, split_matrices
    from understudy.surgery import split
    from understudy.tasks import on_grid

    found: dict[str, Any] = {}
    wrong, told, spectra, zeros, orders = [], 0, [], [], []
    for name, network in minima().items():
        task, wide = on_grid(teacher(), 4), on_grid(teacher(), 5)
        for neuron in range(network.width):
            matrices = split_matrices(task, network, neuron)
            label = f"{name}, a = {float(network.outgoing[neuron]):.2f}"
            label = label if label not in found else label + " (twin)"
            found[label] = matrices.scenario
            for mu in settings["mus"]:
                progress(told / (8 * len(settings["mus"])), label)
                told += 1
                expected = expected_kind(matrices.scenario, mu)
                certificate = us.certify(wide, split(network, {neuron: [mu, 1 - mu]}))
                kind: str = certificate.kind
                if mu in (0.0, 1.0):
                    zeros.append(certificate.zeros)
                    orders.append(np.nan if certificate.way_down is None else certificate.way_down.order)
                    # A second route: lower losses beside the point. Rounding of a sum of squares of 1e-6 is below
                    # 1e-18.
                    falls = descent_beside(wide, lambda m, j=neuron, n=network: split(n, {j: [m, 1 - m]}), mu)  # type: ignore[misc]
                    kind = kind if min(falls) > 1e-18 else f"{kind} without a lower loss beside it"
                if kind != expected:
                    wrong.append(f"{label}, μ = {mu}: {kind}, expected {expected}")
            mirrored = [
                np.linalg.eigvalsh(np.asarray(wide.hessian(split(network, {neuron: [m, 1 - m]})))) for m in (-0.7, 1.7)
            ]
            spectra.append(float(np.abs(mirrored[0] - mirrored[1]).max()))
    kinds = sorted(set(found.values()))
    checks = [
        equal("split points of another kind than the scenario says", [], wrong),
        equal("scenarios met", ["i", "ii", "iii"], kinds),
        equal("zero eigenvalues at μ = 0 (two inputs and one output)", [3], sorted(set(zeros))),
        close("slope in the silent part's weight at distance δ, at μ = 0 and 1: order in δ", 2.0, orders, 0.2),
        close("μ and 1 - μ have one spectrum: largest difference", 0.0, max(spectra), 1e-12),
    ]
    notes = (
        "The sentence that ends Section 4, 'either for all μ in (0, 0.5] or for all μ > 0', must end in μ < 0, and it "
        "is no exclusive or: in scenario iii both hold."
    )
    return Measurement(checks, {"scenario of each neuron": found, "split points certified": told}, notes=notes)


CLAIM = Claim(
    paper="few-neurons",
    id="scenarios",
    where="Sec. 4, i-iii",
    statement=(
        "Splitting a neuron of a minimum: Y positive definite gives minima for μ in (0, 1) and strict saddles outside; "
        "negative definite the "
        "reverse; both signs, strict saddles throughout; at μ = 0 and 1 always a non-strict saddle."
    ),
    paper_value="i: minima in (0, 1); ii: minima outside [0, 1]; iii: none; non-strict saddles at 0 and 1",
    measured_by=(
        "Y by Eq. 19 at every neuron of the two local minima of the four-teacher example; certificates at split "
        "points, those at μ = 0 and 1 by the slopes in the outgoing weight of the silent part beside it; there also a "
        "lower loss at every of four shrinking distances."
    ),
    tolerance="exact",
    tolerance_reason="Verdicts.",
    quick={"mus": [-0.5, 0.0, 0.3]},
    full={"mus": [-3.0, -1.0, -0.2, 0.0, 0.1, 0.3, 0.5, 1.0, 1.5]},
    measure=_measure,
)
