"""Claim `kill-soak`: a sweep killed with SIGKILL again and again, resumed each time, and compared with one left in
peace."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from understudy.papers.check import at_least, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLL = 0.01
LONGEST = 600.0
"""Seconds after which a run that neither stores a cell nor ends counts as hung."""


@dataclass
class Soak:
    """What is known of the store: digests of the files of finished cells, and when each was first seen."""

    directory: Path
    begun: float = field(default_factory=time.monotonic)
    digests: dict[str, str] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    kills: list[float] = field(default_factory=list)
    lost: int = 0
    changed: int = 0

    def look(self) -> set[str]:
        """Names of the cells that are stored now."""
        names = {path.name for path in self.directory.glob("*.nc")}
        for name in names - self.seen.keys():
            self.seen[name] = time.monotonic() - self.begun
        return names

    def examine(self, promised: set[str]) -> None:
        """After a kill: every cell that was there before opens, and those known longer are the same to the byte."""
        from understudy.store import DamagedFileError, Store

        store = Store(self.directory)
        for name in promised | self.digests.keys():
            try:
                store.open(name)
            except (DamagedFileError, OSError):
                self.lost += 1
                continue
            digest = hashlib.sha256((self.directory / name).read_bytes()).hexdigest()
            self.changed += self.digests.setdefault(name, digest) != digest


def command(settings: Settings, directory: Path) -> list[str]:
    """The sweep: one shape of network, so that cells take little time, and many widths of the start."""
    widths = ",".join(f"{width:.4f}" for width in np.linspace(0.05, 0.5, settings["cells"]))
    options = {
        "teacher": 4,
        "student": 3,
        "seeds": settings["seeds"],
        "init-std": widths,
        "workers": settings["workers"],
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "understudy", "sweep", *words, "--out", str(directory), "--json"]


def kill_once(soak: Soak, settings: Settings, rng: np.random.Generator) -> bool:
    """Start or resume the sweep and kill its whole process group after some new cells and a random moment more.

    False if the sweep was finished before.
    """
    wanted, delay = int(rng.integers(0, settings["most_cells"] + 1)), float(rng.uniform(0, settings["most_delay"]))
    before = soak.look()
    process = subprocess.Popen(
        command(settings, soak.directory), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        limit = time.monotonic() + LONGEST
        while process.poll() is None and len(soak.look() - before) < wanted:
            _within(limit)
            time.sleep(POLL)
        end = time.monotonic() + delay
        while process.poll() is None and time.monotonic() < end:
            soak.look()
            time.sleep(POLL)
        finished = process.poll() is not None
        promised = soak.look()
    finally:
        _kill_group(process)
    if finished:
        return False
    soak.kills.append(time.monotonic() - soak.begun)
    soak.look()
    soak.examine(promised)
    return True


def _within(limit: float) -> None:
    if time.monotonic() > limit:
        raise TimeoutError(f"The sweep stored nothing for {LONGEST:.0f} s.")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the process and its workers, and wait until none of them is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(POLL)


def _differences(one: Path, other: Path) -> tuple[int, int]:
    """Cells in both stores, and how many of them differ in a variable, a label or a bit of a number."""
    from understudy.store import Store

    first, second = Store(one), Store(other)
    cells, differing = list(first.entries()), 0
    for cell in cells:
        a, b = first.load(cell), second.load(cell)
        if a is None or b is None or not a.drop_attrs().identical(b.drop_attrs()):
            differing += 1
    return len(cells), differing


def _measure(settings: Settings, progress: Progress) -> Measurement:
    rng = np.random.default_rng(settings["seed"])
    with tempfile.TemporaryDirectory(prefix="understudy-soak-") as scratch:
        peaceful, soaked = Path(scratch) / "peaceful", Path(scratch) / "soaked"
        progress(0.0, "a sweep left in peace")
        subprocess.run(command(settings, peaceful), check=True, capture_output=True, timeout=3600)
        soak = Soak(soaked)
        for number in range(settings["kills"]):
            progress((1 + number) / (2 + settings["kills"]), f"kill {number + 1}")
            if not kill_once(soak, settings, rng):
                break
        kept_until_the_end = len(soak.digests)
        progress((1 + settings["kills"]) / (2 + settings["kills"]), "the last run, to its end")
        subprocess.run(command(settings, soaked), check=True, capture_output=True, timeout=3600)
        soak.look()
        soak.examine(set(soak.digests))
        cells, differing = _differences(peaceful, soaked)
        damaged = len(list(soaked.glob("*.damaged")))
        cut_short = len(list(soaked.glob(".sweep-fit-*.tmp")))
        stored = len(list(soaked.glob("*.nc")))
    checks = [
        equal("kills while the sweep was running", settings["kills"], len(soak.kills)),
        equal("finished cells that were lost or did not open after a kill", 0, soak.lost),
        equal("finished cells that changed after a kill", 0, soak.changed),
        equal("damaged files", 0, damaged),
        equal("cells at the end", settings["cells"], stored),
        equal("cells of the sweep left in peace", settings["cells"], cells),
        equal("cells that differ, in any bit, from the sweep left in peace", 0, differing),
        at_least("cells finished before the last kill", kept_until_the_end, bound=1),
    ]
    measured = {
        "kills": len(soak.kills),
        "finished cells lost": soak.lost,
        "cells": stored,
        "of them finished before the last kill": kept_until_the_end,
        "saves cut short by a kill": cut_short,
        "cells that differ from the sweep left in peace": differing,
    }
    data = {"seen": np.sort(list(soak.seen.values())), "kills": np.array(soak.kills)}
    return Measurement(checks, measured, data=data)


def _draw(measurement: Measurement, figure: Figure) -> None:
    seen, kills = measurement.data["seen"], measurement.data["kills"]
    ax = figure.subplots()
    ax.step(np.concatenate([[0.0], seen]), np.arange(len(seen) + 1), where="post", label="finished cells in the store")
    for number, moment in enumerate(kills):
        ax.axvline(moment, color="C1", lw=1.0, alpha=0.8, label="kill -9" if number == 0 else None)
    ax.set(xlabel="seconds", ylabel="cells", title=f"A sweep killed {len(kills)} times: what is finished stays")
    ax.legend(loc="upper left")


CLAIM = Claim(
    paper="promises",
    id="kill-soak",
    where="README, understudy sweep --help",
    statement=(
        "A sweep may be killed at any moment: what is finished is in the store, whole, and the same command goes on to "
        "the results it would have had."
    ),
    paper_value="nothing lost in 20 kills",
    measured_by=(
        "understudy sweep as a process of its own with its workers, the whole group killed with SIGKILL at random "
        "moments and resumed; after each kill every cell that had been finished is opened, checked against its seal "
        "and compared with its bytes at the kill before; at the end all cells are compared with those of a sweep that "
        "nobody killed."
    ),
    tolerance="exact",
    tolerance_reason="Files are compared byte by byte, results bit by bit.",
    quick={"kills": 3, "cells": 24, "seeds": 4, "workers": 1, "most_cells": 3, "most_delay": 0.3, "seed": 0},
    full={"kills": 20, "cells": 240, "seeds": 4, "workers": 2, "most_cells": 8, "most_delay": 0.5, "seed": 0},
    measure=_measure,
    figure=_draw,
)
