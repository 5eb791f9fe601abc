"""Open results in the lab from Python."""

import asyncio
import math
import threading
from typing import Any

import numpy as np

from understudy.lab.address import fragment_of, question_of
from understudy.lab.question import BadQuestionError, Question, read_question

FORMS: tuple[dict[str, Any], ...] = ({}, {"outgoing": "fixed"}, {"sphere": True})
"""The kinds of task that a question can ask for."""


def view(runs: Any, *, browser: bool = True, port: int = 0) -> "View | None":
    """Show the runs of `us.fit` or `us.open` in the lab: each is a dot by its seed and loss, and an entry of a list.

    A click repeats the run from its own first snapshot and shows its flow.

    From a script or the shell this opens the browser and returns when interrupted. In a notebook it returns at once:
    the value of the cell is the page itself, in a frame. This needs a notebook server on the same machine.
    """
    from understudy.lab.server import Lab, serve

    entries = [entry(run) for run in runs]
    first = next((question_of("#" + found["fragment"]) for found in entries if found["fragment"]), None)
    try:
        asyncio.get_running_loop()  # notebooks run their cells inside a loop
    except RuntimeError:
        serve(first, opened=entries, browser=browser, port=port)
        return None
    lab = Lab(first, opened=entries, port=port, framed=True)
    threading.Thread(target=lab.run, daemon=True).start()
    return View(lab)


class View:
    """A lab that runs beside a notebook: a frame where it is displayed, its address where it is printed."""

    def __init__(self, lab: Any):
        self._lab, self.address = lab, lab.address

    def close(self) -> None:
        """End the lab."""
        self._lab.close()

    def __repr__(self) -> str:
        return self.address

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.address}" width="100%" height="900" title="Understudy lab"></iframe>'


def entry(run: Any) -> dict[str, Any]:
    """A run as an entry of the page's list: words, and the question that repeats it, if the lab can ask it."""
    kind, label, loss = run.certificate.kind, run.structure.label, float(run.loss)
    found = {
        "name": f"Seed {run.seed}",
        "text": f"seed {run.seed}: {kind}, {label or 'no label'}, loss {loss:.3g}",
        "dot": {"seed": int(run.seed), "kind": kind, "label": label, "loss": loss if math.isfinite(loss) else None},
    }
    try:
        return {**found, "fragment": fragment_of(question_of_run(run))}
    except BadQuestionError as error:
        return {**found, "text": f"{found['text']} (cannot be shown: {error})", "fragment": ""}


def question_of_run(run: Any) -> Question:
    """The question whose task has the same gradient as the run's at its start; `BadQuestionError` if there is none."""
    from understudy.lab.watching import make_task, start_of

    if run.flow_task is None:
        raise BadQuestionError("the file does not say what was fitted; open it with `us.open(path, task)`.")
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
