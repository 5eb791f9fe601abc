"""`understudy compare`: find the neurons of one PyTorch network in another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from understudy.commands import shared
from understudy.commands.modules import read_module, read_module_data
from understudy.commands.screen import fail, show_text
from understudy.extras import need


def compare(
    student: Annotated[Path, typer.Argument(help="A state_dict (.pt, .pth), .safetensors, .pt2, or .npz of weights.")],
    teacher: Annotated[Path, typer.Argument(help="The network whose neurons are searched for in the student.")],
    data: Annotated[Path, typer.Option(help="Inputs (N, …) as .npy, or `inputs` in an .npz.")],
    threshold: Annotated[float, typer.Option(help="Correlation above which a neuron counts as found.")] = 0.9,
    either_sign: Annotated[
        bool, typer.Option("--either-sign", help="Also count neurons with the opposite sign.")
    ] = False,
    module: Annotated[
        str | None, typer.Option(help="The student's class, as file:Class, if it is not a chain.")
    ] = None,
    teacher_module: Annotated[str | None, typer.Option(help="The teacher's class. Default: that of --module.")] = None,
    json_: shared.Json = False,
) -> None:
    """Show which of the teacher's neurons the student has, compared with a student with random weights.

    Example: `understudy compare small.pt network.pt --data inputs.npy`
    """
    need("torch")
    from understudy import torch as ut

    try:
        found = ut.compare(
            read_module(student, module),
            read_module(teacher, teacher_module or module),
            read_module_data(data),
            threshold=threshold,
            signed=not either_sign,
        )
    except (ValueError, TypeError, OSError) as error:
        fail(str(error))
    if json_:
        print(json.dumps({"student": str(student), "teacher": str(teacher), **found.to_dict()}, indent=1))
    else:
        show_text(str(found))
