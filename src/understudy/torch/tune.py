"""Train a network for a while: on labels, or to give the outputs of another network. The best state is kept."""

from __future__ import annotations

import copy
import math
import time
from typing import Any

import torch
from torch import nn

from understudy.torch.batches import Sample, gather
from understudy.torch.curvature import Loss
from understudy.torch.edit import duplicate
from understudy.torch.measure import outputs_of
from understudy.torch.model import check_model
from understudy.torch.progress import ProgressBar

BATCH = 64
PATIENCE = 3
"""Epochs in a row without improvement on held-out inputs after which training ends."""


def distill(
    student: nn.Module,
    teacher: nn.Module,
    data: Any,
    *,
    epochs: float = 1,
    seconds: float | None = None,
    rate: float = 1e-3,
    progress: bool | None = None,
) -> nn.Module:
    """A copy of the student that gives more nearly the teacher's outputs: Adam on their mean squared distance.

    No labels are used. Every tenth input is held out, and the state with the least distance there is returned: the
    result is never worse on these inputs. Normalisation layers keep their statistics.

    **Arguments**

    - `student`, `teacher`: networks with the same inputs and outputs; neither is changed.
    - `data`: inputs in any form that `compress` takes, all kept in memory.
    - `epochs`, `seconds`: training ends after either, or after three epochs without improvement.
    - `rate`: learning rate.
    - `progress`: show a progress bar; by default in terminals only.

    >>> _ = torch.manual_seed(0)
    >>> teacher, student, x = nn.Linear(3, 2), nn.Linear(3, 2), torch.randn(200, 3)
    >>> closer = distill(student, teacher, x, epochs=20, rate=0.01)
    >>> bool((closer(x) - teacher(x)).norm() < (student(x) - teacher(x)).norm())
    True
    """
    teacher = check_model(teacher)
    sample = data if isinstance(data, Sample) else gather(data, check_model(student))
    goals = outputs_of(teacher, sample).to(sample.inputs[0])
    return _train(student, Sample(sample.inputs, goals), nn.functional.mse_loss, epochs, seconds, rate, progress)


def finetune(
    model: nn.Module,
    loss: Loss,
    data: Any,
    *,
    epochs: float = 1,
    seconds: float | None = None,
    rate: float = 1e-3,
    progress: bool | None = None,
) -> nn.Module:
    """A copy of the model after Adam on a loss with labels.

    Every tenth input is held out, and the state with the least loss there is returned. Normalisation layers keep their
    statistics. For augmentation or other optimisers write your own loop: the network is a plain module.

    **Arguments**

    - `loss`: a function of outputs and labels, such as `torch.nn.functional.cross_entropy`.
    - `data`: inputs with labels, all kept in memory; the other arguments are those of `distill`.

    >>> _ = torch.manual_seed(0)
    >>> x = torch.randn(200, 3)
    >>> model, labels = nn.Linear(3, 2), (x[:, 0] > 0).long()
    >>> better = finetune(model, nn.functional.cross_entropy, (x, labels), epochs=20, rate=0.01)
    >>> bool((better(x).argmax(1) == labels).float().mean() > 0.9)
    True
    """
    sample = data if isinstance(data, Sample) else gather(data, check_model(model))
    if sample.labels is None:
        raise ValueError("data has no labels: give pairs (inputs, labels), or use distill, which needs none.")
    return _train(model, sample, loss, epochs, seconds, rate, progress)


def _train(
    model: nn.Module,
    sample: Sample,
    loss: Loss,
    epochs: float,
    seconds: float | None,
    rate: float,
    progress: bool | None,
) -> nn.Module:
    """The best state on held-out inputs after epochs, seconds or PATIENCE."""
    if seconds is None and not math.isfinite(epochs):
        raise ValueError("Give epochs or seconds: training must end.")
    model = duplicate(check_model(model)).eval()
    tenth = torch.arange(len(sample)) % 10 == 9
    fit, check = sample.take(~tenth), sample.take(tenth) if bool(tenth.any()) else sample
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], rate)
    best, least, worse, epoch = copy.deepcopy(model.state_dict()), _loss_on(model, loss, check), 0, 0
    end = math.inf if seconds is None else time.perf_counter() + seconds
    draw = torch.Generator().manual_seed(0)
    with ProgressBar("epochs", int(epochs) if math.isfinite(epochs) else None, progress) as bar:
        while epoch < epochs and worse < PATIENCE and time.perf_counter() < end:
            for chosen in torch.randperm(len(fit), generator=draw).split(BATCH):
                optimizer.zero_grad()
                batch = fit.take(chosen)
                assert batch.labels is not None
                loss(model(*batch.inputs), batch.labels).backward()
                optimizer.step()
                if time.perf_counter() > end:
                    break
            epoch += 1
            found = _loss_on(model, loss, check)
            worse = 0 if found < least else worse + 1
            if found < least:
                best, least = copy.deepcopy(model.state_dict()), found
            bar.tick(f"epochs, held-out loss {found:.3g}")
    model.load_state_dict(best)
    return model


def _loss_on(model: nn.Module, loss: Loss, sample: Sample) -> float:
    assert sample.labels is not None
    with torch.no_grad():
        return sum(len(y) * float(loss(model(*x), y)) for x, y in sample.pairs()) / len(sample)
