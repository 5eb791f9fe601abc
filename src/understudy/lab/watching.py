"""Answer a question step by step: messages that a page can draw while the flow runs.

Everything here is the engine's: the task, its starts, its reduction to the span, the flow, the certificate and the
structure. This module only cuts the run into frames.
"""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.dynamics import FlowOptions
from understudy.dynamics.flow import Glimpse
from understudy.files import finite_or_none
from understudy.fitting import Run, fit, fit_each
from understudy.lab.question import BadQuestionError, Question
from understudy.networks import Teacher, TwoLayer
from understudy.points import push
from understudy.surgery import split
from understudy.tasks import Population, Sphere, Task

Send = Callable[[dict[str, Any]], None]
Cancelled = Callable[[], bool]

PER_DECADE, LAST_TIME = 32, 1e12
"""Frames per factor of ten in time, and the time at which a run is given up."""

SPECTRUM_SIZE = 320
"""Parameters up to which the lowest eigenvalues are shown along the way."""

LOWEST = 8
_BATCH = 8
_ARRAYS = ("incoming", "outgoing", "bias", "offset")


class CancelledError(Exception):
    """The page no longer needs this run."""


def answer(
    question: Question, send: Send, cancelled: Cancelled = lambda: False, known: Mapping[str, Any] | None = None
) -> None:
    """Follow the flow of a question, part by part, and send what a page draws.

    The messages, each a dictionary with a `type`: `begin` (teacher, axes and start of a part), `frames` (some
    snapshots), `end` (verdict and weights of a part), `done`.

    `known` is the `end` of an earlier part of the same question. The parts up to it are left out; what follows is the
    same to the last digit.
    """
    parts = [None, *question.then]
    if known is None:
        begun, task = 0, make_task(question, question.students)
        vector = start_of(task, question)
    else:
        begun = known["part"] + 1
        task = make_task(question, len(known["outgoing"]))
        vector = np.asarray(
            task.flatten(TwoLayer(**{name: known[name] for name in _ARRAYS if known[name] is not None}))
        )
    for number in range(begun, len(parts)):
        step = parts[number]
        if step is not None:
            task, vector = apply(task, vector, step, question)
        send({"type": "begin", "part": number, "parts": len(parts), **_opening(task, vector)})
        run = _follow(task, vector, question, send, cancelled)
        vector = np.asarray(task.flatten(run.parameters))
        send({"type": "end", "part": number, **_verdict(run)})
    send({"type": "done"})


def answer_seeds(question: Question, seeds: list[int], send: Send, cancelled: Cancelled = lambda: False) -> None:
    """Fit many seeds of a question; sends one `seed` message per run as it ends, then `done`."""
    task = make_task(question, question.students)
    init = question.start["kind"] if question.start["kind"] != "vectors" else "gaussian"

    def watch(_: Any) -> None:
        if cancelled():
            raise CancelledError

    for _, run in fit_each(task, seeds, question.start.get("std", 0.1), init, _options(question), watch):
        found = {
            "seed": run.seed,
            "loss": finite_or_none(run.loss),
            "kind": run.certificate.kind,
            "label": run.structure.label,
        }
        send({"type": "seed", **found})
    send({"type": "done"})


def store(question: Question, send: Send) -> None:
    """Fit the question and send the stored result of its last part as bytes, then `done`."""
    import tempfile
    from pathlib import Path

    task = make_task(question, question.students)
    vector = start_of(task, question)
    for step in [None, *question.then]:
        if step is not None:
            task, vector = apply(task, vector, step, question)
        runs = fit(task, [question.start.get("seed", 0)], init=vector[None], options=_options(question))
        vector = np.asarray(task.flatten(runs[0].parameters))
    with tempfile.TemporaryDirectory() as directory:
        send({"type": "stored", "content": Path(runs.save(Path(directory) / "run.nc")).read_bytes()})
    send({"type": "done"})


def _options(question: Question, **more: Any) -> FlowOptions:
    return FlowOptions(rtol=question.tolerance, atol=question.tolerance, **more)


