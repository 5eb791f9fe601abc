"""The description of a fit to data: which network, which cost, and from which starts."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from understudy.experiments.description import check_finite_array, is_count
from understudy.experiments.flow_fit import FlowFit, name_of_activation
from understudy.networks import Deep, TwoLayer
from understudy.results import Run
from understudy.tasks import Empirical, Regularised, costs

if TYPE_CHECKING:
    from understudy.tasks.task import Task

_ARRAYS = {"inputs": (2,), "targets": (1, 2), "held_out_inputs": (2,), "held_out_targets": (1, 2)}
"""Names of arrays, and how many axes they may have."""


@dataclass(frozen=True, eq=False)
class DataFit(FlowFit):
    """Networks that learn from data by gradient flow of the mean cost, the same data for every seed.

    **Arguments**

    - `student`: width of a two-layer network; or `layers`: widths of the hidden layers of a network with biases.
    - `bias`: `"trained"` gives the neurons of a two-layer network biases and its output an offset.
    - `cost`: `"squared"`, `"cross-entropy"` or `"logistic"`, see `understudy.Empirical`; `penalty`: λ of λ‖W‖², biases
      included. Default: no penalty.
    - `arrays`: `inputs` (N, d) and `targets` (N,) or (N, m); `held_out_inputs` and `held_out_targets`, which are not
      trained on.
    - `init`, `init_std`: as in `Fit`. The default is Glorot's start for `layers`.
    - `tolerance`, `max_time`, `times`, `begin`: as in `Fit`.

    >>> x = np.linspace(-1, 1, 9)[:, None]
    >>> DataFit(student=2, activation="tanh", arrays={"inputs": x, "targets": x[:, 0] ** 3}).task().size
    4
    """

    student: int | None = None
    layers: tuple[int, ...] | None = None
    _: KW_ONLY
    cost: str = "squared"
    penalty: float | None = None

    def __post_init__(self) -> None:
        self._set(arrays=self._checked_arrays(), activation=name_of_activation(self.activation))
        if (self.student is None) == (self.layers is None):
            raise ValueError("Give student, the width of a two-layer network, or layers, the widths of several layers.")
        widths = self.layers if self.student is None else (self.student,)
        for width in widths or (0,):
            if not is_count(width):
                name = "layers" if self.student is None else "student"
                raise ValueError(f"{name} has positive whole numbers of neurons; received {width!r}.")
        if self.layers is not None:
            self._set(layers=tuple(int(n) for n in self.layers))
            if self.bias is not None:
                raise ValueError(f"Networks of several layers have biases; received bias={self.bias}. Leave bias out.")
        self._check_bias()
        costs.get(self.cost)
        if self.penalty is not None and not 0 < self.penalty < math.inf:
            raise ValueError(f"penalty is a positive number; received {self.penalty}.")
        self._check_init("gaussian" if self.layers is None else "glorot")
        self._check_flow()

    def _checked_arrays(self) -> Mapping[str, np.ndarray]:
        unknown = sorted(set(self.arrays) - set(_ARRAYS))
        if unknown or not {"inputs", "targets"} <= set(self.arrays):
            raise ValueError(f"Data are the arrays {', '.join(_ARRAYS)}; received {', '.join(self.arrays) or 'none'}.")
        checked = {name: check_finite_array(name, x, *_ARRAYS[name]) for name, x in self.arrays.items()}
        if ("held_out_inputs" in checked) != ("held_out_targets" in checked):
            raise ValueError("held_out_inputs and held_out_targets go together; received one of them.")
        for prefix in ("", "held_out_") if "held_out_inputs" in checked else ("",):
            x, y = checked[f"{prefix}inputs"], checked[f"{prefix}targets"]
            if len(x) != len(y):
                raise ValueError(
                    f"{prefix}inputs and {prefix}targets have one row per sample; received {len(x)} and {len(y)} rows."
                )
            if x.shape[1:] != checked["inputs"].shape[1:] or y.shape[1:] != checked["targets"].shape[1:]:
                raise ValueError(
                    f"{prefix}inputs {x.shape} and {prefix}targets {y.shape} must have as many columns as inputs "
                    f"{checked['inputs'].shape} and targets {checked['targets'].shape}."
                )
        return MappingProxyType(checked)

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return self.arrays["inputs"].shape[1]

    @property
    def outputs(self) -> int | None:
        """Number of outputs; None for a single number."""
        if self.arrays["targets"].ndim == 2:
            return self.arrays["targets"].shape[1]
        if costs.get(self.cost) is not costs.cross_entropy:
            return None if self.layers is None and self.penalty is None else 1
        labels = [y for name, y in self.arrays.items() if name.endswith("targets")]
        return costs.class_count(np.concatenate(labels))

    def task(self) -> "Task":
        """The loss on the data that are trained on."""
        return self._task("")

    def _task(self, prefix: str) -> "Task":
        x, y, m = self.arrays[f"{prefix}inputs"], self.arrays[f"{prefix}targets"], self.outputs
        if self.penalty is not None:
            hidden = self.layers if self.student is None else (self.student,)
            if y.ndim == 1 and costs.get(self.cost) is costs.cross_entropy:
                y = np.eye(m or 1)[y.astype(int)]
            biased = self.layers is not None or self.bias == "trained"
            return Regularised(
                x,
                y,
                hidden or (),
                penalty=self.penalty,
                bias=1.0 if biased else 0.0,
                activation=self.activation,
                cost=self.cost,
            )
        return Empirical(self._network(), x, y, activation=self.activation, cost=self.cost)

    def _network(self) -> TwoLayer | Deep:
        """An example of the network."""
        m = self.outputs
        if self.student is not None:
            shape = () if m is None else (m,)
            bias = {"bias": np.zeros(self.student), "offset": np.zeros(shape)} if self.bias == "trained" else {}
            return TwoLayer(np.zeros((self.student, self.dim)), np.zeros((self.student, *shape)), **bias)
        pairs = list(pairwise((self.dim, *(self.layers or ()), m or 1)))
        return Deep(tuple(jnp.zeros((b, a)) for a, b in pairs), tuple(jnp.zeros(b) for _, b in pairs))

    def finish(self, run: Run) -> Run:
        """The run with the mean cost on the held-out data, without the penalty."""
        if "held_out_inputs" not in self.arrays:
            return run
        return replace(run, held_out_loss=self.held_out_loss(run.parameters))

    def held_out_loss(self, parameters: Any) -> float:
        """The mean cost on the data that were held out, without the penalty."""
        task = self._task("held_out_")
        vector = task.flatten(parameters)
        return float(task.value(vector)) - (self.penalty or 0.0) * float(jnp.dot(vector, vector))

    def headline(self) -> str:
        hidden = "-".join(map(str, self.layers or ()))
        widths = f"{self.student} students" if self.student is not None else f"layers {hidden}"
        held = f", {len(self.arrays['held_out_inputs'])} held out" if "held_out_inputs" in self.arrays else ""
        rows = f"{len(self.arrays['inputs'])} rows to train on{held}"
        return f"[bold]{self.activation}[/], {widths}, d = {self.dim}, {rows}, {self.cost} cost"

    def sizes(self) -> str:
        return f"A network of {self.task().size:,} parameters, {len(self.arrays['inputs']):,} rows"

    def advice(self, seeds: int) -> dict[str, float]:
        """2 P² numbers for a Hessian and its factors, the activations of all rows, and starts and ends."""
        size, rows = float(self.task().size), float(len(self.arrays["inputs"]))
        neurons = sum((self.student,) if self.student is not None else self.layers or ())
        return {
            "Use a smaller network.": 2 * size**2,
            "Use fewer rows.": rows * (self.dim + 2 * neurons * min(size, 100.0)),
            "Use fewer seeds at a time.": 2 * seeds * size,
        }


def describe_fit(configuration: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> FlowFit:
    """The description of a stored fit: of a teacher, or of data."""
    from understudy.experiments.fit import Fit

    return (DataFit if "cost" in configuration else Fit).of(configuration, arrays)
