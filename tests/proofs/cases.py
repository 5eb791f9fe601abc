"""Points that several tests prove something about."""

from functools import cache

import numpy as np

import understudy as us
from understudy.papers.tight_balance.tight_pairs import tight_pairs
from understudy.proofs import prove


@cache
def default_case():
    """The README's task and the point that its seeds reach."""
    task = us.Population(us.Teacher.orthonormal(8, 9, "erf"), 4)
    return task, us.theory.copy_average("erf", (1, 1, 1, 5), dim=9)


@cache
def copies(activation="relu", dim=4):
    """A zero-loss point: two students at two teachers."""
    task = us.Population(us.Teacher.orthonormal(2, dim, activation), 2)
    return task, us.TwoLayer(np.eye(2, dim), np.ones(2))


def one_average(activation="erf", teachers=2, width=1, dim=3):
    """The one-neuron optimum for several teachers; with more students, copies follow."""
    partition = (teachers, *[1] * (width - 1))
    point = us.theory.copy_average(activation, partition, dim=dim)
    return us.Population(us.Teacher.orthonormal(sum(partition), dim, activation), width), point


def dependent_teachers(width, activation="relu"):
    """Three teachers in a plane of three dimensions."""
    incoming = np.array([[0.5, 0.75, 0.125], [0.25, -0.5, 0.25], [0.75, 0.25, 0.375]])
    return us.Population(us.Teacher(incoming, [1.0, -0.5, 0.75], activation), width)


def one_relu():
    """The best single ReLU student of these teachers."""
    point = us.TwoLayer([[0.7813132422596284, 0.8553601701720076, 0.2631732448257861]], [1.1861819609186472])
    return dependent_teachers(1), point


def shared(share):
    """Two ReLU students that share the outgoing weight of the best one, at different lengths."""
    _, point = one_relu()
    incoming = np.asarray(point.incoming)
    outgoing = np.array([share, (1 - share) / 2]) * np.asarray(point.outgoing)
    return dependent_teachers(2), us.TwoLayer(np.concatenate([incoming, 2 * incoming]), outgoing)


def tight_balance(degree, dim=2):
    """Two students in tight balance between two teachers on the sphere."""
    return us.Sphere(np.eye(2, dim), 2, activation=f"hermite:{degree}"), tight_pairs(2, 2, dim, degree)


@cache
def proved():
    """A proof to tamper with: the README's point."""
    return prove(*default_case())


def beside_the_teacher(students, dim):
    """Students on the sphere at right angles to the only teacher and to each other: saddles with rotations."""
    return us.Sphere(np.eye(1, dim), students, activation="hermite:2"), np.eye(students, dim, 1)
