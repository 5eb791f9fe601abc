"""Neurons whose weights are all zero, in a loss with a penalty λ‖θ‖² on all weights."""

from dataclasses import dataclass

import numpy as np

from understudy.activations import Activation


@dataclass(frozen=True)
class ZeroNeurons:
    """Neurons of one layer with zero incoming weights w and outgoing weights a.

    To second order each adds λ(‖w‖² + ‖a‖²) + a·Gσ(Bᵀw) to the loss, whatever the others do. Its minimum over a and the
    norms is zero as long as ‖Gσ(Bᵀw)‖ ≤ 2λ for every unit vector w.

    - `parameters` (P,), `hidden` (H,): masks of their weights and of their pre-activations.
    - `inputs` (c, N): B, what they see; `pulls` (m, N): G, the derivative of the cost by what they add to.
    - `incoming` (c,), `outgoing` (m,): positions of the weights of one of them; `penalty`: λ.
    - `convex`: whether the loss is convex in the measure of neurons of this layer, as for one hidden layer. A point
      that is stationary in its other neurons and passes the condition above is then a minimum over all widths.
    """

    parameters: np.ndarray
    hidden: np.ndarray
    inputs: np.ndarray
    pulls: np.ndarray
    incoming: np.ndarray
    outgoing: np.ndarray
    penalty: float
    activation: Activation
    convex: bool
