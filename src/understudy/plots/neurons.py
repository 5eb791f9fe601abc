"""The order in which figures show neurons."""

import numpy as np


def order_of_neurons(correlation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orders of students and teachers, from their correlations u_ij, that put copies on the diagonal.

    Students are sorted by how much they specialise, teachers by the student that matches them best.
    """
    students = np.argsort(-np.abs(correlation).max(axis=1), kind="stable")
    owner = np.abs(correlation[students]).argmax(axis=0)
    return students, np.lexsort((-np.abs(correlation[students]).max(axis=0), owner))