def make_task(question: Question, width: int) -> Task:
    """The task of a question, for this number of students."""
    teacher = make_teacher(question)
    try:
        if question.sphere:
            return Sphere(teacher, width)
        return Population(
            teacher, width, outgoing="trained" if question.outgoing == "trained" else 1.0, **_biases(question)
        )
    except (ValueError, TypeError) as error:
        raise BadQuestionError(str(error)) from None


def _biases(question: Question) -> dict[str, Any]:
    return {} if question.bias == "none" else {"bias": question.bias}


def make_teacher(question: Question) -> Teacher:
    """The teacher of a question."""
    asked, activation = question.teacher, question.activation
    try:
        if asked["kind"] == "orthonormal":
            return Teacher.orthonormal(asked["count"], asked["dim"], activation)
        if asked["kind"] == "random":
            return Teacher.random(asked["count"], asked["dim"], activation, seed=asked["seed"])
        if asked["kind"] == "angles":
            return Teacher.angular(asked["angles"], activation)
        return Teacher(
            asked["incoming"], asked["outgoing"], activation, bias=asked.get("bias"), offset=asked.get("offset")
        )
    except (ValueError, TypeError, KeyError) as error:
        raise BadQuestionError(str(error)) from None


def start_of(task: Task, question: Question) -> np.ndarray:
    """The flat vector from which the run starts."""
    start = question.start
    try:
        if start["kind"] == "vectors":
            rows = np.asarray(start["incoming"], float)
            if question.sphere:
                lengths = np.linalg.norm(rows, axis=1, keepdims=True)
                rows = rows / np.where(lengths > 0, lengths, 1.0)
            shift = (
                {} if question.bias == "none" else {name: start[name] for name in ("bias", "offset") if name in start}
            )
            return np.asarray(task.flatten(TwoLayer(rows, np.asarray(start["outgoing"], float), **shift)))
        return np.asarray(task.starts([start["seed"]], start["kind"], start["std"]))[0]
    except (ValueError, TypeError) as error:
        raise BadQuestionError(str(error)) from None


def apply(task: Task, vector: np.ndarray, step: Any, question: Question) -> tuple[Task, np.ndarray]:
    """Split a neuron or push the point along an eigenvector of the Hessian: the task and the vector to go on from."""
    if "split" in step:
        network = task.unflatten(jnp.asarray(vector))
        if question.outgoing == "fixed" or question.sphere:
            raise BadQuestionError("Splitting keeps the function only if outgoing weights are trained.")
        if step["split"] >= network.width:
            raise BadQuestionError(f"There are students 0 to {network.width - 1}; cannot split {step['split']}.")
        wider = split(network, {step["split"]: [step["share"], 1 - step["share"]]})
        task = make_task(question, wider.width)
        return task, np.asarray(task.flatten(wider))
    try:
        return task, push(task, vector, step["push"], step["sign"])
    except ValueError as error:
        raise BadQuestionError(str(error)) from None


def _opening(task: Task, vector: np.ndarray) -> dict[str, Any]:
    network, reduction = task.unflatten(jnp.asarray(vector)), task.reduce(jnp.asarray(vector))
    small = reduction.task
    return {
        "teachers": _rounded(small.teacher.incoming),
        "teacher_outgoing": _rounded(small.teacher.outgoing),
        **_weights(network),
        "axes": _axes(task),
        "size": int(small.size),
    }


def _axes(task: Any) -> list[list[float]]:
    """The first directions that a page shows, in the input's own coordinates: an orthonormal basis of the teachers."""
    v = np.asarray(task.teacher.incoming)
    if task.dim == 2:
        return np.eye(2).tolist()
    basis = np.linalg.qr(v.T)[0].T
    signs = np.sign(np.einsum("ij,ij->i", basis, v[: len(basis)]))
    return (basis * np.where(signs == 0, 1.0, signs)[:, None]).tolist()


