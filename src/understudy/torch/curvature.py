"""Loss, gradient and Hessian of a PyTorch network on data, without ever forming the Hessian of a large network.

All functions see the parameters as one vector. The loss is the mean over all inputs plus `decay` / 2 · ‖θ‖², the loss
whose gradient SGD's and Adam's `weight_decay` adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from understudy.torch.batches import Inputs, Sample

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
BATCH = 1000


class Landscape:
    """The loss of a model on inputs and labels as a function of all trainable parameters."""

    def __init__(self, model: nn.Module, loss: Loss, sample: Sample, decay: float) -> None:
        assert sample.labels is not None
        self.model, self.loss, self.decay = model, loss, decay
        self.sample, self.labels = sample, sample.labels
        self.names = [name for name, p in model.named_parameters() if p.requires_grad]
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.point = torch.cat([p.detach().flatten() for p in self.parameters])

    def _parts(self) -> list[tuple[Inputs, torch.Tensor, float]]:
        """Batches and the share of all inputs that each has."""
        return [(x, y, len(y) / len(self.sample)) for x, y in self.sample.pairs(BATCH)]

    def value(self) -> float:
        """The loss."""
        with torch.no_grad():
            found = sum(share * float(self.loss(self.model(*x), y)) for x, y, share in self._parts())
        return found + 0.5 * self.decay * float(self.point @ self.point)

    def value_of_constant(self) -> float:
        """The loss of the best guess that ignores the input: the mean output for every input. A scale for the loss."""
        with torch.no_grad():
            mean = sum(share * self.model(*x).mean(0) for x, _, share in self._parts())
            return sum(
                share * float(self.loss(torch.stack([torch.as_tensor(mean)] * len(y)), y))
                for _, y, share in self._parts()
            )

    def gradient(self) -> torch.Tensor:
        """∇L as one vector, weight decay included."""
        total = self.decay * self.point
        for x, y, share in self._parts():
            total = total + share * _flat(self._slope(x, y, graph=False))
        return total

    def product(self, vector: torch.Tensor) -> torch.Tensor:
        """H v by differentiating ∇L · v."""
        total = self.decay * vector
        for x, y, share in self._parts():
            slope = _flat(self._slope(x, y, graph=True))
            if slope.requires_grad:
                again = torch.autograd.grad(slope @ vector, self.parameters, materialize_grads=True)
                total = total + share * _flat(again)
        return total

    def _slope(self, x: Inputs, y: torch.Tensor, *, graph: bool) -> tuple[torch.Tensor, ...]:
        value = self.loss(self.model(*x), y)
        return torch.autograd.grad(value, self.parameters, create_graph=graph, materialize_grads=True)


def _flat(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.cat([t.flatten() for t in tensors])


@dataclass(frozen=True)
class RitzSpectrum:
    """Ritz values in order, the distance within which each has an eigenvalue, and their vectors in the basis.

    - `values`, `residuals` (k,): |λ - value| ≤ residual for some eigenvalue λ.
    - `vectors` (k, k), `basis` (P, k): the Ritz vectors are `basis @ vectors`.
    """

    values: torch.Tensor
    residuals: torch.Tensor
    vectors: torch.Tensor
    basis: torch.Tensor

    def lowest(self) -> torch.Tensor:
        """The unit vector of the lowest value."""
        return self.basis @ self.vectors[:, 0]


def lanczos(
    product: Callable[[torch.Tensor], torch.Tensor],
    start: torch.Tensor,
    steps: int,
    tick: Callable[[], None] = lambda: None,
) -> RitzSpectrum:
    """Eigenvalues of a symmetric operator at both ends of its spectrum, from `steps` products.

    The basis is orthogonalised twice against all earlier vectors, so that no spurious copies appear. The lowest value
    is a Rayleigh quotient: the least eigenvalue is not above it. That it is the least is likely, not certain.

    >>> matrix = torch.diag(torch.tensor([-1.0, 2.0, 5.0], dtype=torch.float64))
    >>> lanczos(lambda v: matrix @ v, torch.ones(3, dtype=torch.float64), 3).values.round(decimals=6).tolist()
    [-1.0, 2.0, 5.0]
    """
    steps = min(steps, len(start))
    basis = [start / start.norm()]
    products: list[torch.Tensor] = []
    tail = 0.0
    for step in range(steps):
        products.append(product(basis[-1]))
        tick()
        rest = products[-1].clone()
        stacked = torch.stack(basis, dim=1)
        for _ in range(2):
            rest = rest - stacked @ (stacked.T @ rest)
        tail = float(rest.norm())
        if tail <= 1e-10 * float(products[-1].norm()) or step == steps - 1:
            break
        basis.append(rest / tail)
    stacked = torch.stack(basis[: len(products)], dim=1)
    projected = stacked.T @ torch.stack(products, dim=1)
    values, vectors = torch.linalg.eigh((projected + projected.T) / 2)
    return RitzSpectrum(values, tail * vectors[-1].abs(), vectors, stacked)


def gain_within(spectrum: RitzSpectrum, slope: float, radius: float) -> float:
    """How far the loss can fall within `radius` along the gradient's Krylov space, curvature taken as positive.

    `spectrum` comes from Lanczos started at the gradient of norm `slope`. The model is -g·y + ½ yᵀ|T|y: its largest
    fall for ‖y‖ ≤ radius, found by bisection on the multiplier. It is zero exactly at critical points.
    """
    part = slope * spectrum.vectors[0].abs()
    size = spectrum.values.abs()

    def step(multiplier: float) -> torch.Tensor:
        return part / (size + multiplier).clamp(min=1e-300)

    low, high = 0.0, slope / radius if radius > 0 else 0.0
    if float(step(0.0).norm()) > radius:
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if float(step(middle).norm()) > radius else (low, middle)
    found = step(high) if float(step(0.0).norm()) > radius else step(0.0)
    return float((part * found).sum() - 0.5 * (size * found**2).sum())
