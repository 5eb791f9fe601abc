"""What several commands ask of their options: which seeds, and a directory that can be written to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from understudy.commands.screen import fail


def parse_seeds(text: str) -> list[int]:
    """`20` (how many), `0,3,7` or `5-9` (which) as a list of seeds."""
    try:
        if "," in text or "-" in text:
            numbers = []
            for part in text.split(","):
                low, _, high = part.partition("-")
                numbers += list(range(int(low), int(high or low) + 1))
        else:
            numbers = list(range(int(text)))
    except ValueError:
        fail(f"--seeds is a number, a list or a range; received {text!r}. Try 20, or 0,3,7, or 5-9.")
    if not numbers or min(numbers) < 0 or len(set(numbers)) != len(numbers):
        fail(f"--seeds needs at least one seed, each once and none negative; received {text!r}.")
    return numbers


def check_out(out: Path | None) -> None:
    """End with a message, before anything is computed, if nothing can be written to `--out`; None is fine.

    A file without a name is written to the directory, or to the nearest one above it that exists, and is gone again:
    whether a directory can be written to is not known otherwise, and other bad input shall leave nothing behind.
    """
    if out is None:
        return
    absolute = out.absolute()
    place = next(p for p in (absolute, *absolute.parents) if os.path.lexists(p))
    if not place.is_dir():
        fail(f"--out is a directory; received {out}, and {place} is a file. Name another place.")
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        fail(
            f"--out is a directory to write to; received {out}, and {place} says: {error.strerror}. Name another place."
        )
