"""The description of a fit to a teacher: which students learn from which teacher, and from which starts."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from understudy.experiments.description import check_finite_array, is_count
from understudy.experiments.flow_fit import FlowFit, name_of_activation
from understudy.networks import Teacher
from understudy.tasks import Population, Sphere

if TYPE_CHECKING:
    from understudy.tasks.task import Task

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
class Fit(FlowFit):
    """Students that learn from a teacher by gradient flow, the same for every seed.

    **Arguments**

    - `teacher`: number k of teacher neurons, orthonormal with outgoing weights 1; `student`: number n of students;
      `dim`: input dimension d (default: k + 1); `activation`: its name.
    - `outgoing`: `"trained"` or `"fixed"` (all 1: a soft committee machine). `sphere`: unit-norm students and teachers.
    - `outputs`: number m of outputs. Orthonormal teacher j then writes to output j mod m. Default: one output.
    - `bias`: `"trained"` gives every student a bias and the output an offset. `student_activation`: if it is not the
      teacher's.
    - `init`: `"gaussian"` with standard deviation `init_std`, or `"glorot"`, which sets its own standard deviations.
      On the sphere starts are uniform.
    - `tolerance`: relative and absolute tolerance of the flow; `max_time`: the latest flow time; `times`: the
      times at which parameters are kept (default: log-spaced).
    - `proof`: whether to try to prove what each end point is; see `understudy.proofs`.
    - `begin`: the hash of the runs that this fit continues. Their ends are its starts.
    - `arrays`: a teacher of your own as `teacher_incoming` (k, d) and `teacher_outgoing` (k,) or (k, m), and if it has
      them `teacher_bias` (k,) and `teacher_offset`; `mean` (d,) and `covariance` (d, d) of the inputs.

    >>> fit = Fit(teacher=3, student=2)
    >>> fit.task().size, fit.configuration()["dim"]
    (10, 4)
    """

    teacher: int = 8
    student: int = 4
    _: KW_ONLY
    dim: int | None = None
    outgoing: str | None = None
    sphere: bool = False
    student_activation: str | None = None
    outputs: int | None = None

    def __post_init__(self) -> None:
        self._set(arrays=self._checked_arrays())
        if "teacher_incoming" in self.arrays:
            shape = self.arrays["teacher_incoming"].shape
            if self.dim not in (None, shape[1]):
                raise ValueError(f"The teacher has {shape[1]} inputs; received dim={self.dim}. Leave dim out.")
            self._set(teacher=shape[0], dim=shape[1])
        for name in ("teacher", "student"):
            if not is_count(value := getattr(self, name)):
                raise ValueError(f"{name} is a positive whole number of neurons; received {value!r}.")
        self._set(dim=self.teacher + 1 if self.dim is None else int(self.dim))
        if self.dim < self.teacher and "teacher_incoming" not in self.arrays:  # type: ignore[operator]
            raise ValueError(
                f"{self.teacher} orthonormal vectors need at least {self.teacher} dimensions; received dim={self.dim}."
            )
        self._check_inputs()
        self._set(activation=name_of_activation(self.activation))
        if self.student_activation is not None:
            self._set(student_activation=name_of_activation(self.student_activation))
        self._check_outputs()
        self._check_bias()
        self._choose()
        self._check_flow()

    def _check_inputs(self) -> None:
        """Mean and covariance have the dimension of the inputs."""
        d = self.dim
        if "mean" in self.arrays and (shape := self.arrays["mean"].shape) != (d,):
            raise ValueError(f"The mean of the inputs must be {d} finite numbers; received shape {shape}.")
        if "covariance" in self.arrays and (shape := self.arrays["covariance"].shape) != (d, d):
            raise ValueError(f"The input covariance must be a {d} × {d} matrix; received shape {shape}.")

    def _check_outputs(self) -> None:
        """`outputs` agrees with the teacher's outgoing weights, and is None for those of a teacher that is given."""
        m = self.outputs
        if m is None:
            return
        if not is_count(m):
            raise ValueError(f"outputs is a positive whole number; received {m!r}.")
        if "teacher_outgoing" in self.arrays:
            own = self.arrays["teacher_outgoing"]
            if m != (own.shape[1] if own.ndim == 2 else 1):
                raise ValueError(
                    f"The teacher's outgoing weights have shape {own.shape}; received outputs={m}. Leave outputs out."
                )
            self._set(outputs=None)
        elif m == 1:
            self._set(outputs=None)
        elif m > self.teacher:
            raise ValueError(f"{self.teacher} teachers write to at most {self.teacher} outputs; received outputs={m}.")

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
        """Fill in defaults; refuse what has no effect on the sphere."""
        if self.sphere:
            names = ("outgoing", "init", "init_std", "bias", "student_activation", "outputs")
            given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
            given |= {name: "…" for name in ("mean", "covariance") if name in self.arrays}
            for name, value in given.items():
                raise ValueError(
                    "On the sphere outgoing weights are 1, starts are uniform and nothing else is free; "
                    f"received sphere=True and {name}={value}. Leave {name} out."
                )
            return
        if self.outgoing not in (None, "trained", "fixed"):
            raise ValueError(f"outgoing is 'trained' or 'fixed'; received {self.outgoing!r}.")
        self._set(outgoing=self.outgoing or "trained")
        self._check_init()

    def make_teacher(self) -> Teacher:
        """The teacher that is described."""
        if "teacher_incoming" in self.arrays:
            incoming, outgoing = self.arrays["teacher_incoming"], self.arrays["teacher_outgoing"]
            bias, offset = self.arrays.get("teacher_bias"), self.arrays.get("teacher_offset")
            return Teacher(incoming, outgoing, self.activation, bias, offset)
        k, m = self.teacher, self.outputs
        return Teacher.orthonormal(k, self.dim, self.activation, np.eye(m)[np.arange(k) % m] if m else 1.0)

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

    def headline(self) -> str:
        outputs = f", {self.outputs} outputs" if self.outputs else ""
        return f"[bold]{self.activation}[/], {self.teacher} teachers, {self.student} students, d = {self.dim}{outputs}"

    def sizes(self) -> str:
        return f"{self.student:,} students, {self.teacher:,} teachers, {self.dim:,} dimensions"

    def advice(self, seeds: int) -> dict[str, float]:
        """k d numbers for the teachers, 2 S n d for starts and ends, 2 P² for a Hessian and its factors.

        P is that in the span, unless there is a covariance.
        """
        dim = float(self.dim or 0)
        size = self.student * ((dim if "covariance" in self.arrays else min(dim, self.student + self.teacher)) + 1)
        return {
            "Use fewer teachers or students.": 2 * size**2,
            "Use a smaller dim: beyond students + teachers it changes nothing but the start.": self.teacher * dim,
            "Use fewer seeds at a time.": 2 * seeds * self.student * dim,
        }

    def start_options(self) -> "dict[str, object]":
        return {} if self.sphere else super().start_options()
