"""Open results in the lab from Python."""

from typing import Any

import numpy as np

from understudy.lab.address import fragment_of
from understudy.lab.question import BadQuestionError, Question, read_question

FORMS: tuple[dict[str, Any], ...] = ({}, {"outgoing": "fixed"}, {"sphere": True})
"""The kinds of task that a question can ask for."""


def view(runs: Any, *, browser: bool = True, port: int = 0) -> None:
    """Show the runs of `us.fit` or `us.open` in the browser, until interrupted.

    Every run is listed by its seed, loss and label. A click repeats it from its own first snapshot and shows its flow.
    """
    from understudy.lab.server import serve

    serve(opened=[entry(run) for run in runs], browser=browser, port=port, say=lambda address: print(address))


def entry(run: Any) -> dict[str, Any]:
    """A run as an entry of the page's list: words, and the question that repeats it, if the lab can ask it."""
    name = f"Seed {run.seed}"
    words = f"seed {run.seed}: {run.certificate.kind}, {run.structure.label or 'no label'}, loss {run.loss:.3g}"
    try:
        return {"name": name, "text": words, "fragment": fragment_of(question_of_run(run))}
    except BadQuestionError as error:
        return {"name": name, "text": f"{words} (cannot be shown: {error})", "fragment": ""}


def question_of_run(run: Any) -> Question:
    """The question whose task has the same gradient as the run's at its start; `BadQuestionError` if there is none."""
    from understudy.lab.watching import make_task, start_of

    task, vector = run.flow_task, np.asarray(run.trajectory.snapshots[0])
    slope = np.asarray(task.gradient(vector))
    for form in FORMS:
        try:
            question = read_question(_asked(task, vector) | form)
            mine = make_task(question, question.students)
            found = np.asarray(mine.gradient(start_of(mine, question)))
        except (AttributeError, BadQuestionError):
            continue
        if found.shape == slope.shape and np.allclose(found, slope, rtol=1e-9, atol=1e-12):
            return question
    raise BadQuestionError("the lab shows population losses of two-layer teachers with one output.")


def _asked(task: Any, vector: np.ndarray) -> dict[str, Any]:
    import jax.numpy as jnp

    start = task.unflatten(jnp.asarray(vector))
    return {
        "activation": task.teacher.activation.name,
        "teacher": {"kind": "vectors", **_arrays(task.teacher)},
        "students": int(start.width),
        "bias": "none" if start.bias is None else "trained",
        "start": {"kind": "vectors", **_arrays(start)},
    }


def _arrays(network: Any) -> dict[str, Any]:
    """The weights of a network as lists, with biases where it has them."""
    found = {name: getattr(network, name) for name in ("incoming", "outgoing", "bias", "offset")}
    return {name: np.asarray(array).tolist() for name, array in found.items() if array is not None}
