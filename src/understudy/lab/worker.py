"""A process that answers questions for the server, one at a time."""

import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def work(connection: Connection) -> None:
    """Read jobs `(number, request)` until the pipe closes; write `(number, message)`.

    A request is `{"do": "run" | "store", "question": …}` or `{"do": "seeds", "question": …, "seeds": […]}`; the message
    `("cancel", number)` ends the job under way between two steps.
    """
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    import understudy.lab.watching  # noqa: F401  # while nobody waits

    inbox = _Inbox(connection)
    connection.send((-1, {"type": "ready"}))
    while (job := inbox.take()) is not None:
        number, request = job

        def send(message: dict[str, Any], number: int = number) -> None:
            connection.send((number, message))

        def is_cancelled(number: int = number) -> bool:
            return number in inbox.cancelled

        try:
            _answer(request, send, is_cancelled)
        except (BrokenPipeError, EOFError):
            return


def _answer(request: dict[str, Any], send: Callable[[dict[str, Any]], None], cancelled: Callable[[], bool]) -> None:
    """Do what is asked; whatever goes wrong becomes a message."""
    from understudy.lab.question import BadQuestionError, read_question
    from understudy.lab.watching import CancelledError, answer, answer_seeds, store

    try:
        question = read_question(request["question"])
        if request["do"] == "run":
            answer(question, send, cancelled)
        elif request["do"] == "store":
            store(question, send)
        else:
            answer_seeds(question, list(request["seeds"]), send, cancelled)
    except CancelledError:
        send({"type": "cancelled"})
    except BadQuestionError as error:
        send({"type": "error", "message": str(error)})
    except (BrokenPipeError, EOFError):
        raise
    except Exception as error:
        traceback.print_exc()
        send({"type": "error", "message": f"The engine failed: {type(error).__name__}: {error}"[:500]})


class _Inbox:
    """Jobs and cancellations as they arrive, read by a thread while the process computes."""

    def __init__(self, connection: Connection):
        self.cancelled: set[int] = set()
        self._connection, self._jobs = connection, list[Any]()
        self._ready = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def take(self) -> Any:
        """Wait for the next job; None when the server has gone."""
        with self._ready:
            self._ready.wait_for(lambda: bool(self._jobs))
            return self._jobs.pop(0)

    def _listen(self) -> None:
        message: Any = ()
        while message is not None:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                message = None
            with self._ready:
                if message is not None and message[0] == "cancel":
                    self.cancelled.add(message[1])
                else:
                    self._jobs.append(message)
                self._ready.notify()
