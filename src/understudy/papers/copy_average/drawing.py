"""What several figures of this paper share."""

from typing import Any

import numpy as np

from understudy.papers.copy_average.cells import order_for_display

REGIME_COLOURS = {
    "averaging": "#009E73",
    "mixed": "#888888",
    "copying": "#0072B2",
    "copying, better": "#D55E00",
}


def draw_correlations(ax: Any, correlation: np.ndarray, *, colourbar: bool = False, title: str = "") -> None:
    """The matrix u_ij, teachers down and students across, copies first; signs of whole students are made positive."""
    u = np.asarray(correlation)
    students, teachers = order_for_display(u)
    shown = u[np.ix_(students, teachers)].T
    shown = shown * np.where(shown[np.argmax(np.abs(shown), axis=0), np.arange(shown.shape[1])] < 0, -1.0, 1.0)
    image = ax.imshow(shown, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    ax.set(xticks=[], yticks=[], xlabel="student", ylabel="teacher")
    ax.grid(False)
    if title:
        ax.set_title(title, fontsize=9)
    if colourbar:
        ax.figure.colorbar(image, ax=ax, label="correlation u", shrink=0.8)
