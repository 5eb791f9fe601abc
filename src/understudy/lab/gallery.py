"""Phenomena from the papers, each as a question."""

import math
from typing import Any

from understudy.lab.address import fragment_of
from understudy.lab.question import Question, read_question

GALLERY: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "Copy or average",
        "Eight erf teachers, four students: three students each copy a teacher, one averages the other five.",
        {"teacher": {"kind": "orthonormal", "count": 8, "dim": 9}, "students": 4},
    ),
    (
        "Perturbed copies",
        "Nine teachers, eight students: with nearly enough students, all copy, and each is a little off.",
        {"teacher": {"kind": "orthonormal", "count": 9, "dim": 10}, "students": 8},
    ),
    (
        "Saddle to saddle",
        "From a tiny start the students wait near one saddle after another; the loss falls in stairs.",
        {
            "teacher": {"kind": "orthonormal", "count": 4, "dim": 5},
            "students": 4,
            "start": {"kind": "gaussian", "std": 1e-4, "seed": 1},
        },
    ),
    (
        "A split neuron",
        "A minimum with two students; one of them is split in two, and the flow leaves the line of saddles.",
        {
            "activation": "softplus",
            "teacher": {"kind": "angles", "angles": [0.0, 0.25 * math.pi, 0.75 * math.pi, 1.5 * math.pi]},
            "students": 2,
            "start": {"kind": "gaussian", "std": 0.5, "seed": 0},
            "then": [{"split": 0, "share": 0.5}, {"push": 0, "sign": 1}],
        },
    ),
    (
        "A run to infinity",
        "Half of a split softplus neuron and its partner grow with opposite signs: the loss falls forever, ever more "
        "slowly. This one takes about a minute.",
        {
            "activation": "softplus",
            "teacher": {"kind": "angles", "angles": [0.0, 0.25 * math.pi, 0.75 * math.pi, 1.5 * math.pi]},
            "students": 4,
            "start": {
                "kind": "vectors",
                "incoming": [[0.875, 0.362], [-0.13, -0.986], [-0.789, 0.605], [-0.752, -0.311]],
                "outgoing": [1.98, 1.346, 1.346, -0.672],
            },
            "then": [{"split": 1, "share": 0.3}, {"push": 0, "sign": 1}],
        },
    ),
    (
        "Tight balance at ρ = 6",
        "Unit Hermite students: two students share one teacher, tilted away from each other, and hold still.",
        {
            "activation": "hermite:6",
            "sphere": True,
            "teacher": {"kind": "orthonormal", "count": 2, "dim": 2},
            "students": 2,
            "start": {"kind": "vectors", "incoming": [[0.9, 0.436], [0.9, -0.436]], "outgoing": [1.0, 1.0]},
        },
    ),
    (
        "The same at ρ = 4",
        "At ρ = 4 the balance is a non-strict saddle: the flow leaves it, slowly.",
        {
            "activation": "hermite:4",
            "sphere": True,
            "teacher": {"kind": "orthonormal", "count": 2, "dim": 2},
            "students": 2,
            "start": {"kind": "vectors", "incoming": [[0.9, 0.46], [0.9, -0.41]], "outgoing": [1.0, 1.0]},
        },
    ),
    (
        "Spurious ReLU minima",
        "Six ReLU teachers and as many students: some seeds end in a minimum that is not global.",
        {
            "activation": "relu",
            "teacher": {"kind": "orthonormal", "count": 6, "dim": 6},
            "students": 6,
            "start": {"kind": "gaussian", "std": 0.3, "seed": 2},
        },
    ),
)


def listing() -> list[dict[str, str]]:
    """Name, sentence and fragment of every entry."""
    return [
        {"name": name, "text": text, "fragment": fragment_of(read_question(asked))} for name, text, asked in GALLERY
    ]


def named(name: str) -> Question:
    """The question of the entry with this name."""
    return read_question(next(asked for known, _, asked in GALLERY if known == name))
