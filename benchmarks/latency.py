"""`python -m benchmarks.latency`: milliseconds of a batch, for every network and width of the compression benchmark.

All rows at one width have the same architecture, so one new network stands for them. Measure on an idle machine: the
long benchmark itself measures no latency, because it may share the machine with other work.
"""

from __future__ import annotations

import torch

from benchmarks.cells import BATCH, MAIN, PARTS, VERSION, name_of
from benchmarks.kept import Kept
from benchmarks.pruners import fresh
from benchmarks.trained import digits, photographs
from understudy.torch.measure import cost

SECONDS = 2.0
"""Time per network; the least of all runs in it counts."""


def main() -> None:
    torch.set_num_threads(1)
    kept = Kept("compression", VERSION)
    inputs = {kind: (digits if kind == "mlp" else photographs)()[1][0][: BATCH[kind]] for kind in MAIN}
    for kind in MAIN:
        for part in (1, *PARTS):
            found = cost(fresh(kind, 1 / part, 0).eval(), (inputs[kind],), SECONDS)
            kept.write(name_of("latency", 0.0, 0, kind, part), {"milliseconds": found.milliseconds, "accuracy": {}})
            print(f"{kind} 1/{part}: {found.milliseconds:.3g} ms for a batch of {found.batch}")


if __name__ == "__main__":
    main()
