"""What was proved of a point, as an object, in words, and as a file that `verify` checks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from understudy.files import canonical_json, write_json
from understudy.proofs.frame import Frame
from understudy.proofs.shares import Shares
from understudy.proofs.words import statement
from understudy.tasks.exact_form import ExactForm

FORMAT = "understudy proof, version 1"


class BadProofFileError(ValueError):
    """A file that holds no proof, or one that was changed."""


@dataclass(frozen=True)
class Proof:
    """A theorem about one critical point.

    - `kind`: `"strict minimum"`, `"minimum"` (with flat directions along shares of outgoing weights), `"strict saddle"`
      or `"strict maximum"`; `index`, `zeros`, `positives`: the Hessian's inertia, with every zero along a known flat
      set.
    - `center`: a row (w, c, a) for each neuron, with its bias c if biases are trained, and then one for the offset.
    - `center`, `radius`, `error`: the box center ± radius holds exactly one critical point across the symmetries,
      within `error` of the center. These are decimals, each an exact number. `frame` says what the coordinates are;
      `units` are the units of incoming and of outgoing weights, 1 unless weights are far from it.
    - `lower`, `upper`: the critical point's loss is between these decimals.
    - `shares`: where students share one incoming vector, their parts; the center then has one neuron for each group.
    - `distance`: how far (largest difference of a coordinate) the center is from the point given.
    """

    form: ExactForm
    frame: Frame
    center: tuple[tuple[str, ...], ...]
    units: tuple[str, str]
    radius: str
    error: str
    index: int
    zeros: int
    positives: int
    lower: str
    upper: str
    shares: Shares | None = None
    distance: float = field(default=0.0, compare=False)
    holds: bool = field(default=True, init=False)

    @property
    def kind(self) -> str:
        """The nature of the critical point."""
        if self.index == 0:
            return "minimum" if self.shares else "strict minimum"
        return "strict saddle" if self.positives else "strict maximum"

    @property
    def loss(self) -> float:
        """The middle of the loss's enclosure."""
        return float((Fraction(self.lower) + Fraction(self.upper)) / 2)

    @property
    def statement(self) -> str:
        """The theorem, in words."""
        return statement(self)

    def content(self) -> dict[str, Any]:
        """All that the file holds, except its hash."""
        form, frame = self.form, self.frame
        fixed = form.fixed_outgoing
        problem = {
            "loss": form.loss,
            "activation": form.activation,
            "teacher_activation": form.teacher_activation,
            "teacher_incoming": form.incoming.tolist(),
            "teacher_outgoing": form.outgoing.tolist(),
            "width": form.width,
            "fixed_outgoing": None if fixed is None else fixed.tolist(),
            "repulsion": form.repulsion,
            "with_constant": form.with_constant,
        }
        if form.biased:
            problem["biases"] = _biases(form)
        if form.root is not None:
            problem["root"] = form.root.tolist()
        shares = None
        if self.shares is not None:
            shares = {"neuron": self.shares.neuron, "sign": self.shares.sign, "share": self.shares.share}
        return {
            "format": FORMAT,
            "statement": self.statement,
            "problem": problem,
            "frame": {"basis": frame.basis, "rank": frame.rank, "extra": frame.extra, "outside": frame.outside},
            "center": self.center,
            "units": {"incoming": self.units[0], "outgoing": self.units[1]},
            "radius": self.radius,
            "error": self.error,
            "shares": shares,
            "kind": self.kind,
            "inertia": {"negative": self.index, "zero": self.zeros, "positive": self.positives},
            "loss": {"lower": self.lower, "upper": self.upper},
        }

    def save(self, path: str | Path) -> Path:
        """Write the file that `understudy.proofs.verify` checks."""
        return write_json(path, self.document())

    def document(self) -> dict[str, Any]:
        """The content of the file, with its hash."""
        content = self.content()
        return {**content, "sha256": digest(content)}

    def __str__(self) -> str:
        return self.statement


@dataclass(frozen=True)
class NoProof:
    """No theorem, and why: `reason` says which step failed."""

    reason: str
    holds: bool = field(default=False, init=False)

    @property
    def statement(self) -> str:
        """The failure, in words."""
        return f"Not proved: {self.reason}."

    def document(self) -> dict[str, Any]:
        """The reason, to be stored in place of a proof."""
        return {"reason": self.reason}

    def __str__(self) -> str:
        return self.statement


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of the file's content."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def load(path: str | Path) -> Proof:
    """The proof in a file, without checking it; `verify` does."""
    try:
        return _from_content(json.loads(Path(path).read_text()))
    except OSError as error:
        raise BadProofFileError(f"Cannot read {path}: {error.strerror}.") from None
    except (KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise BadProofFileError(
            f"{path} is not a proof that `Proof.save` or `understudy certify --proof --out` wrote: {error!r}."
        ) from None


def from_document(document: dict[str, Any]) -> Proof | NoProof:
    """The `Proof` or `NoProof` whose `document()` this is, without checking it."""
    return _from_content(document) if "center" in document else NoProof(document["reason"])


_ARRAYS = {"fixed": "fixed_bias", "teacher": "teacher_bias", "teacher_offset": "teacher_offset", "mean": "mean"}
"""Names in the file and in `ExactForm`."""


def _biases(form: ExactForm) -> dict[str, Any]:
    given = {name: getattr(form, own) for name, own in _ARRAYS.items()}
    return {"trained": form.trains_bias, **{name: None if x is None else x.tolist() for name, x in given.items()}}


def _read_biases(content: dict[str, Any] | None) -> dict[str, Any]:
    if content is None:
        return {}
    arrays = {own: content[name] for name, own in _ARRAYS.items()}
    found = {own: None if x is None else np.array(x, float) for own, x in arrays.items()}
    return {"trains_bias": bool(content["trained"]), **found}


def _from_content(content: dict[str, Any]) -> Proof:
    problem, frame, shares = content["problem"], content["frame"], content["shares"]
    fixed, root = problem["fixed_outgoing"], problem.get("root")
    form = ExactForm(
        loss=problem["loss"],
        activation=problem["activation"],
        teacher_activation=problem["teacher_activation"],
        incoming=np.array(problem["teacher_incoming"], float),
        outgoing=np.array(problem["teacher_outgoing"], float),
        width=problem["width"],
        fixed_outgoing=None if fixed is None else np.array(fixed, float),
        repulsion=problem["repulsion"],
        with_constant=problem["with_constant"],
        root=None if root is None else np.array(root, float),
        **_read_biases(problem.get("biases")),
    )
    return Proof(
        form=form,
        frame=Frame(**frame),
        center=tuple(tuple(row) for row in content["center"]),
        units=(content["units"]["incoming"], content["units"]["outgoing"]),
        radius=content["radius"],
        error=content["error"],
        index=content["inertia"]["negative"],
        zeros=content["inertia"]["zero"],
        positives=content["inertia"]["positive"],
        lower=content["loss"]["lower"],
        upper=content["loss"]["upper"],
        shares=None if shares is None else Shares(*(tuple(shares[key]) for key in ("neuron", "sign", "share"))),
    )
