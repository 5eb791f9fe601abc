"""Kinds of tasks that have certificates, and a random task of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.papers.promises.data_instances import deep_data, regularised, two_layer_data
from understudy.papers.promises.instances import Instance
from understudy.papers.promises.population_instances import population
from understudy.papers.promises.sphere_instances import sphere

MAKERS: dict[str, Callable[..., Instance]] = {
    "population": population,
    "two-layer data": two_layer_data,
    "deep data": deep_data,
    "regularised": regularised,
    "sphere": sphere,
}

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "erf": ("population", {"activation": "erf", "width": 3, "teachers": 4, "dim": 4, "orthonormal": True}),
    "erf, fixed outgoing": (
        "population",
        {"activation": "erf", "width": 3, "teachers": 4, "dim": 4, "fixed": True, "orthonormal": True},
    ),
    "erf, two outputs, tilted inputs": (
        "population",
        {"activation": "erf", "width": 2, "teachers": 3, "dim": 3, "outputs": 2, "tilted": True},
    ),
    "erf, more dimensions than neurons": (
        "population",
        {"activation": "erf", "width": 2, "teachers": 3, "dim": 8},
    ),
    "relu": ("population", {"activation": "relu", "width": 2, "teachers": 3, "dim": 3}),
    "relu, fixed outgoing": (
        "population",
        {"activation": "relu", "width": 3, "teachers": 3, "dim": 3, "fixed": True},
    ),
    "quadratic": ("population", {"activation": "quadratic", "width": 2, "teachers": 3, "dim": 2}),
    "softplus": ("population", {"activation": "softplus", "width": 2, "teachers": 3, "dim": 2}),
    "tanh": ("population", {"activation": "tanh:0.5", "width": 3, "teachers": 3, "dim": 2}),
    "gelu": ("population", {"activation": "gelu", "width": 2, "teachers": 3, "dim": 2}),
    "erf from tanh": (
        "population",
        {"activation": "erf", "width": 2, "teachers": 3, "dim": 2, "teacher_activation": "tanh"},
    ),
    "data, two layers": ("two-layer data", {"activation": "softplus", "width": 2}),
    "data, two outputs, log cosh": (
        "two-layer data",
        {"activation": "tanh", "width": 2, "outputs": 2, "cost": "log cosh"},
    ),
    "data, deep": ("deep data", {"activation": "tanh", "widths": [2, 2, 2, 1]}),
    "regularised, deep tanh": ("regularised", {"activation": "tanh", "widths": [2, 2, 2, 1], "penalty": 0.01}),
    "regularised, relu": ("regularised", {"activation": "relu", "widths": [2, 2, 1], "penalty": 0.003}),
    "sphere, squared": ("sphere", {"width": 3, "teachers": 3, "dim": 3, "degree": 4, "loss": "squared"}),
    "sphere, correlation": ("sphere", {"width": 2, "teachers": 2, "dim": 5, "degree": 3, "loss": "correlation"}),
}


def make(kind: str, rng: np.random.Generator) -> Instance:
    """A random task of that kind."""
    maker, settings = KINDS[kind]
    return MAKERS[maker](rng, **settings)
