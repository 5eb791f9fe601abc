"""Networks that the benchmark of compression starts from: trained once and stored, the same for every method."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import nn

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


MAKERS = {"mlp": mlp, "plain": plain_cnn, "residual": residual_cnn}
RATES = {"mlp": 1e-3, "plain": 3e-3, "residual": 3e-3}
"""Learning rates from a random start."""


def train(
    model: nn.Module,
    data: Split,
    epochs: int,
    *,
    seed: int,
    decay: float = 0.0,
    rate: float = 1e-3,
    shift: bool = False,
    teacher: torch.Tensor | None = None,
) -> nn.Module:
    """AdamW with a rate that falls to zero along a cosine, on batches of 128.

    `shift` moves and mirrors images at random. `teacher` has a trained network's outputs on all inputs; the loss is
    then 0.9 × 16 KL(teacher ‖ student) at temperature 4 plus 0.1 × the cross-entropy (Hinton et al. 2015).
    """
    inputs, labels = data
    draw = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=decay)
    size = 128
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * (len(inputs) // size))
    soft = None if teacher is None else torch.log_softmax(teacher / 4, 1)
    model.train()
    for _ in range(epochs):
        order = torch.randperm(len(inputs), generator=draw)
        for chosen in order[: len(order) // size * size].split(size):
            batch = inputs[chosen]
            if shift:
                moves = torch.randint(-3, 4, (2,), generator=draw)
                batch = torch.roll(batch, (int(moves[0]), int(moves[1])), (2, 3))
                batch = batch.flip(3) if torch.rand((), generator=draw) < 0.5 else batch
            optimizer.zero_grad()
            found = model(batch)
            loss = nn.functional.cross_entropy(found, labels[chosen])
            if soft is not None:
                student = torch.log_softmax(found / 4, 1)
                gap = nn.functional.kl_div(student, soft[chosen], reduction="batchmean", log_target=True)
                loss = 0.9 * 16 * gap + 0.1 * loss
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def trained(kind: str, seed: int, data: Split, *, epochs: int, decay: float = 0.0) -> nn.Module:
    """The network of that kind and seed, from the cache or trained now."""
    torch.manual_seed(seed)
    model = MAKERS[kind]()
    file = cache_directory() / "benchmarks" / f"{kind}-{seed}-{epochs}-{decay:g}.pt"
    if file.is_file():
        model.load_state_dict(torch.load(file, weights_only=True))
        return model.eval()
    train(model, data, epochs, seed=seed, decay=decay, shift=kind != "mlp", rate=RATES[kind])
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    torch.save(model.state_dict(), partial)
    partial.replace(file)
    return model


@torch.no_grad()
def outputs(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """The outputs on all inputs."""
    return torch.cat([model(x) for x in inputs.split(500)])


def accuracy(model: nn.Module, data: Split) -> float:
    """Share of inputs whose label has the largest output."""
    return float((outputs(model, data[0]).argmax(1) == data[1]).float().mean())
