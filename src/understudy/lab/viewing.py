"""Open results in the lab from Python."""

from typing import Any

import numpy as np

from understudy.lab.address import fragment_of
from understudy.lab.question import BadQuestionError, read_question


def view(runs: Any, *, browser: bool = True, port: int = 0) -> None:
    """Show the runs of `us.fit` or `us.open` in the browser, until interrupted.

    Every run is listed by its seed, loss and label. A click repeats it from its own first snapshot and shows its flow.
    """
    from understudy.lab.server import serve

    serve(opened=[_entry(run) for run in runs], browser=browser, port=port, say=lambda address: print(address))


def _entry(run: Any) -> dict[str, Any]:
    """A run as an entry of the page's list: words, and the question that repeats it."""
    task = run.flow_task
    teacher = task.teacher
    start = task.unflatten(np.asarray(run.trajectory.snapshots[0]))
    asked = {
        "activation": teacher.activation.name,
        "teacher": {
            "kind": "vectors",
            "incoming": np.asarray(teacher.incoming).tolist(),
            "outgoing": np.asarray(teacher.outgoing).tolist(),
        },
        "students": int(start.width),
        "start": {
            "kind": "vectors",
            "incoming": np.asarray(start.incoming).tolist(),
            "outgoing": np.asarray(start.outgoing).tolist(),
        },
    }
    words = f"seed {run.seed}: {run.certificate.kind}, {run.structure.label or 'no label'}, loss {run.loss:.3g}"
    try:
        return {"name": f"Seed {run.seed}", "text": words, "fragment": fragment_of(read_question(asked))}
    except BadQuestionError as error:
        return {"name": f"Seed {run.seed}", "text": f"{words} (cannot be shown: {error})", "fragment": ""}
