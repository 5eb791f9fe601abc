"""What `compress` and `merge` give back: the model, what was done to it, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from understudy.tables import Printed
from understudy.torch.edit import duplicate
from understudy.torch.measure import Change, Cost


@dataclass(frozen=True)
class LayerWidth:
    """One layer: its path, its width before and after, and the old indices of the neurons that stayed."""

    path: str
    before: int
    after: int
    kept: tuple[int, ...]


@dataclass(frozen=True)
class CompressionReport(Printed):
    """Widths, costs, change of outputs and layers left alone; prints as a table."""

    layers: tuple[LayerWidth, ...]
    before: Cost
    after: Cost
    change: Change
    notes: tuple[str, ...] = ()

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        rows = [[layer.path, f"{layer.before:,}", f"{layer.after:,}"] for layer in self.layers]
        a, b = self.before, self.after
        rows += [
            ["parameters", f"{a.parameters:,}", f"{b.parameters:,}"],
            ["multiply-adds per input", f"{a.macs:,}", f"{b.macs:,}"],
            [f"ms per batch of {a.batch}", f"{a.milliseconds:.3g}", f"{b.milliseconds:.3g}"],
        ]
        c = self.change
        if c.accuracy_before is not None and c.accuracy_after is not None:
            rows.append(
                [f"accuracy, {c.count} {c.inputs} inputs", f"{c.accuracy_before:.2%}", f"{c.accuracy_after:.2%}"]
            )
        return ["", "before", "after"], rows

    def words(self) -> list[str]:
        """How far the outputs changed, and which layers were left alone."""
        c = self.change
        low, high = c.relative_interval
        words = [
            f"Outputs changed by {c.relative:.2g} relative (root mean square; 95 % interval {low:.2g} to {high:.2g}) "
            f"on {c.count} {c.inputs} inputs"
            + (f"; the same class for {c.agreement:.1%}." if c.agreement is not None else ".")
        ]
        if c.inputs == "synthetic":
            words.append("No data were given: inputs are random, and your own may see a larger change.")
        if c.inputs == "the same":
            words.append("Too few inputs to hold any out: the change on new inputs is larger.")
        return [*words, *self.notes]


@dataclass(frozen=True)
class Compressed:
    """A smaller network.

    **Attributes**

    - `model`: a plain module of the same classes as the original; its `state_dict`, training and export work as usual.
    - `report`: what was done and what it costs.
    - `example`: the input it was traced with, used for export.
    """

    model: nn.Module
    report: CompressionReport
    example: tuple[torch.Tensor, ...]

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    def save(self, path: str | Path) -> Path:
        """Write .pt or .safetensors (the state_dict), .pt2 or .onnx (the whole program)."""
        from understudy.torch.files import save

        return save(self.model, path, example=self.example)

    def constructor(self) -> Callable[[], nn.Module]:
        """A function that makes fresh, newly initialised networks of the smaller widths."""
        pattern = duplicate(self.model)

        def make() -> nn.Module:
            fresh = duplicate(pattern)
            for module in fresh.modules():
                if callable(reset := getattr(module, "reset_parameters", None)):
                    reset()
            return fresh

        return make
