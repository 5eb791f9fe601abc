"""Claims of "Over-parameterization as a Catalyst for Better Generalization of Deep ReLU Network" (Tian 2020)."""

from understudy.papers.alignment import (
    attraction,
    cifar,
    constants,
    deep,
    dynamics,
    four_layer,
    interpolation,
    recovery,
    recursion,
    shapes,
    spherical,
    turning,
    two_layer,
    untrained,
)

CLAIMS = (
    recursion.CLAIM,
    interpolation.CLAIM,
    two_layer.CLAIM,
    deep.ALIGN_DEEP,
    deep.NOISY,
    attraction.CLAIM,
    spherical.CLAIM,
    dynamics.CLAIM,
    shapes.L_SHAPE,
    shapes.FOCUS_SHIFT,
    four_layer.CLAIM,
    recovery.RECOVERY,
    recovery.LOSS_CURVES,
    cifar.CLAIM,
    turning.BOTH_LAYERS,
    turning.NEAR_OPPOSITE,
    untrained.CLAIM,
    constants.CLAIM,
)
