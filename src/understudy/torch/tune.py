"""Train a smaller network to give the outputs of the original, on inputs without labels."""

from __future__ import annotations

import copy
import math
import time

import torch
from torch import nn

from understudy.torch.batches import Sample
from understudy.torch.edit import duplicate
from understudy.torch.measure import outputs_of

BATCH = 64


def distill(
    student: nn.Module,
    teacher: nn.Module,
    sample: Sample,
    *,
    epochs: float = 1,
    seconds: float | None = None,
    rate: float = 1e-3,
) -> nn.Module:
    """The student after Adam on the mean squared distance of outputs; the best state on held-out inputs is kept.

    Every tenth input is held out. Training ends after `epochs`, after `seconds`, or when three epochs in a row bring no improvement.
    Normalisation layers keep their statistics.
    """
    if seconds is None and not math.isfinite(epochs):
        raise ValueError("Give epochs or seconds: training must end.")
    student = duplicate(student).eval()
    tenth = torch.arange(len(sample)) % 10 == 9
    fit, check = sample.take(~tenth), sample.take(tenth) if bool(tenth.any()) else sample
    goal, wanted = outputs_of(teacher, fit).to(fit.inputs), outputs_of(teacher, check)
    optimizer = torch.optim.Adam([p for p in student.parameters() if p.requires_grad], rate)
    best, least, worse, epoch = copy.deepcopy(student.state_dict()), _gap(student, check, wanted), 0, 0
    end = math.inf if seconds is None else time.perf_counter() + seconds
    draw = torch.Generator().manual_seed(0)
    while epoch < epochs and worse < 3 and time.perf_counter() < end:
        for chosen in torch.randperm(len(fit), generator=draw).split(BATCH):
            optimizer.zero_grad()
            nn.functional.mse_loss(student(fit.inputs[chosen]), goal[chosen]).backward()
            optimizer.step()
            if time.perf_counter() > end:
                break
        epoch += 1
        gap = _gap(student, check, wanted)
        worse = 0 if gap < least else worse + 1
        if gap < least:
            best, least = copy.deepcopy(student.state_dict()), gap
    student.load_state_dict(best)
    return student


def _gap(student: nn.Module, check: Sample, wanted: torch.Tensor) -> float:
    return float(((outputs_of(student, check) - wanted) ** 2).mean())
