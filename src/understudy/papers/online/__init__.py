"""Order-parameter equations of one-pass SGD.

These papers are not among those that we hold: values that a claim states are our derivations, to be compared with
theirs.
Saad and Solla 1995, "On-line learning in soft committee machines", Physical Review E 52, 4225. Goldt, Advani, Saxe,
Krzakala and Zdeborová 2019, "Dynamics of stochastic gradient descent for two-layer neural networks in the
teacher-student setup", NeurIPS.
"""

from understudy.papers.online import noise, plateau, simulation

CLAIMS = (plateau.CLAIM, noise.CLAIM, simulation.CLAIM)
