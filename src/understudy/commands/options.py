"""Values of options that several commands share: seeds, numbers, a writable directory."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.commands.screen import fail
from understudy.extras import need

if TYPE_CHECKING:
    from understudy.experiments.collecting import Place

MOST_SEEDS = 10_000_000
"""More seeds than this are taken for a typing error: at a millisecond each they would take three hours."""


def parse_seeds(text: str) -> list[int]:
    """`20` (how many), `0,3,7` or `5-9` (which) as a list of seeds."""
    numbers: list[int] = []
    for part in text.split(",") if "," in text or "-" in text else [f"0-{_whole(text, text) - 1}"]:
        low, dash, high = part.partition("-")
        first, last = _whole(low, text), _whole(high if dash else low, text)
        if last - first + 1 + len(numbers) > MOST_SEEDS:
            fail(f"--seeds are at most {MOST_SEEDS:,} in one go; received {text!r}. Give ranges one after another.")
        numbers += range(first, last + 1)
    if not numbers or len(set(numbers)) != len(numbers):
        fail(f"--seeds needs at least one seed, each once and none negative; received {text!r}.")
    return numbers


def _whole(part: str, text: str) -> int:
    if not re.fullmatch(r" *[0-9]{1,18} *", part):
        fail(f"--seeds is a number, a list or a range; received {text!r}. Try 20, or 0,3,7, or 5-9.")
    return int(part)


def parse_list(text: str, option: str, example: str) -> list[float]:
    """Finite numbers separated by commas."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        fail(f"{option} is a number or several separated by commas, such as {example}; received {text!r}.")
    if not all(abs(number) < float("inf") for number in numbers):
        fail(f"{option} are finite numbers; received {text!r}. Try {example}.")
    return numbers


def options_of(*names: str, **others: str) -> dict[str, str]:
    """For `translate`: the options of Python arguments, with their own names or with other ones.

    >>> options_of("init_std", width="--student")
    {'init_std': '--init-std', 'width': '--student'}
    """
    return {name: option_of(name) for name in names} | others


def option_of(name: str) -> str:
    """The option with the name of a Python argument."""
    return "--" + name.replace("_", "-")


def translate(error: Exception | str, options: Mapping[str, str]) -> str:
    """An error message of the engine, with Python arguments replaced by command-line options.

    `options` maps arguments to options. An argument is recognised if a value is assigned to it, if a sentence begins
    with it, and in "Leave … out" and "Lower …".

    >>> names = {"init_std": "--init-std", "sphere": "--sphere"}
    >>> translate(ValueError("Received sphere=True and init_std=0.3. Leave init_std out."), names)
    'Received --sphere and --init-std 0.3. Leave --init-std out.'
    """
    text = str(error)
    for name, option in options.items():
        text = re.sub(rf"\b{name}=True\b", option, text)
        text = re.sub(rf"\b{name}='?([^\s']+?)'?(?=[;,.]?(?:\s|$))", rf"{option} \1", text)
        text = re.sub(rf"(?:^|(?<=[.;:] )|(?<=Leave )|(?<=Lower )|(?<=smaller )){name}\b(?=[:. ])", option, text)
    return text


def read_place(cluster: str | None, scheduler_file: Path | None) -> Place | None:
    """The cluster that the options name, or None for this machine; `ValueError` if there is none."""
    if cluster is None and scheduler_file is None:
        return None
    from understudy.experiments.collecting import Place

    place = Place(cluster, scheduler_file)
    if scheduler_file is not None and not scheduler_file.is_file():
        raise ValueError(
            f"There is no scheduler file {scheduler_file}; start one with `dask scheduler --scheduler-file`."
        )
    return place


def check_out(out: Path | None) -> None:
    """Exit with a message, before anything is computed, if nothing can be stored in `--out`; None is allowed.

    The check creates an unnamed temporary file in the directory, or in its nearest existing parent. No other check is
    reliable, and an unnamed file leaves nothing behind.
    """
    if out is None:
        return
    need("store", "plots")
    absolute = out.absolute()
    place = next(p for p in (absolute, *absolute.parents) if os.path.lexists(p))
    if not place.is_dir():
        what = "a link that leads nowhere" if place.is_symlink() and not place.is_file() else "a file"
        fail(f"--out is a directory; received {out}, and {place} is {what}. Name another place.")
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        fail(
            f"--out is a directory to write to; received {out}, and {place} says: {error.strerror}. Name another place."
        )


def check_limit(limit: float | None) -> None:
    """Exit with a message unless the time limit is positive."""
    if limit is not None and not 0 < limit < float("inf"):
        fail(f"--limit is a positive number of seconds; received {limit}.")
