"""Worker processes, shared fairly: every page waits its turn, and work that nobody watches is stopped."""

import asyncio
import itertools
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from typing import Any

from understudy.lab.worker import REHEARSAL
from understudy.processes import core_count
from understudy.processes.helper import environment

GRACE_SECONDS = 2.0
"""Seconds that a cancelled job may continue before its process is replaced (compilation cannot be interrupted)."""

WAITING = 8
"""The largest number of jobs that may wait for one page."""

MOST_PROCESSES = 4


@dataclass
class Job:
    """One request of one page; `deliver(message)` is called for every message of its answer."""

    number: int
    owner: int
    request: dict[str, Any]
    deliver: Callable[[dict[str, Any]], None]
    cancelled: bool = False


class Pool:
    """Up to `size` processes. All methods but the constructor are called from the event loop.

    The first process starts at once. It loads the engine and rehearses the request that a page will make first, so
    that its programs are at hand. Each further process starts when the one before is ready, or when a job waits.
    """

    def __init__(self, rehearsal: dict[str, Any]):
        self.size = max(1, min(MOST_PROCESSES, core_count()))
        self._rehearsal = rehearsal
        self._numbers = itertools.count()
        self._workers = [_Worker(rehearsal, self._assign, self._grow)]
        self._waiting: dict[int, deque[Job]] = {}
        self._turn: deque[int] = deque()

    async def start(self) -> None:
        """Listen to the first process."""
        self._workers[0].listen(asyncio.get_running_loop())

    async def stop(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.end()

    def submit(self, owner: int, request: dict[str, Any], deliver: Callable[[dict[str, Any]], None]) -> int:
        """Queue a request of a page; returns the number by which it can be cancelled."""
        queue = self._waiting.setdefault(owner, deque())
        if len(queue) >= WAITING:
            deliver({"type": "error", "message": f"{WAITING} requests are waiting already; wait for one to end."})
            return -1
        job = Job(next(self._numbers), owner, request, deliver)
        queue.append(job)
        if owner not in self._turn:
            self._turn.append(owner)
        self._assign()
        return job.number

    def cancel(self, owner: int, number: int | None = None) -> None:
        """Stop one job of a page, or all of them."""
        queue = self._waiting.get(owner, deque())
        for job in [j for j in queue if number in (None, j.number)]:
            queue.remove(job)
            job.deliver({"type": "cancelled"})
        for worker in self._workers:
            active = worker.job
            if active is not None and active.owner == owner and number in (None, active.number):
                worker.cancel()
        if number is None:
            self._waiting.pop(owner, None)

    @property
    def busy(self) -> int:
        """The number of processes that are working."""
        return sum(worker.job is not None for worker in self._workers)

    @property
    def ready(self) -> bool:
        """Whether a process has loaded the engine."""
        return any(worker.ready for worker in self._workers)

    def _grow(self) -> None:
        """Start one more process if there may be more."""
        if len(self._workers) < self.size:
            worker = _Worker(self._rehearsal, self._assign, self._grow)
            worker.listen(asyncio.get_running_loop())
            self._workers.append(worker)
            self._assign()

    def _assign(self) -> None:
        for worker in sorted(self._workers, key=lambda worker: not worker.ready):
            while worker.job is None and self._turn:
                owner = self._turn.popleft()
                queue = self._waiting.get(owner)
                if queue:
                    worker.begin(queue.popleft())
                    if queue:
                        self._turn.append(owner)
        if self._turn:
            self._grow()


class _Worker:
    """One process, its pipe, and the thread that reads the pipe."""

    def __init__(self, rehearsal: dict[str, Any], freed: Callable[[], None], warmed: Callable[[], None]):
        self._rehearsal, self._freed, self._warmed = rehearsal, freed, warmed
        self.job: Job | None = None
        self._ended = False
        self._spawn()

    def _spawn(self) -> None:
        """Start a process by `python -c`: `multiprocessing` would import the user's script again."""
        self.ready = False
        self._pipe, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from understudy.lab.worker import work; work({theirs.fileno()})"],
            pass_fds=[theirs.fileno()],
            env={**environment(), "NPROC": "1"},  # NPROC: threads of XLA
            start_new_session=True,  # Ctrl-C is for the server, which ends its workers
        )
        theirs.close()
        self._pipe.send((REHEARSAL, self._rehearsal))

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read what the process sends, in a thread, and hear it in the event loop."""
        self._loop = loop
        threading.Thread(target=self._read, args=(self._pipe,), daemon=True).start()

    def _read(self, pipe: Any) -> None:
        while True:
            try:
                number, message = pipe.recv()
            except (EOFError, OSError):
                self._call(self._died, pipe)
                return
            self._call(self._heard, number, message)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop has ended with the server
            return

    def begin(self, job: Job) -> None:
        """Send the process a job."""
        self.job = job
        try:
            self._pipe.send((job.number, job.request))
        except (OSError, ValueError):
            self._died(self._pipe)

    def cancel(self) -> None:
        """Ask the process to end its job. Replace the process if it does not do so within the grace period."""
        job = self.job
        if job is None or job.cancelled:
            return
        job.cancelled = True
        try:
            self._pipe.send(("cancel", job.number))
        except (OSError, ValueError):
            return
        self._loop.call_later(GRACE_SECONDS, self._give_up, job)

    def _give_up(self, job: Job) -> None:
        if self.job is job:
            self._process.kill()  # the reading thread notices, and `_died` replaces it

    def _heard(self, number: int, message: dict[str, Any]) -> None:
        if number == REHEARSAL:
            self.ready = True
            self._warmed()
            return
        job = self.job
        if job is None or number != job.number:
            return
        if not job.cancelled or message["type"] == "cancelled":
            job.deliver(message)
        if message["type"] in ("done", "error", "cancelled"):
            self.job = None
            self._freed()

    def _died(self, pipe: Any) -> None:
        if self._ended or pipe is not self._pipe:
            return
        job, self.job = self.job, None
        self._close()
        self._spawn()
        self.listen(self._loop)
        if job is not None:
            told = "cancelled" if job.cancelled else "error"
            words = {"message": "The process that computed this run died; it was replaced. Try again."}
            job.deliver({"type": told, **({} if job.cancelled else words)})
        self._freed()

    def end(self) -> None:
        """End the process for good."""
        self._ended = True
        self._close()

    def _close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()
