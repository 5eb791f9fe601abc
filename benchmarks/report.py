"""`understudy.torch.report` and `understudy layers`: seconds of processor time and memory, on all of MNIST and one wide
layer.

Required of `report`: 60,000 inputs of 784-256-128-10 in under 10 s and 1 GB; a 4096 × 4096 layer in under 10 s. Each
case runs in its own process on one thread. Processor time is used because it depends less on other work on the machine.
`layers` also computes forces and works in float64; its time includes starting Python and compiling.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

CASES = {"mnist": "60,000 × 784-256-128-10", "wide": "2,000 × 4096-4096-10", "wider": "5,000 × 4096-4096-10"}


def main() -> None:
    for case, told in CASES.items():
        done = subprocess.run([sys.executable, "-m", "benchmarks.report", case], capture_output=True, text=True)
        if done.returncode:
            print(f"report, {told}: {done.stderr.strip().splitlines()[-1]}")
            continue
        seconds, memory = map(float, done.stdout.split())
        print(f"report, {told}: {seconds:.1f} s of processor time (required 10), at most {memory:.2f} GB in all")
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "benchmarks.report", "files", folder], check=True)
        command = [
            sys.executable,
            "-m",
            "understudy",
            "layers",
            f"{folder}/network.npz",
            "--data",
            f"{folder}/data.npz",
        ]
        begin = subprocess.Popen([*command, "--cost", "cross-entropy"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(begin.pid, 0)
    seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6
    told = f"{seconds:.1f} s of processor time, at most {memory:.2f} GB in all" if status == 0 else "failed"
    print(f"understudy layers, {CASES['mnist']}: {told}")


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


def write_files(folder: Path) -> None:
    """The network and MNIST as the shell reads them."""
    import numpy as np
    import torch

    import understudy.torch as ut
    from benchmarks.trained import digits, mlp

    torch.manual_seed(0)
    ut.save(mlp(), folder / "network.npz")
    inputs, labels = digits()[0]
    np.savez(folder / "data.npz", inputs=inputs.numpy(), targets=labels.numpy())


if __name__ == "__main__":
    if sys.argv[1] == "files":
        write_files(Path(sys.argv[2]))
    else:
        print(*measure(sys.argv[1]))
