"""Progress on standard error: a bar on a terminal, otherwise an occasional line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.experiments.collecting import CollectProgress

FIRST_LINE_SECONDS = 10.0
"""Without a terminal, work that takes fewer seconds than this prints no progress."""

LINE_FACTOR = 1.5
"""The time of each line is this factor times that of the line before, with gaps of at most `LONGEST_SECONDS`."""

LONGEST_SECONDS = 300.0


class Lines:
    """When the next line of progress is due, if nothing can be redrawn."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.next = FIRST_LINE_SECONDS

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self.begun

    def due(self) -> bool:
        """Whether a line is due now; the next one is then due later."""
        seconds = self.seconds
        if seconds < self.next:
            return False
        self.next = min(seconds * LINE_FACTOR, seconds + LONGEST_SECONDS)
        return True


class Reporter:
    """Shows how much of some work is done; `what` is counted."""

    def __init__(self, what: str, bar: Any = None):
        self.what, self.bar, self.item = what, bar, None
        self.lines = Lines()
        if bar is not None:
            self.item = bar.add_task(what, total=None)

    def show(self, done: float, total: float, note: str = "") -> None:
        """Show that `done` of `total` is done; `note` says what is going on."""
        if self.bar is not None:
            self.bar.update(self.item, completed=done, total=total, description=note or self.what)
            return
        if self.lines.due():
            said = f", {note}" if note else ""
            after = f"after {self.lines.seconds:.0f} s"
            print(f"{done:.4g} of {total:.4g} {self.what} {after}{said}", file=sys.stderr, flush=True)

    def collecting(self, progress: CollectProgress) -> None:
        """Show the progress of a collection."""
        left = progress.seconds_left
        words = [
            progress.note,
            f"{progress.reused} stored before" if progress.reused else "",
            f"{progress.failed} failed" if progress.failed else "",
            f"about {left:.0f} s left" if left else "",
        ]
        done = progress.done + progress.reused + progress.failed
        self.show(done, progress.total, ", ".join(word for word in words if word))


@contextmanager
def reporting(what: str, quiet: bool = False) -> Iterator[Reporter]:
    """A `Reporter`. On a terminal it is a bar, which `quiet` hides."""
    if not sys.stderr.isatty():
        yield Reporter(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True) as bar:
        yield Reporter(what, bar)
