"""Certify a point: gradient, inertia, explained and unexplained zero modes, and the verdict that follows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.points.case import Case, study
from understudy.points.findings import Answer, judge, on_kink
from understudy.points.kinks import one_sided_descent
from understudy.points.matrix_free import certify_large
from understudy.points.on_kinks import examine_kinks
from understudy.points.surroundings import DENSE, Rounding, Surroundings, natural_lengths
from understudy.points.verdict import Certificate as Certificate
from understudy.points.verdict import Kind as Kind
from understudy.points.verdict import bare
from understudy.points.zero_loss import at_lower_bound
from understudy.points.zero_neurons import judge_zero_neurons
from understudy.tasks.rescaled import rescaled
from understudy.tasks.task import Task
from understudy.tasks.units import Units


def certify(task: Task, parameters: Any, *, tolerance: float = 1e-10, diverging: str | None = None) -> Certificate:
    """Certify any point of any task.

    **Arguments**

    - `parameters`: a network or its flat vector.
    - `tolerance`: the largest gradient norm, in natural units, at which the point counts as critical (raised to the
      gradient's rounding level for large weights). Above it the verdict is `"unconverged"`.
    - `diverging`: evidence, in words, that the run goes to infinity. The verdict is then `"diverging"`.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2), width=2)
    >>> certify(task, us.TwoLayer([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])).kind
    'minimum'
    """
    vector = task.flatten(parameters)
    if vector.ndim != 1:
        raise ValueError(f"certify takes one point at a time; received a batch of shape {vector.shape}.")
    reduction = task.reduce(vector)
    if reduction.outside is None:
        return certify_in_span(task, vector, 0, tolerance=tolerance, diverging=diverging)
    found = certify_in_span(
        reduction.task, reduction.vectors, reduction.outside, tolerance=tolerance, diverging=diverging
    )
    return carried(found, lambda inside: reduction.lift(inside, None), reduction.vectors)


def certify_in_span(
    task: Task, parameters: Any, outside: int, *, tolerance: float = 1e-10, diverging: str | None = None
) -> Certificate:
    """`certify` for a point of a reduced task that leaves out `outside` directions (see `Reduction`)."""
    vector = task.flatten(parameters)
    local, origin = task.prepared(vector).chart(vector)
    if local.kinked and local.size <= DENSE and local.kinks(origin):
        return _on_kinks(local, np.asarray(origin), tolerance, diverging)
    if local.size > DENSE:
        return carried(certify_large(local, np.asarray(origin), outside, tolerance, diverging), local.point, origin)
    return carried(_dense(local, np.asarray(origin), outside, tolerance, diverging), local.point, origin)


def carried(certificate: Certificate, place: Callable[[Any], Any], origin: Any) -> Certificate:
    """The certificate with its directions mapped by `place`, a map of parameters."""
    if not len(certificate.directions):
        return certificate
    start = np.asarray(place(jnp.asarray(origin)))
    rows = [np.asarray(place(jnp.asarray(origin) + 1e-5 * d)) - start for d in certificate.directions]
    return replace(certificate, directions=np.stack([row / np.linalg.norm(row) for row in rows]))


def _on_kinks(task: Task, vector: np.ndarray, tolerance: float, diverging: str | None) -> Certificate:
    """The verdict where pre-activations are zero: from slopes and from curvatures along the kinks; see `on_kinks`."""
    lengths = natural_lengths(task, vector)
    zero = task.zero_neurons(vector)
    left_out = None if zero is None else (zero.parameters, zero.hidden)
    found = examine_kinks(rescaled(task, Units(lengths, 1.0)), vector / lengths, tolerance, left_out)
    kind: Kind = "unconverged" if found.kind == "not stationary" else found.kind
    words, values, directions = [found.words], found.eigenvalues, np.zeros((0, len(vector)))
    if zero is not None and kind != "unconverged":
        settled = judge_zero_neurons(task, vector, zero, kind)
        kind, directions = settled.kind, settled.directions
        words.insert(0, settled.words)
    if kind in ("undecided", "unconverged"):
        around = Surroundings(task, vector)
        if at_lower_bound(around) is not None:
            kind = "minimum"
            words.append("the loss is at its lower bound, to rounding: a global minimum")
        elif kind == "undecided" and (fall := one_sided_descent(around)) is not None:
            kind = "unconverged"
            words.append(f"it falls along a one-sided direction, with slope {fall.slope * around.unit:.1e}")
    negative, zeros = int(np.sum(values < -found.threshold)), int(np.sum(np.abs(values) <= found.threshold))
    return Certificate(
        kind="diverging" if diverging else kind,
        loss=float(task.loss(vector)),
        gradient_norm=float(np.linalg.norm(found.gradient / lengths)),
        newton_decrement=float("nan"),
        least_eigenvalue=float(np.min(values, initial=np.inf)) if len(values) else float("nan"),
        index=negative + len(directions),  # weights of zero neurons were held for the curvatures along the kinks
        zeros=zeros,
        positives=len(values) - negative - zeros,
        threshold=found.threshold,
        explained=min(found.flat, zeros),
        unexplained=max(0, zeros - found.flat),
        flat_dimension=min(found.flat, zeros) if kind == "minimum" else 0,
        method="dense",
        evidence=(*([diverging] if diverging else []), *words),
        eigenvalues=values,
        multiplicities=np.ones(len(values), int),
        directions=directions,
    )


def _dense(task: Task, vector: np.ndarray, outside: int, tolerance: float, diverging: str | None) -> Certificate:
    around = Surroundings(task, vector)
    if not around.finite:
        return _without_derivatives(around, diverging)
    case = study(around, outside, tolerance, diverging)
    answer = judge(case)
    return _certificate(around, case, answer)


def _certificate(given: Surroundings, case: Case, answer: Answer) -> Certificate:
    """The answer with its numbers: eigenvalues and rounding of `case`, loss and gradient of the given point."""
    around, unit = case.around, case.around.unit
    index, zeros, positives = case.inertia
    values, vectors = case.spectrum.values, case.spectrum.vectors
    usable = ~case.spectrum.zero
    along = vectors.T @ given.gradient * given.unit / unit
    decrement = float(np.sqrt(np.sum(along[usable] ** 2 / np.abs(values[usable]))))
    rounding, higher = around.rounding, answer.higher_order
    flat = case.explained if answer.flat is None else answer.flat
    return Certificate(
        kind=answer.kind,
        loss=given.loss * given.unit,
        gradient_norm=float(np.linalg.norm(given.gradient / given.lengths)) * given.unit,
        newton_decrement=decrement * float(np.sqrt(unit)),
        least_eigenvalue=float(case.values[0]) * unit,
        index=index,
        zeros=zeros,
        positives=positives,
        threshold=case.spectrum.threshold * unit,
        explained=min(case.explained, zeros),
        unexplained=case.unexplained,
        flat_dimension=min(flat, zeros) if answer.kind == "minimum" else 0,
        method="dense",
        evidence=(*answer.words, *_remarks(case)),
        eigenvalues=case.values * unit,
        multiplicities=case.multiplicities,
        higher_order=higher,
        way_down=answer.way_down,
        distance=case.spectrum.distance + case.travelled,
        radii=() if higher is None else (higher.radii[0], higher.radii[-1]),
        drop=rounding.loss * unit if answer.drop is None else answer.drop,
        rounding=Rounding(rounding.loss * unit, rounding.gradient * unit, rounding.hessian * unit),
        directions=_directions(given, answer.directions),
    )


def _remarks(case: Case) -> list[str]:
    """Remarks on flat families, on the path to a degenerate critical point, and on units."""
    found = [f"{len(f.tangents)} flat directions: {f.name}, {f.detail}" for f in case.families]
    if case.travelled:
        found.append(
            f"the critical point is degenerate; Newton's method finds it at a distance of {case.travelled:.1e}"
        )
    if np.any(case.around.lengths != 1):
        sizes = ", ".join(f"{x:.3g}" for x in np.unique(case.around.lengths))
        found.append(f"eigenvalues and distances are for parameters in units of {sizes}")
    return found


def _directions(around: Surroundings, directions: np.ndarray) -> np.ndarray:
    """Directions in natural units as unit vectors of parameters."""
    if not directions.size:
        return np.zeros((0, len(around.vector)))
    rows = directions * around.lengths
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _without_derivatives(around: Surroundings, diverging: str | None) -> Certificate:
    """The verdict where gradient or Hessian are not finite: at kinks, or where numbers overflow."""
    norm = float(np.linalg.norm(around.gradient / around.lengths)) * around.unit
    loss = around.loss * around.unit
    kinks = around.task.kinks(around.vector)
    bound = at_lower_bound(around)
    if diverging:
        return bare("diverging", loss, norm, (diverging, *kinks))
    if bound is not None:
        return bare("minimum", loss, norm, ("the loss is at its lower bound, to rounding: a global minimum", *kinks))
    if not kinks:
        return bare("unconverged", loss, norm, ("gradient or Hessian is not finite here",))
    answer = on_kink(around, kinks)
    return replace(bare(answer.kind, loss, norm, answer.words), directions=_directions(around, answer.directions))
