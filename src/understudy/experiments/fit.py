"""A fit in words: which students learn from which teacher, from which starts, followed how."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from understudy import activations
from understudy.dynamics.trajectory import FlowOptions
from understudy.experiments.description import OutOfTimeError, array_fields, array_variables, check_finite_array
from understudy.networks import Teacher
from understudy.results import Run, Runs
from understudy.results.dataset import NEEDED
from understudy.tasks import Population, Sphere

if TYPE_CHECKING:
    import xarray as xr

    from understudy.fitting import FitProgress
    from understudy.tasks.task import Task

FREE = {"outgoing": "trained", "init": "gaussian", "init_std": 0.1}
"""What is used where nothing is given."""

_ARRAYS = {
    "teacher_incoming": (2,),
    "teacher_outgoing": (1, 2),
    "teacher_bias": (1,),
    "teacher_offset": (0, 1),
    "mean": (1,),
    "covariance": (2,),
}
"""Names of arrays that can be given, and how many axes they may have."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Students that learn from a teacher by gradient flow, the same for every seed.

    **Arguments**

    - `teacher`: number k of teacher neurons, orthonormal with outgoing weights 1; `student`: number n of students;
      `dim`: input dimension d, k + 1 unless given; `activation`: its name.
    - `outgoing`: `"trained"` or `"fixed"` (all 1: a soft committee machine). `sphere`: unit-norm students and teachers.
    - `bias`: `"trained"` gives every student a bias and the output an offset. `student_activation`: if it is not the
      teacher's.
    - `init`: `"gaussian"` with standard deviation `init_std`, or `"glorot"`, which has standard deviations of its own.
      On the sphere starts are uniform.
    - `tolerance`: relative and absolute tolerance of the flow; `max_time`: where it ends at the latest; `times`: when
      parameters are kept, log-spaced unless given.
    - `begin`: the hash of the runs this one continues, whose ends are its starts.
    - `arrays`: a teacher of your own as `teacher_incoming` (k, d) and `teacher_outgoing` (k,) or (k, m), and if it has
      them `teacher_bias` (k,) and `teacher_offset`; `mean` (d,) and `covariance` (d, d) of the inputs.

    >>> fit = Fit(teacher=3, student=2)
    >>> fit.task().size, fit.configuration()["dim"]
    (10, 4)
    """

    kind: ClassVar[str] = "fit"
    needed: ClassVar[frozenset[str]] = NEEDED
    most_together: ClassVar[int] = 100

    teacher: int = 8
    student: int = 4
    activation: str = "erf"
    dim: int | None = None
    outgoing: str | None = None
    sphere: bool = False
    init: str | None = None
    init_std: float | None = None
    tolerance: float = 1e-6
    max_time: float | None = None
    times: tuple[float, ...] | None = None
    begin: str | None = None
    bias: str | None = None
    student_activation: str | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._set(arrays=self._checked_arrays())
        if "teacher_incoming" in self.arrays:
            shape = self.arrays["teacher_incoming"].shape
            if self.dim not in (None, shape[1]):
                raise ValueError(f"The teacher has {shape[1]} inputs; received dim={self.dim}. Leave dim out.")
            self._set(teacher=shape[0], dim=shape[1])
        for name in ("teacher", "student"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} is a positive whole number of neurons; received {value!r}.")
        self._set(dim=self.teacher + 1 if self.dim is None else int(self.dim))
        if self.dim < self.teacher and "teacher_incoming" not in self.arrays:  # type: ignore[operator]
            raise ValueError(
                f"{self.teacher} orthonormal vectors need at least {self.teacher} dimensions; received dim={self.dim}."
            )
        activations.get(self.activation)
        if self.student_activation is not None:
            activations.get(self.student_activation)
        if self.bias not in (None, "none", "trained"):
            raise ValueError(f"bias is 'none' or 'trained'; received {self.bias!r}.")
        self._set(bias="trained" if self.bias == "trained" else None)
        self._choose()
        if not 1e-13 <= self.tolerance <= 1e-1:
            raise ValueError(f"tolerance must lie between 1e-13 and 0.1; received {self.tolerance}.")
        if self.max_time is not None and not 0 < self.max_time < math.inf:
            raise ValueError(f"max_time must be a positive number; received {self.max_time}.")
        if self.times is not None:
            self._set(times=tuple(float(t) for t in self.times))
        self.options()  # refuses times that are not increasing

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _checked_arrays(self) -> Mapping[str, np.ndarray]:
        unknown = sorted(set(self.arrays) - set(_ARRAYS))
        if unknown or ("teacher_incoming" in self.arrays) != ("teacher_outgoing" in self.arrays):
            raise ValueError(
                f"The arrays of a fit are {', '.join(_ARRAYS)}, a teacher needing both teacher_incoming and "
                f"teacher_outgoing; received {', '.join(self.arrays)}."
            )
        checked = {name: check_finite_array(name, x, *_ARRAYS[name]) for name, x in self.arrays.items()}
        if "teacher_bias" in checked and "teacher_incoming" not in checked:
            raise ValueError("teacher_bias goes with teacher_incoming; received it alone.")
        if "teacher_incoming" in checked and len(checked["teacher_incoming"]) != len(checked["teacher_outgoing"]):
            raise ValueError(
                f"A teacher has as many incoming vectors as outgoing weights; received "
                f"{len(checked['teacher_incoming'])} and {len(checked['teacher_outgoing'])}."
            )
        return MappingProxyType(checked)

    def _choose(self) -> None:
        """Fill in defaults, and refuse what has no effect: on the sphere, and of `init_std` beside Glorot's start."""
        given = {name: getattr(self, name) for name in FREE if getattr(self, name) is not None}
        if self.sphere:
            given |= {name: getattr(self, name) for name in ("bias", "student_activation") if getattr(self, name)}
            given |= {name: "…" for name in ("mean", "covariance") if name in self.arrays}
            for name, value in given.items():
                raise ValueError(
                    "On the sphere outgoing weights are 1, starts are uniform and nothing else is free; "
                    f"received sphere=True and {name}={value}. Leave {name} out."
                )
            return
        chosen = {**FREE, **given}
        if chosen["outgoing"] not in ("trained", "fixed"):
            raise ValueError(f"outgoing is 'trained' or 'fixed'; received {self.outgoing!r}.")
        if chosen["init"] not in ("gaussian", "glorot"):
            raise ValueError(f"init is 'gaussian' or 'glorot'; received {self.init!r}.")
        if chosen["init"] == "glorot":
            if self.init_std is not None:
                raise ValueError(
                    "Glorot's start has standard deviations of its own; "
                    f"received init='glorot' and init_std={self.init_std}. Leave init_std out."
                )
            chosen["init_std"] = None
        elif not 0 < float(chosen["init_std"]) < math.inf:
            raise ValueError(f"init_std must be a positive number; received {self.init_std}.")
        else:
            chosen["init_std"] = float(chosen["init_std"])
        self._set(**chosen)

    def configuration(self) -> dict[str, Any]:
        """The description in JSON types. Fields that are not used are left out, so that new ones change no key."""
        told: dict[str, Any] = {"kind": self.kind}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name != "arrays" and value is not None and value is not False:
                told[f.name] = list(value) if isinstance(value, tuple) else value
        return told | array_fields(self.arrays)

    @classmethod
    def of(cls, configuration: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> "Fit":
        """The description of a configuration; `arrays` are those that it names."""
        known = {f.name for f in fields(cls)} - {"arrays"}
        told = {name: value for name, value in configuration.items() if name in known}
        made = cls(**told, arrays=arrays or {})
        if made.configuration() != dict(configuration):
            raise ValueError(f"This is not the description of a fit that this version knows: {dict(configuration)}.")
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fit) and self.configuration() == other.configuration()

    def __hash__(self) -> int:
        return hash((self.teacher, self.student, self.activation, self.dim))

    def make_teacher(self) -> Teacher:
        """The teacher that is described."""
        if "teacher_incoming" in self.arrays:
            incoming, outgoing = self.arrays["teacher_incoming"], self.arrays["teacher_outgoing"]
            bias, offset = self.arrays.get("teacher_bias"), self.arrays.get("teacher_offset")
            return Teacher(incoming, outgoing, self.activation, bias, offset)
        return Teacher.orthonormal(self.teacher, self.dim, self.activation)

    def task(self) -> "Task":
        """The task that is described."""
        teacher = self.make_teacher()
        if self.sphere:
            return Sphere(teacher, self.student)
        return Population(
            teacher,
            self.student,
            activation=self.student_activation,
            outgoing="trained" if self.outgoing == "trained" else 1.0,
            bias=self.bias or "none",
            mean=self.arrays.get("mean"),
            covariance=self.arrays.get("covariance"),
        )

    def options(self) -> FlowOptions:
        """How the flow is followed."""
        chosen: dict[str, Any] = {"rtol": self.tolerance, "atol": self.tolerance}
        if self.max_time is not None:
            chosen["max_time"] = self.max_time
        if self.times is not None:
            chosen["snapshots"] = self.times
        return FlowOptions(**chosen)

    def follow(
        self,
        seeds: list[int],
        *,
        watch: "Callable[[FitProgress], None] | None" = None,
        seconds: float | None = None,
        starts: Any = None,
        jobs: int | None = None,
    ) -> Iterator[Run]:
        """Compute these seeds, yielding runs as they end; `OutOfTimeError` after `seconds`.

        `starts`: a batch of parameters to begin with, for a description with `begin`. `jobs`: see `understudy.fit`.
        """
        from understudy.fitting import fit_each

        begun = time.monotonic()

        def observe(progress: "FitProgress") -> None:
            if watch is not None:
                watch(progress)
            if seconds is not None and time.monotonic() - begun > seconds:
                raise OutOfTimeError

        if (starts is None) != (self.begin is None):
            raise ValueError("Runs that continue others begin at their ends: give starts together with begin.")
        chosen: dict[str, Any] = {"init": starts} if starts is not None else {}
        if starts is None and not self.sphere:
            chosen = {"init": self.init, "init_std": FREE["init_std"] if self.init_std is None else self.init_std}
        for _, run in fit_each(self.task(), seeds, **chosen, options=self.options(), watch=observe, jobs=jobs):
            yield run

    def to_runs(self, runs: list[Run]) -> Runs:
        """Runs of this description, as an object that knows its task."""
        return Runs(runs, self.task(), self.options().times, self.configuration())

    def to_rows(self, runs: list[Run]) -> "xr.Dataset":
        """Runs of this description as rows, with the arrays that were given."""
        return self.to_runs(runs).to_dataset().assign(array_variables(self.arrays))

    def rows(self, seeds: list[int], *, seconds: float | None = None) -> "xr.Dataset | None":
        """Compute these seeds in this process, one row each; after `seconds` those that are finished, or None."""
        finished: list[Run] = []
        try:
            for run in self.follow(seeds, seconds=seconds, jobs=1):
                finished.append(run)
        except OutOfTimeError:
            pass
        return self.to_rows(sorted(finished, key=lambda run: run.seed)) if finished else None
