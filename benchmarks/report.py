"""`understudy.torch.report`: seconds of processor time and memory, on all of MNIST and on one wide layer.

Required: 60,000 inputs of 784-256-128-10 in under 10 s and 1 GB; a 4096 × 4096 layer in under 10 s. Each case runs in
its own process on one thread. Processor time is used because it depends less on other work on the machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

CASES = {"mnist": "60,000 × 784-256-128-10", "wide": "2,000 × 4096-4096-10", "wider": "5,000 × 4096-4096-10"}


def main() -> None:
    for case, told in CASES.items():
        done = subprocess.run([sys.executable, "-m", "benchmarks.report", case], capture_output=True, text=True)
        if done.returncode:
            print(f"report, {told}: {done.stderr.strip().splitlines()[-1]}")
            continue
        seconds, memory = map(float, done.stdout.split())
        print(f"report, {told}: {seconds:.1f} s of processor time (required 10), at most {memory:.2f} GB in all")


def measure(case: str) -> tuple[float, float]:
    """Processor seconds of one report, and the largest memory of the process in GB, PyTorch and data included."""
    import torch
    from torch import nn

    import understudy.torch as ut

    torch.set_num_threads(1)
    torch.manual_seed(0)
    if case == "mnist":
        from benchmarks.trained import digits, mlp

        model, inputs = mlp(), digits()[0][0]
    else:
        model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))
        inputs = torch.randn(2000 if case == "wide" else 5000, 4096)
    ut.report(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), torch.randn(8, 2))  # imports
    begin = time.process_time()
    ut.report(model, inputs)
    return time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    print(*measure(sys.argv[1]))
