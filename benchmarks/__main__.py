"""`python -m benchmarks [NAME …]`: run the benchmarks of those names; each prints tables with ratios.

Without names, those that take about a quarter of an hour together are run.
"""

import os
import sys
from importlib import import_module

# Each module has a `main()` that prints its table.
BENCHMARKS = ("calculus", "flow", "alignment", "report", "compression")
LONG = ("report", "compression")  # networks are trained for these: run them by name

# One thread for everything, so that numbers compare across machines; set before any array library is imported.
THREADS = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
THREADS["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"Unknown benchmark {unknown[0]!r}. Available: {', '.join(BENCHMARKS)}.")
    for name, value in THREADS.items():
        os.environ.setdefault(name, value)
    for name in names or [name for name in BENCHMARKS if name not in LONG]:
        try:
            module = import_module(f"benchmarks.{name}")
        except ModuleNotFoundError as error:  # PyTorch is optional
            if (error.name or "").split(".")[0] in ("benchmarks", "understudy"):
                raise
            print(f"{name}: left out, because {error.name} is not installed.")
            continue
        module.main()
    if not names:
        print(f"Not run, because they train networks first: python -m benchmarks {' '.join(LONG)}")


if __name__ == "__main__":
    main(sys.argv[1:])
