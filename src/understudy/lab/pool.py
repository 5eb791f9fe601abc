"""Worker processes, shared fairly: every page waits its turn, and work that nobody watches is stopped."""

import asyncio
import itertools
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from understudy.clusters import unchanged_environment
from understudy.lab.worker import work

GRACE_SECONDS = 2.0
"""How long a cancelled job may go on (compilation cannot be interrupted) before its process is replaced."""

WAITING = 8
"""Jobs that one page may have waiting."""

_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NPROC": "1"}


@dataclass
class Job:
    """One request of one page; `deliver(message)` is called for every message of its answer."""

    number: int
    owner: int
    request: dict[str, Any]
    deliver: Callable[[dict[str, Any]], None]
    cancelled: bool = False


class Pool:
    """A fixed number of processes. All methods are called from the event loop."""

    def __init__(self, processes: int | None = None):
        self.size = max(1, processes or min(4, os.cpu_count() or 1))
        self._numbers = itertools.count()
        self._workers: list[_Worker] = []
        self._waiting: dict[int, deque[Job]] = {}
        self._turn: deque[int] = deque()

    async def start(self) -> None:
        """Start the processes; they load the engine while the page is being drawn."""
        loop = asyncio.get_running_loop()
        self._workers = [_Worker(loop, self._freed) for _ in range(self.size)]

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
        """How many processes work."""
        return sum(worker.job is not None for worker in self._workers)

    def _freed(self) -> None:
        self._assign()

    def _assign(self) -> None:
        for worker in self._workers:
            while worker.job is None and self._turn:
                owner = self._turn.popleft()
                queue = self._waiting.get(owner)
                if queue:
                    worker.begin(queue.popleft())
                    if queue:
                        self._turn.append(owner)


class _Worker:
    """One process, its pipe, and the thread that reads the pipe."""

    def __init__(self, loop: asyncio.AbstractEventLoop, freed: Callable[[], None]):
        self._loop, self._freed = loop, freed
        self.job: Job | None = None
        self._ended = False
        self._spawn()

    def _spawn(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        with unchanged_environment(_ENVIRONMENT):
            os.environ.update(_ENVIRONMENT)
            process = context.Process(target=work, args=(theirs,), daemon=True)
            process.start()
        theirs.close()
        self._process, self._pipe = process, ours
        threading.Thread(target=self._read, args=(ours,), daemon=True).start()

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
        """Give the process something to do."""
        self.job = job
        try:
            self._pipe.send((job.number, job.request))
        except (OSError, ValueError):
            self._died(self._pipe)

    def cancel(self) -> None:
        """Ask for an end of the job; replace the process if it does not listen within the grace period."""
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
        self._pipe.close()
        self._spawn()
        if job is not None:
            told = "cancelled" if job.cancelled else "error"
            words = {"message": "The process that computed this run died; it was replaced. Try again."}
            job.deliver({"type": told, **({} if job.cancelled else words)})
        self._freed()

    def end(self) -> None:
        """End the process for good."""
        self._ended = True
        self._process.kill()
        self._pipe.close()
