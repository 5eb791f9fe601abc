"""Items of work shared by this process and its helpers."""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from understudy.processes.helper import Helper, HelperDiedError

Item = TypeVar("Item")

TRIES = 3
"""How often an item is started. If a helper dies (for example, out of memory), its item must be started again."""

_idle: list[Helper] = []
"""Idle helpers, kept because the next call can use what they have compiled."""
_lock = threading.Lock()


def share(
    function: Callable[[Item], Iterator[Any]],
    items: Sequence[Item],
    helpers: int,
    *,
    here: Callable[[Item], Iterator[Any]] | None = None,
    take_part: bool = True,
    worthwhile: Callable[[int, int, float], bool] = lambda done, waiting, seconds: True,
    tick: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield (position, value) for every value of every `function(item)`, in the order in which they come.

    **Arguments**

    - `function`: a generator function; it and the items are sent to up to `helpers` other processes. If they cannot be
      pickled, or helpers cannot start, this process does everything. `here`: the function to use in this process.
    - `take_part`: whether this process computes items, too. Values of helpers are then passed on between its own.
    - `worthwhile(values so far, items not begun, seconds since the first value or since the start)`: asked repeatedly
      until it returns True: helpers are then started.
    - `tick`: called several times per second while this process only waits.

    An item whose helper dies is begun again, so that values may come twice. An exception of `function` ends everything
    and is raised here. When the iterator is closed, helpers that are busy are killed.
    """
    work = _Work(function, items)
    count, since = 0, time.monotonic()
    try:
        while not work.finished:
            if not work.helping and worthwhile(count, len(work.waiting), time.monotonic() - since):
                work.start(min(helpers, len(work.waiting) - take_part))
            position = work.take() if take_part or work.alone else None
            if position is None:
                for outcome in work.heard(wait=True):
                    count += 1
                    yield outcome
                if tick is not None:
                    tick()
                continue
            for value in (here or function)(items[position]):
                yield position, value
                count, since = count + 1, time.monotonic() if count == 0 else since
                if not work.helping and worthwhile(count, len(work.waiting), time.monotonic() - since):
                    work.start(min(helpers, len(work.waiting)))
                for outcome in work.heard():
                    count += 1
                    yield outcome
            work.done(position)
    finally:
        work.stop()


class _Work:
    """Which items wait, which are under way, and what helpers have sent. One thread per helper talks to it."""

    def __init__(self, function: Callable[[Any], Iterator[Any]], items: Sequence[Any]):
        self.function, self.items = function, items
        self.waiting = deque(range(len(items)))
        self.left = set(range(len(items)))
        self.tries = [0] * len(items)
        self.helping = self.alone = False
        self._outcomes: queue.SimpleQueue[tuple[str, int, Any]] = queue.SimpleQueue()
        self._busy: set[Helper] = set()
        self._stopped = False

    @property
    def finished(self) -> bool:
        return not self.left

    def take(self, helper: Helper | None = None) -> int | None:
        """The next item to begin, by this helper or here, or None."""
        with _lock:
            if self._stopped or not self.waiting:
                return None
            if helper is not None:
                self._busy.add(helper)
            position = self.waiting.popleft()
            self.tries[position] += 1
            return position

    def done(self, position: int) -> None:
        self.left.discard(position)

    def heard(self, wait: bool = False) -> Iterator[tuple[int, Any]]:
        """Values that helpers have sent. Raises what they raised."""
        while True:
            try:
                what, position, value = self._outcomes.get(timeout=0.1) if wait else self._outcomes.get_nowait()
            except queue.Empty:
                return
            wait = False
            if what == "error":
                raise value
            if what == "end":
                self.done(position)
            else:
                yield position, value

    def start(self, helpers: int) -> None:
        """Let this many helpers take items."""
        self.helping = True
        try:
            self._pickled(*self.items[:1])
        except Exception:  # whatever pickling a user's object raises
            self.alone = True
            return
        for _ in range(helpers):
            threading.Thread(target=self._employ, daemon=True).start()

    def _employ(self) -> None:
        """Give items to one helper until none is left."""
        try:
            helper = self._engage()
            while helper is not None and (position := self.take(helper)) is not None:
                try:
                    self._converse(helper, position)
                except HelperDiedError as error:
                    self._dismiss(helper)
                    if self._stopped or not self._again(position, error):
                        return
                    helper = self._engage()
            if helper is not None:
                with _lock:
                    _idle.append(helper)
        except HelperDiedError:  # it did not even start: the others, and this process, do the work
            self.alone = True
        except Exception as error:
            self._outcomes.put(("error", -1, error))

    def _engage(self) -> Helper | None:
        """A helper that is ready: an idle one, or a new one."""
        with _lock:
            helper = next((h for h in reversed(_idle) if h.alive), None)
            _idle[:] = [h for h in _idle if h.alive and h is not helper]
            if self._stopped:
                return None
            helper = helper or Helper()
            self._busy.add(helper)
        if not helper.greeted:
            helper.send(self._pickled())  # no items, but it imports what they need
            helper.receive()
            helper.greeted = True
        with _lock:
            self._busy.discard(helper)
        return helper

    def _pickled(self, *items: Any) -> bytes:
        import cloudpickle

        return cloudpickle.dumps((self.function, items))

    def _dismiss(self, helper: Helper) -> None:
        with _lock:
            self._busy.discard(helper)
        helper.end()

    def _converse(self, helper: Helper, position: int) -> None:
        """Let the helper compute an item, and pass on what it sends."""
        helper.send(self._pickled(self.items[position]))
        while True:
            what, value = helper.receive()
            if what != "value":
                with _lock:
                    self._busy.discard(helper)
            self._outcomes.put((what, position, value))
            if what != "value":
                return

    def _again(self, position: int, error: HelperDiedError) -> bool:
        """Put an item back whose helper died, unless that has happened too often."""
        with _lock:
            if self.tries[position] < TRIES:
                self.waiting.append(position)
                return True
        reason = f"{self.tries[position]} helper processes died ({error}), perhaps because memory ran out. Use jobs=1."
        self._outcomes.put(("error", position, RuntimeError(reason)))
        return False

    def stop(self) -> None:
        """Kill helpers that are busy. The others are kept for the next call."""
        with _lock:
            self._stopped = True
            busy, self._busy = self._busy, set()
        for helper in busy:
            helper.end()


@atexit.register
def _end_idle() -> None:
    for helper in _idle:
        helper.end()
