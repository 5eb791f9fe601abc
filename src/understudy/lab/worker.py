"""A process that answers questions for the server, one at a time."""

import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any


def work(connection: Connection) -> None:
    """Read jobs `(number, request)` until the pipe closes; write `(number, message)`.

    A request is `{"do": "run", "question": …}` or `{"do": "seeds", "question": …, "seeds": […]}`; the message
    `("cancel", number)` ends the job under way between two steps.
    """
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    from understudy.lab.question import BadQuestionError, read_question
    from understudy.lab.watching import CancelledError, answer, answer_seeds

    cancelled: set[int] = set()
    jobs: list[Any] = []
    ready = threading.Condition()

    def listen() -> None:
        while True:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                message = None
            with ready:
                if message is not None and message[0] == "cancel":
                    cancelled.add(message[1])
                else:
                    jobs.append(message)
                ready.notify()
            if message is None:
                return

    threading.Thread(target=listen, daemon=True).start()
    connection.send((-1, {"type": "ready"}))
    while True:
        with ready:
            ready.wait_for(lambda: bool(jobs))
            job = jobs.pop(0)
        if job is None:
            return
        number, request = job

        def send(message: dict[str, Any], number: int = number) -> None:
            connection.send((number, message))

        def is_cancelled(number: int = number) -> bool:
            return number in cancelled

        try:
            question = read_question(request["question"])
            if request["do"] == "run":
                answer(question, send, is_cancelled)
            else:
                answer_seeds(question, list(request["seeds"]), send, is_cancelled)
        except CancelledError:
            send({"type": "cancelled"})
        except BadQuestionError as error:
            send({"type": "error", "message": str(error)})
        except (BrokenPipeError, EOFError):
            return
        except Exception as error:
            traceback.print_exc()
            send({"type": "error", "message": f"The engine failed: {type(error).__name__}: {error}"[:500]})
