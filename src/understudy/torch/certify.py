"""`certify`: how near a trained network is to a critical point of its loss, and what the curvature there says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from understudy.tables import Printed
from understudy.torch.batches import Sample, gather
from understudy.torch.curvature import Landscape, Loss, RitzSpectrum, gain_within, lanczos
from understudy.torch.edit import duplicate
from understudy.torch.model import check_model
from understudy.torch.progress import ProgressBar

NEARBY = 0.01
"""Falls of the loss are counted within this share of the parameters' length, where a quadratic model can be trusted."""
DENSE = 400
"""Parameters up to which all eigenvalues are computed, so that a minimum can be told from what Lanczos missed."""


@dataclass(frozen=True)
class LayerBalance:
    """The two forces on one layer's weights W at a minimum of C + λ/2 ‖θ‖², as derivatives along W.

    **Attributes**

    - `attraction`: λ ‖W‖², the pull of weight decay to the origin.
    - `repulsion`: ⟨∂C/∂W, W⟩, the push of the data; the negative of the attraction at a minimum.
    - `residual`: ‖λW + ∂C/∂W‖ / ‖λW‖, zero at a minimum.
    """

    path: str
    attraction: float
    repulsion: float
    residual: float


@dataclass(frozen=True)
class TrainedCertificate(Printed):
    """What is known about the point that training has reached.

    **Attributes**

    - `kind`: `"unconverged"` (the gradient still gives a fall of more than `tolerance`), `"strict saddle"` (critical,
      with a direction of descent), `"minimum"` (critical, all eigenvalues computed, all positive), `"probable minimum"`
      (critical, no descent found, but Lanczos cannot prove that there is none), or `"undecided"` (flat directions).
    - `loss`, `scale`: the loss with weight decay, and that of a constant output.
    - `gradient_norm`, `distance`: ‖∇L‖, and ‖∇L‖ / (|λ|max ‖θ‖): at least this share of the parameters must change
      until the gradient vanishes, if the curvature stays what it is.
    - `gain`: the fall of a quadratic model along the gradient within 1 % of the parameters' length, as a share of
      `scale`.
    - `lowest`, `residuals`: the lowest eigenvalues found. Within each residual of the value there is an eigenvalue, and
      the least eigenvalue is not above the first value.
    - `highest`: the largest eigenvalue found.
    - `complete`: whether all eigenvalues were computed.
    - `forces`: the balance of forces, layer by layer; None except near a minimum of a loss with weight decay.
    """

    kind: str
    loss: float
    scale: float
    gradient_norm: float
    distance: float
    gain: float
    tolerance: float
    lowest: tuple[float, ...]
    residuals: tuple[float, ...]
    highest: float
    complete: bool
    parameters: int
    inputs: int
    weight_decay: float
    forces: tuple[LayerBalance, ...] | None

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            ["kind", self.kind],
            ["loss (constant output)", f"{self.loss:.4g} ({self.scale:.4g})"],
            ["gradient norm", f"{self.gradient_norm:.2e}"],
            ["distance at least", f"{self.distance:.1e} of the parameters"],
            [f"fall within {NEARBY:.0%}", f"{self.gain:.1e} of {self.scale:.3g}"],
            *(
                [f"eigenvalue {i + 1}", f"{value:.3e} ± {bound:.0e}"]
                for i, (value, bound) in enumerate(zip(self.lowest, self.residuals, strict=True))
            ),
            ["largest eigenvalue", f"{self.highest:.3e}"],
        ]
        for layer in self.forces or ():
            rows.append(
                [
                    f"forces on {layer.path}",
                    f"{layer.attraction:.3g} and {layer.repulsion:.3g}, {layer.residual:.0e} left",
                ]
            )
        return ["", "value"], rows

    def words(self) -> list[str]:
        """What the numbers mean, in sentences."""
        meaning = {
            "unconverged": "The network is not at a critical point: plain gradient descent would still lower the loss. "
            "Negative eigenvalues are then normal and say nothing about where training will end.",
            "strict saddle": "The gradient is as good as zero, and a direction was found along which the loss falls: "
            "more training, or noise, leaves this point.",
            "minimum": "The gradient is as good as zero, and every eigenvalue of the Hessian is positive.",
            "probable minimum": "The gradient is as good as zero, and no direction of descent was found. Lanczos looks "
            "at a few directions only: this is likely a minimum, and not a proof.",
            "undecided": "The gradient is as good as zero, and the lowest eigenvalue is zero up to errors. Such flat "
            "directions are normal, for neurons with ReLU can be rescaled. Higher orders decide.",
        }[self.kind]
        words = [meaning]
        if self.forces is None:
            why = "weight_decay is zero" if not self.weight_decay else f"this point is {self.kind}"
            words.append(f"Forces are left out: they balance only at minima of a loss with weight decay, and {why}.")
        else:
            words.append("At a minimum the pull of weight decay and the push of the data cancel in every layer.")
        words.append(
            f"Evaluation mode, {self.inputs:,} inputs, {self.parameters:,} parameters. Kinks, such as those of ReLU "
            "and max-pooling, are not examined."
        )
        return words