def _follow(task: Task, vector: np.ndarray, question: Question, send: Send, cancelled: Cancelled) -> Run:
    """The run of `fit` from this start, sent frame by frame."""
    small = task.reduce(jnp.asarray(vector)[None]).task
    decades = round(np.log10(LAST_TIME)) + 3
    times = np.concatenate([[0.0], np.geomspace(1e-3, LAST_TIME, decades * PER_DECADE)])
    sent = 0

    def observe(_: int, glimpse: Glimpse) -> None:
        nonlocal sent
        if cancelled():
            raise CancelledError
        if len(glimpse.times) > sent:
            send({"type": "frames", "frames": _frames(small, glimpse.times[sent:], glimpse.snapshots[sent:])})
            sent = len(glimpse.times)

    options = _options(question, snapshots=times, max_time=LAST_TIME)
    ((_, run),) = fit_each(task, [question.start.get("seed", 0)], init=vector[None], options=options, observe=observe)
    end = run.trajectory
    last = _frames(small, np.array([end.time]), end.vector[None])
    send({"type": "frames", "frames": [{**frame, "final": True} for frame in last]})
    return run


@eqx.filter_jit
def _looked_at(task: Task, vectors: Array) -> Any:
    """Loss, gradient and Hessian at some points, in each point's own chart."""

    def look(vector: Array) -> Any:
        local, origin = task.chart(vector)
        return local.evaluate(origin)

    return jax.lax.map(look, vectors)


def _frames(task: Task, times: np.ndarray, vectors: np.ndarray) -> list[dict[str, Any]]:
    frames = []
    prepared = task.prepared(jnp.asarray(vectors))
    for begin in range(0, len(times), _BATCH):
        rows = vectors[begin : begin + _BATCH]
        filled = np.concatenate([rows, np.broadcast_to(rows[-1:], (_BATCH - len(rows), rows.shape[1]))])
        seen = _looked_at(prepared, jnp.asarray(filled))
        for i, row in enumerate(rows):
            if not np.all(np.isfinite(row)):
                continue
            network = task.unflatten(jnp.asarray(row))
            frames.append(
                {
                    "t": float(times[begin + i]),
                    "loss": finite_or_none(seen.loss[i]),
                    "slope": finite_or_none(jnp.linalg.norm(seen.gradient[i])),
                    "w": _rounded(network.incoming),
                    "a": _rounded(network.outgoing),
                    "c": None if network.bias is None else _rounded(network.bias),
                    "lowest": _lowest(np.asarray(seen.hessian[i])),
                }
            )
    return frames


def _lowest(hessian: np.ndarray) -> list[float] | None:
    if len(hessian) > SPECTRUM_SIZE or not np.all(np.isfinite(hessian)):
        return None
    return np.linalg.eigvalsh((hessian + hessian.T) / 2)[:LOWEST].tolist()


def _rounded(array: Any) -> Any:
    """Numbers rounded to seven digits, which is enough for a page."""
    return np.asarray(np.asarray(array, np.float32), float).round(7).tolist()


def _verdict(run: Run) -> dict[str, Any]:
    certificate, structure, trajectory = run.certificate, run.structure, run.trajectory
    lost = run.loss if np.isfinite(run.loss) else certificate.loss
    negative = certificate.eigenvalues[certificate.eigenvalues < -certificate.threshold]
    return {
        "kind": certificate.kind,
        "evidence": list(certificate.evidence),
        "label": structure.label,
        "loss": finite_or_none(lost),
        "theory": structure.predicted_loss,
        "slope": finite_or_none(certificate.gradient_norm),
        "least": finite_or_none(certificate.least_eigenvalue),
        "index": int(certificate.index),
        "flat": int(certificate.flat_dimension),
        "time": finite_or_none(trajectory.time),
        "steps": int(trajectory.steps),
        "ending": trajectory.ending,
        "descending": negative[:LOWEST].tolist(),
        "neurons": [
            {"role": n.role, "teachers": list(n.teachers), "sign": n.sign, "distance": finite_or_none(n.distance)}
            for n in structure.neurons
        ],
        **_weights(run.parameters),
    }


def _weights(network: TwoLayer) -> dict[str, Any]:
    """All weights as lists, in full."""
    found = {name: getattr(network, name) for name in _ARRAYS}
    return {name: None if array is None else _numbers(array) for name, array in found.items()}


def _numbers(array: Any) -> Any:
    """Lists of numbers with all their digits. Numbers that are not finite become None, because JSON cannot express
    them."""
    values = np.asarray(array)
    found = values.astype(object)
    found[~np.isfinite(values)] = None
    return found.tolist()
