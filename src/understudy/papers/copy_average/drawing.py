"""What several figures of this paper share."""

from typing import Any

import numpy as np

from understudy.plots.neurons import order_of_neurons

REGIME_COLOURS = {
    "averaging": "#009E73",
    "mixed": "#888888",
    "copying": "#0072B2",
    "copying, better": "#D55E00",
}


def draw_correlations(ax: Any, correlation: np.ndarray, *, odd: bool = True, title: str = "") -> None:
    """The matrix u_ij, teachers down and students across, copies first.

    Of an `odd` activation the sign of a student is a convention: each one's largest correlation is shown positive.
    """
    u = np.asarray(correlation)
    students, teachers = order_of_neurons(u)
    shown = u[np.ix_(students, teachers)].T
    if odd:
        largest = shown[np.argmax(np.abs(shown), axis=0), np.arange(shown.shape[1])]
        shown = shown * np.where(largest < 0, -1.0, 1.0)
    ax.imshow(shown, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    ax.set(xticks=[], yticks=[], xlabel="student", ylabel="teacher")
    ax.grid(False)
    if title:
        ax.set_title(title, fontsize=9)
