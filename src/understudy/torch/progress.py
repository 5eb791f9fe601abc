"""A progress bar for long work, on the error stream of a terminal; it disappears when the work is done."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class ProgressBar:
    """`with ProgressBar("layers", 12) as bar: … bar.tick()`.

    `shown`: True, False, or None for "only if the error stream is a terminal". Rich is imported only if it is shown.
    """

    def __init__(self, name: str, total: int | None, shown: bool | None = None) -> None:
        self.name, self.total = name, total
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> ProgressBar:
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            console = Console(stderr=True)
            self.bar = Bar(*columns, console=console, transient=console.is_terminal)
            self.bar.start()
            self.task = self.bar.add_task(self.name, total=self.total)
        return self

    def tick(self, name: str | None = None, steps: int = 1) -> None:
        """One step more, and a new description if given."""
        if self.bar is not None:
            self.bar.update(self.task, advance=steps, **({} if name is None else {"description": name}))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