def certify(
    model: nn.Module,
    loss: Loss,
    data: Any,
    *,
    weight_decay: float = 0.0,
    steps: int = 30,
    tolerance: float = 1e-6,
    seed: int = 0,
    progress: bool | None = None,
) -> TrainedCertificate:
    """How far a trained network is from a critical point of its loss, and the lowest curvatures there.

    The loss is L(θ) = mean of `loss` over the data + `weight_decay`/2 · ‖θ‖², in evaluation mode and in float64.
    Hessian products are exact; the eigenvalues come from Lanczos, or from the whole Hessian of small networks.

    **Arguments**

    - `model`: any `torch.nn.Module`; it is not changed.
    - `loss`: a function of outputs and labels that returns the mean over inputs, such as
      `torch.nn.functional.cross_entropy`.
    - `data`: inputs with labels, in any form that `compress` takes. Give all that the network was trained on: the
      loss on a part of them has other critical points.
    - `weight_decay`: that of SGD or Adam. AdamW's decay is not the gradient of a loss, and ends elsewhere.
    - `steps`: Hessian products, each about three times as long as a gradient over all data; twice as many are used.
    - `tolerance`: the fall, as a share of the loss of a constant output, up to which a point counts as critical.
    - `seed`: of the random start of Lanczos.
    - `progress`: show a progress bar; by default in terminals only.

    >>> _ = torch.manual_seed(0)
    >>> x = torch.randn(50, 2)
    >>> flat = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    >>> for p in flat.parameters():
    ...     _ = p.detach().zero_()
    >>> certify(flat, nn.functional.mse_loss, (x, x[:, :1] - x[:, :1].mean())).kind
    'strict saddle'
    """
    if weight_decay < 0 or not math.isfinite(weight_decay):
        raise ValueError(f"weight_decay is at least 0; received {weight_decay!r}.")
    if steps < 2:
        raise ValueError(f"steps is at least 2; received {steps}.")
    ready, sample = _prepare(model, data)
    field = Landscape(ready, loss, sample, weight_decay)
    if not field.parameters:
        raise ValueError("model has no parameters that require gradients.")
    _check(loss, field)
    gradient = field.gradient()
    slope, length = float(gradient.norm()), float(field.point.norm()) or 1.0  # at the origin any length will do
    with ProgressBar("Hessian products", 2 * min(steps, len(gradient)), progress) as bar:
        spectrum, complete = _spectrum(field, steps, seed, bar)
        along = lanczos(field.product, gradient, steps, bar.tick) if slope > 0 else None
    top = float(spectrum.values.abs().max())
    scale = max(field.value_of_constant(), 1e-300)
    gain = gain_within(along, slope, NEARBY * length) / scale if along is not None else 0.0
    lowest = spectrum.values[:3]
    noise = 1e-8 * top + 10 * slope / length  # rescaling symmetries curve by up to about ‖∇L‖ / ‖θ‖
    kind = _kind(gain > tolerance, float(lowest[0]), noise, complete)
    near = kind in ("minimum", "probable minimum") and weight_decay > 0
    return TrainedCertificate(
        kind,
        field.value(),
        scale,
        slope,
        slope / max(top * length, 1e-300),
        gain,
        tolerance,
        tuple(lowest.tolist()),
        tuple(spectrum.residuals[:3].tolist()),
        float(spectrum.values[-1]),
        complete,
        len(gradient),
        len(sample),
        weight_decay,
        _forces(field, gradient) if near else None,
    )


def _kind(falling: bool, lowest: float, noise: float, complete: bool) -> str:
    if falling:
        return "unconverged"
    if lowest < -noise:
        return "strict saddle"
    if lowest <= noise:
        return "undecided"
    return "minimum" if complete else "probable minimum"


def _prepare(model: Any, data: Any) -> tuple[nn.Module, Sample]:
    """A copy in float64 and in evaluation mode, and all data."""
    ready = duplicate(check_model(model)).double().eval()
    sample = gather(data, ready)
    if sample.labels is None:
        raise ValueError("data has no labels: the loss needs them. Give pairs (inputs, labels).")
    labels = sample.labels.double() if sample.labels.is_floating_point() else sample.labels
    return ready, Sample(sample.inputs, labels)


def _check(loss: Loss, field: Landscape) -> None:
    """The loss must be one finite number."""
    try:
        value = loss(field.model(*field.sample.take(slice(2)).inputs), field.labels[:2])
    except Exception as error:
        raise ValueError(
            f"loss fails on outputs and labels of two inputs (labels of shape {tuple(field.labels[:2].shape)}, "
            f"{field.labels.dtype}): {str(error).splitlines()[0]}"
        ) from error
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise ValueError("loss must return one number, the mean over the inputs it is given.")
    if not bool(torch.isfinite(value)):
        raise ValueError("loss is not finite on the first inputs. Check inputs and labels.")


def _spectrum(field: Landscape, steps: int, seed: int, bar: ProgressBar) -> tuple[RitzSpectrum, bool]:
    """All eigenvalues of small networks, otherwise those that Lanczos finds from a random start."""
    size = len(field.point)
    if size <= DENSE:
        basis = torch.eye(size, dtype=torch.float64, device=field.point.device)
        whole = torch.stack([field.product(column) for column in basis], dim=1)
        values, vectors = torch.linalg.eigh((whole + whole.T) / 2)
        rounding = 1e-14 * size * float(values.abs().max())
        return RitzSpectrum(values, torch.full_like(values, rounding), vectors, basis), True
    start = torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return lanczos(field.product, start.to(field.point.device), steps, bar.tick), False


def _forces(field: Landscape, gradient: torch.Tensor) -> tuple[LayerBalance, ...]:
    """Attraction and repulsion of every weight tensor with more than one axis."""
    sizes = [p.numel() for p in field.parameters]
    found = []
    for name, weight, slope in zip(field.names, field.parameters, gradient.split(sizes), strict=True):
        if weight.ndim < 2:
            continue
        flat = weight.detach().flatten()
        attraction = field.decay * float(flat @ flat)
        found.append(
            LayerBalance(
                name.removesuffix(".weight"),
                attraction,
                float(slope @ flat) - attraction,
                float(slope.norm()) / max(field.decay * float(flat.norm()), 1e-300),
            )
        )
    return tuple(found)
