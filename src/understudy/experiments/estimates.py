"""Estimate the memory that a request needs before it starts, and refuse requests that cannot work."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.experiments.flow_fit import FlowFit

if TYPE_CHECKING:
    from understudy.experiments.aligning import Experiment

MOST_SEEDS = 10_000_000
MOST_CELLS = 100_000
STEEPEST = 1e4
"""Activations steeper than this need quadrature with more nodes than a computation can hold."""


class TooMuchError(ValueError):
    """This machine cannot compute the request. The message states the memory needed and available."""


def available_memory() -> float:
    """Bytes of memory that this process may use (of the machine or of its container), or inf if that is not known."""
    try:
        most = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
    with suppress(OSError, ValueError):  # no container, or "max"
        most = min(most, float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return most


def memory_needed(fit: FlowFit, seeds: int) -> float:
    """A lower bound on the bytes that a fit takes."""
    return 8.0 * sum(fit.advice(seeds).values())


def check_fit(fit: FlowFit, seeds: int) -> None:
    """Raise `TooMuchError` for a fit that this machine cannot compute."""
    from understudy import activations

    if seeds > MOST_SEEDS:
        raise TooMuchError(
            f"At most {MOST_SEEDS:,} seeds in one go; received {seeds:,}. Give ranges one after another."
        )
    needed, there = memory_needed(fit, seeds), available_memory()
    if needed > there:
        raise TooMuchError(
            f"{fit.sizes()} and {seeds:,} seeds need at least {needed / 1e9:,.0f} GB of memory; this machine has "
            f"{there / 1e9:,.0f} GB. " + max(fit.advice(seeds).items(), key=lambda part: part[1])[0]
        )
    steepness = activations.get(fit.activation).steepness
    if steepness > STEEPEST:
        raise TooMuchError(
            f"{fit.activation} is as steep as {steepness:.1g} × x: its expectations need more quadrature nodes than "
            f"fit into memory. Use a parameter of at most {STEEPEST:g}, or the limit: relu for softplus, erf for tanh."
        )


def check_align(experiment: Experiment, seeds: int) -> None:
    """Raise `TooMuchError` for students that this machine cannot train.

    A seed holds its samples, its weights in the optimiser's three copies, and the correlations of each layer.
    """
    e = experiment
    widths, students = (e.dim, *e.teacher, e.outputs), (e.dim, *e.student, e.outputs)
    weights = sum(float(a) * b for shape in (widths, students) for a, b in pairwise(shape))
    samples = float(e.samples + e.evaluation) * (e.dim + e.outputs + sum(e.teacher) + sum(e.student))
    pairs = sum(float(k) * n for k, n in zip(e.teacher, e.student, strict=True))
    needed = 8 * min(seeds, e.most_together) * (samples + 3 * weights + pairs)
    there = available_memory()
    if needed > there:
        raise TooMuchError(
            f"Layers of {', '.join(f'{n:,}' for n in e.student)} students with {e.samples:,} samples and {seeds:,} "
            f"seeds need at least {needed / 1e9:,.0f} GB of memory; this machine has {there / 1e9:,.0f} GB. Use "
            "narrower layers, fewer samples, or fewer seeds."
        )


def check_cells(cells: int) -> None:
    """Raise `TooMuchError` for a grid of more cells than one sweep can keep."""
    if cells > MOST_CELLS:
        raise TooMuchError(
            f"This grid has {cells:,} cells; a sweep has at most {MOST_CELLS:,}. Give coarser axes, such as 8-1024:8."
        )
