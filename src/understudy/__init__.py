"""Finds, certifies and explains what a small network learns from a bigger one.

Public names load their modules on first use, so that `understudy --help` needs no array library. All numbers are
float64: importing this package switches JAX to 64 bits.
"""

import os as _os
import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if "jax" in _sys.modules:
    _sys.modules["jax"].config.update("jax_enable_x64", True)
else:
    _os.environ["JAX_ENABLE_X64"] = "1"

_HOMES = {
    "Empirical": "understudy.tasks",
    "Loss": "understudy.tasks",
    "Online": "understudy.online",
    "Population": "understudy.tasks",
    "Regularised": "understudy.tasks",
    "Sphere": "understudy.tasks",
    "Task": "understudy.tasks",
    "Teacher": "understudy.networks",
    "TwoLayer": "understudy.networks",
    "Deep": "understudy.networks",
    "barrier": "understudy.landscape",
    "certify": "understudy.certifying",
    "continuation": "understudy.branches",
    "explore": "understudy.landscape",
    "fit": "understudy.fitting",
    "interaction": "understudy.gaussian",
    "open": "understudy.experiments",
}
_ROOMS = (
    "activations",
    "alignment",
    "branches",
    "dynamics",
    "experiments",
    "fitting",
    "gaussian",
    "lab",
    "layers",
    "landscape",
    "network_files",
    "networks",
    "online",
    "plots",
    "points",
    "proofs",
    "regularised",
    "results",
    "store",
    "surgery",
    "sweeps",
    "tasks",
    "theory",
    "torch",
)

if TYPE_CHECKING:
    from understudy import activations as activations
    from understudy import alignment as alignment
    from understudy import branches as branches
    from understudy import dynamics as dynamics
    from understudy import experiments as experiments
    from understudy import fitting as fitting
    from understudy import gaussian as gaussian
    from understudy import lab as lab
    from understudy import landscape as landscape
    from understudy import layers as layers
    from understudy import network_files as network_files
    from understudy import networks as networks
    from understudy import online as online
    from understudy import plots as plots
    from understudy import points as points
    from understudy import proofs as proofs
    from understudy import regularised as regularised
    from understudy import results as results
    from understudy import store as store
    from understudy import surgery as surgery
    from understudy import sweeps as sweeps
    from understudy import tasks as tasks
    from understudy import theory as theory
    from understudy import torch as torch
    from understudy.branches import continuation as continuation
    from understudy.certifying import certify as certify
    from understudy.experiments import open as open
    from understudy.fitting import fit as fit
    from understudy.gaussian.interaction import interaction as interaction  # type: ignore[no-redef]
    from understudy.landscape import barrier as barrier
    from understudy.landscape.explore import explore as explore  # type: ignore[no-redef]
    from understudy.networks import Deep as Deep
    from understudy.networks import Teacher as Teacher
    from understudy.networks import TwoLayer as TwoLayer
    from understudy.online import Online as Online
    from understudy.tasks import Empirical as Empirical
    from understudy.tasks import Loss as Loss
    from understudy.tasks import Population as Population
    from understudy.tasks import Regularised as Regularised
    from understudy.tasks import Sphere as Sphere
    from understudy.tasks import Task as Task


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return _import_module(f"understudy.{name}")
    raise AttributeError(f"module 'understudy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOMES, *_ROOMS, "__version__"])
