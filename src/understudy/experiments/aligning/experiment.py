"""The description of an experiment with deep students (Tian 2020, Section 6), and the problem that one seed draws."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from understudy.networks import Deep, half_active

EPOCHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90)
"""Default epochs at which statistics are recorded: densely at first, then every ten epochs."""


def schedule(epochs: int) -> tuple[float, ...]:
    """`EPOCHS`, and every ten epochs beyond, up to the last."""
    if epochs < 1:
        raise ValueError(f"epochs is a whole number of at least 1; received {epochs}.")
    return (*(float(e) for e in (*EPOCHS, *range(100, epochs, 10)) if e < epochs), float(epochs))


@dataclass(frozen=True)
class Experiment:
    """One cell: a teacher, a student, and how it is trained. The defaults are the two-layer setting of Tian 2020.

    - `teacher`: widths of its hidden layers; `over`: how many times wider the student's layers are; `polarity`: p of
      ‖v_j‖ ~ 1/j^p.
    - `dim`, `outputs`, `input_std`: inputs N(0, input_std² I) in `dim` dimensions. `samples`, `evaluation`: the number
      of inputs for training and for evaluation.
    - `optimizer`: `"sgd"` or `"adam"`; `rate`, `weight_decay`; `batch`: samples per batch; `steps`: batches per epoch.
    - `init`: the student's weights are N(0, init²); 0 means Glorot's normal start.
    - `standardise`: scale the teacher's outputs to mean 0 and variance 1.
    - `record`: epochs after which statistics are recorded, multiples of 1/steps; 0 is the start. The last one ends the
      training.
    - `correlations`: record all correlations of the first hidden layer, not only the best ones.
    """

    kind: ClassVar[str] = "align"
    needed: ClassVar[frozenset[str]] = frozenset({"epoch", "loss", "best_of_teacher_1", "W1", "b1"})
    most_together: ClassVar[int] = 16  # each seed holds 25 MB of data in the two-layer setting

    teacher: tuple[int, ...] = (20,)
    over: float = 1.0
    polarity: float = 0.0
    dim: int = 100
    outputs: int = 50
    input_std: float = 1.5
    samples: int = 10_000
    evaluation: int = 10_000
    optimizer: str = "sgd"
    rate: float = 0.01
    weight_decay: float = 0.0
    batch: int = 16
    steps: int = 1000
    init: float = 0.005
    standardise: bool = False
    record: tuple[float, ...] = (0.0, 5.0, 100.0)
    correlations: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "teacher", tuple(int(m) for m in self.teacher))
        object.__setattr__(self, "record", tuple(float(e) for e in self.record))
        for name in ("over", "polarity", "input_std", "rate", "weight_decay", "init"):
            object.__setattr__(self, name, float(getattr(self, name)))  # 1 and 1.0 are one configuration
        whole = {name: getattr(self, name) for name in ("dim", "outputs", "samples", "evaluation", "batch", "steps")}
        for name, value in whole.items() | {("teacher", min(self.teacher, default=0))}:
            if value < 1:
                raise ValueError(f"{name} is a whole number of at least 1; received {value}.")
        if not 0 < self.over <= 1000 or min(self.student) < 1:
            raise ValueError(
                f"over is how many times wider the student is: above 0, at most 1000, and large enough for one node "
                f"per layer; received {self.over}."
            )
        if self.batch > self.samples:
            raise ValueError(
                f"batch must lie between 1 and the number of samples, {self.samples}; received {self.batch}."
            )
        for name in ("rate", "input_std"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} is a positive number; received {getattr(self, name)}.")
        for name in ("polarity", "init", "weight_decay"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} is a number of at least 0; received {getattr(self, name)}.")
        if self.optimizer not in ("sgd", "adam"):
            raise ValueError(f"optimizer is 'sgd' or 'adam'; received {self.optimizer!r}.")
        at = [e * self.steps for e in self.record]
        if not at or min(at) < 0 or sorted(set(at)) != at or any(abs(s - round(s)) > 1e-6 for s in at):
            raise ValueError(
                f"record lists epochs in rising order, multiples of 1/{self.steps}, 0 or later; received {self.record}."
            )

    @property
    def student(self) -> tuple[int, ...]:
        """Widths of the student's hidden layers."""
        return tuple(round(self.over * m) for m in self.teacher)

    @property
    def epochs(self) -> float:
        """How long the training lasts."""
        return self.record[-1]

    def configuration(self) -> dict[str, Any]:
        """As a dictionary of JSON values, for stores and sweeps."""
        return {"kind": self.kind, **asdict(self), "teacher": list(self.teacher), "record": list(self.record)}

    @classmethod
    def of(cls, configuration: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> "Experiment":
        """The experiment of a configuration. Keys that are not fields are ignored, and `arrays` is not used."""
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in configuration.items() if k in known})

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Arrays that were given: none."""
        return {}

    def rows(self, seeds: list[int], *, seconds: float | None = None) -> Any:
        """Train these seeds, one row each; None if that takes more than `seconds`. See `aligning.run`."""
        from understudy.experiments.aligning.runs import rows_within

        return rows_within(self, seeds, seconds)

    def until(self, epochs: float) -> "Experiment":
        """The same experiment, ended after this many epochs."""
        return replace(self, record=(*(e for e in self.record if e < epochs), float(epochs)))


class Problem(NamedTuple):
    """The problem of one seed: the teacher, the student's start, and inputs for training and for evaluation."""

    teacher: Deep
    start: Deep
    inputs: np.ndarray
    evaluation: np.ndarray

    @property
    def targets(self) -> np.ndarray:
        """The teacher's outputs on `inputs`."""
        return np.asarray(self.teacher(jnp.asarray(self.inputs), "relu"))


def draw(experiment: Experiment, seed: int) -> Problem:
    """Draw the problem of one seed.

    The teacher and the data do not depend on the student's width. The directions of the teacher's weights do not depend
    on the polarity.
    """
    e = experiment
    rng = np.random.default_rng([seed, 0])
    x, held_out = (e.input_std * rng.normal(size=(n, e.dim)) for n in (e.samples, e.evaluation))
    teacher = half_active([e.dim, *e.teacher, e.outputs], x, seed=seed, polarity=e.polarity, standardise=e.standardise)
    widths = [e.dim, *e.student, e.outputs]
    start = Deep.gaussian(widths, seed=seed + 10**6, std=e.init) if e.init else Deep.glorot(widths, seed=seed + 10**6)
    return Problem(teacher, start, x, held_out)
