"""Networks that the benchmark of compression starts from: trained once and stored, the same for every method."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.cells import MLPS
from understudy.compilation import cache_directory
from understudy.data.cifar import cifar10_part
from understudy.data.mnist import mnist

Split = tuple[torch.Tensor, torch.Tensor]


def digits() -> tuple[Split, Split]:
    """MNIST as (N, 784) numbers between 0 and 1, to train and to test."""
    images = mnist()
    pairs = ((images.x_train, images.y_train), (images.x_test, images.y_test))
    train, test = ((_tensor(x).flatten(1) / 255, _tensor(y).long()) for x, y in pairs)
    return train, test


def photographs() -> tuple[Split, Split]:
    """The part of CIFAR-10 as (N, 3, 32, 32), each colour with mean 0 and variance 1."""
    images = cifar10_part()
    pairs = ((images.x_train, images.y_train), (images.x_test, images.y_test))
    train, test = ((_tensor(x).permute(0, 3, 1, 2).contiguous() / 255, _tensor(y).long()) for x, y in pairs)
    mean, deviation = train[0].mean((0, 2, 3), keepdim=True), train[0].std((0, 2, 3), keepdim=True)
    return ((train[0] - mean) / deviation, train[1]), ((test[0] - mean) / deviation, test[1])


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array)).float()


def mlp(widths: tuple[int, int] = (256, 128)) -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, widths[0]), nn.ReLU(), nn.Linear(widths[0], widths[1]), nn.ReLU(), nn.Linear(widths[1], 10)
    )


def plain_cnn(scale: float = 1.0) -> nn.Module:
    """Four convolutions without normalisation."""
    a, b, c = (int(n * scale) for n in (32, 64, 128))
    return nn.Sequential(
        nn.Conv2d(3, a, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(b, b, 3, padding=1), nn.ReLU(),
        nn.Conv2d(b, c, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10),
    )  # fmt: skip


class Block(nn.Module):
    """Two convolutions with BatchNorm beside a shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Identity()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(inside + self.shortcut(x))


def residual_cnn(scale: float = 1.0) -> nn.Module:
    """A small residual network with BatchNorm."""
    a, b, c = (int(n * scale) for n in (32, 64, 128))
    return nn.Sequential(
        nn.Conv2d(3, a, 3, 2, 1, bias=False), nn.BatchNorm2d(a), nn.ReLU(),
        Block(a, a, 1), Block(a, b, 2), Block(b, c, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10),
    )  # fmt: skip


MAKERS = {"mlp": mlp, "penalised": mlp, "plain": plain_cnn, "residual": residual_cnn}
RATES = {"mlp": 1e-3, "penalised": 1e-3, "plain": 3e-3, "residual": 3e-3}
"""Learning rates from a random start."""


class Beside(nn.Module):
    """Networks of one architecture side by side: inputs (B, …) give outputs (R, B, C), one slice per network.

    The R networks see the same batch. The first layers of MLPs are then one matrix product, and the others one batched
    product each. AdamW acts on each number alone: training networks together is training each of them.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        self.alone = models[0] if len(models) == 1 else None
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        if self.alone is None:
            chains = ([layer for layer in model.children() if isinstance(layer, nn.Linear)] for model in models)
            for layers in zip(*chains, strict=True):
                self.weights.append(torch.stack([layer.weight.detach() for layer in layers]))
                self.biases.append(torch.stack([layer.bias.detach() for layer in layers]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.alone is not None:
            return self.alone(x)[None]
        first = nn.functional.linear(x, self.weights[0].flatten(0, 1), self.biases[0].flatten())
        found = first.unflatten(1, self.biases[0].shape).transpose(0, 1)
        for weight, bias in zip(list(self.weights)[1:], list(self.biases)[1:], strict=True):
            found = torch.baddbmm(bias[:, None], torch.relu(found), weight.mT)
        return found


def train(
    models: Sequence[nn.Module],
    data: Split,
    epochs: int,
    *,
    seed: int,
    decay: float = 0.0,
    rate: float = 1e-3,
    falling: bool = False,
    penalty: bool = False,
    shift: bool = False,
    teacher: torch.Tensor | None = None,
    taught: Sequence[bool] = (),
) -> Iterator[Beside]:
    """Train networks of one architecture together by AdamW on batches of 128, and yield them after each epoch.

    With `penalty` the decay is that of Adam, an L2 penalty. The rate is constant, so that one epoch is the beginning of six; with `falling` it falls to zero along a cosine.
    `shift` moves and mirrors images at random. `teacher` has a trained network's outputs on all inputs: the networks
    marked in `taught` have the loss 0.9 × 16 KL(teacher ‖ student) at temperature 4 plus 0.1 × the cross-entropy
    (Hinton et al. 2015). Several networks at once must be MLPs. A single network is trained in place.
    """
    inputs, labels = data
    beside = Beside(models).to(memory_format=torch.channels_last)  # a tenth faster for the CNNs
    draw = torch.Generator().manual_seed(seed)
    make = torch.optim.Adam if penalty else torch.optim.AdamW
    optimizer = make(beside.parameters(), rate, weight_decay=decay, fused=True)
    size = 128
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * (len(inputs) // size))
    marked = torch.tensor(taught or [False] * len(models))
    soft = torch.log_softmax(teacher / 4, 1) if teacher is not None and any(taught) else None
    for _ in range(epochs):
        beside.train()
        order = torch.randperm(len(inputs), generator=draw)
        for chosen in order[: len(order) // size * size].split(size):
            optimizer.zero_grad()
            found = torch.log_softmax(beside(_moved(inputs[chosen], draw) if shift else inputs[chosen]), 2)
            hard = -found[:, torch.arange(size), labels[chosen]].mean(1)
            loss = hard.sum() - 0.9 * hard[marked].sum()
            if soft is not None:
                student = torch.log_softmax(found[marked] / 4, 2)  # a shift of all outputs does not matter
                gap = nn.functional.kl_div(student, soft[chosen].expand_as(student), reduction="sum", log_target=True)
                loss = loss + 0.9 * 16 * gap / size
            loss.backward()
            optimizer.step()
            if falling:
                schedule.step()
        yield beside.eval()


def _moved(batch: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """The images moved by up to three pixels and mirrored, all alike."""
    moves = torch.randint(-3, 4, (2,), generator=draw)
    batch = torch.roll(batch, (int(moves[0]), int(moves[1])), (2, 3))
    return batch.flip(3) if torch.rand((), generator=draw) < 0.5 else batch


def trained(kind: str, seed: int, data: Split, *, epochs: int, decay: float = 0.0) -> nn.Module:
    """The network of that kind and seed, from the cache or trained now."""
    torch.manual_seed(seed)
    model = MAKERS[kind]()
    file = cache_directory() / "benchmarks" / f"{kind}-{seed}-{epochs}-{decay:g}.pt"
    if file.is_file():
        model.load_state_dict(torch.load(file, weights_only=True))
        return model.eval()
    options: dict[str, Any] = {"shift": kind not in MLPS, "penalty": kind == "penalised", "rate": RATES[kind]}
    for _ in train([model], data, epochs, seed=seed, decay=decay, falling=True, **options):
        pass
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    torch.save(model.state_dict(), partial)
    partial.replace(file)
    return model


@torch.no_grad()
def outputs(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """The outputs on all inputs."""
    return torch.cat([model(x) for x in inputs.split(500)], -2)


def accuracies(beside: Beside, data: Split) -> list[float]:
    """Share of inputs whose label has the largest output, of each network."""
    return (outputs(beside, data[0]).argmax(2) == data[1]).float().mean(1).tolist()
