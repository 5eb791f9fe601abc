"""A process that answers questions for the server, one at a time."""

import os
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

REHEARSAL = -1
"""The number of the job with which a new process begins. No page sees its messages, and any other job ends it."""

_COMPILING = "/jax/compilation_cache/compile_requests_use_cache"
"""The event that JAX reports to listeners before it compiles a program or loads it from the cache."""


def work(descriptor: int) -> None:
    """Read jobs `(number, request)` until the pipe closes; write `(number, message)`.

    A request is `{"do": "run" | "store", "question": …}` or `{"do": "seeds", "question": …, "seeds": […]}`; the message
    `("cancel", number)` ends the job under way between two steps. After the rehearsal the message is `ready`.
    """
    connection = Connection(descriptor)
    inbox = _Inbox(connection)
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    import understudy.lab.watching  # noqa: F401  # while nobody waits

    while True:
        number, request = inbox.take()

        def send(message: dict[str, Any], number: int = number) -> None:
            connection.send((number, message))

        def is_cancelled(number: int = number) -> bool:
            return number in inbox.cancelled

        try:
            if number == REHEARSAL:
                _answer(request, lambda message: None, lambda: inbox.waiting)
                send({"type": "ready"})
            else:
                with _Compilation(send):
                    _answer(request, send, is_cancelled)
        except (BrokenPipeError, EOFError):
            return


def _answer(request: dict[str, Any], send: Callable[[dict[str, Any]], None], cancelled: Callable[[], bool]) -> None:
    """Answer a request. Any error becomes a message."""
    from understudy.lab.question import BadQuestionError, read_question
    from understudy.lab.watching import CancelledError, answer, answer_seeds, store

    try:
        question = read_question(request["question"])
        if request["do"] == "run":
            answer(question, send, cancelled, request.get("known"))
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
        words = f"The engine failed ({type(error).__name__}). The terminal of `understudy lab` shows where."
        send({"type": "error", "message": words})  # not the text of the error: it may name files of this machine


class _Compilation:
    """Sends `compiling` whenever JAX begins to compile, or to load, a program of the job under way."""

    def __init__(self, send: Callable[[dict[str, Any]], None]):
        self._send = send

    def __enter__(self) -> None:
        from jax import monitoring

        monitoring.register_event_listener(self._hear)

    def __exit__(self, *_: Any) -> None:
        from jax import monitoring

        monitoring.unregister_event_listener(self._hear)

    def _hear(self, event: str, **_: Any) -> None:
        if event == _COMPILING:
            self._send({"type": "compiling"})


class _Inbox:
    """Jobs and cancellations as they arrive, read by a thread while the process computes.

    The end of the server, even by `kill -9`, closes the pipe and ends this process at once.
    """

    def __init__(self, connection: Connection):
        self.cancelled: set[int] = set()
        self._connection, self._jobs = connection, list[Any]()
        self._ready = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def waiting(self) -> bool:
        """Whether a job is waiting."""
        return bool(self._jobs)

    def take(self) -> Any:
        """Wait for the next job."""
        with self._ready:
            self._ready.wait_for(lambda: bool(self._jobs))
            return self._jobs.pop(0)

    def _listen(self) -> None:
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                os._exit(0)
            with self._ready:
                if message[0] == "cancel":
                    self.cancelled.add(message[1])
                else:
                    self._jobs.append(message)
                self._ready.notify()
