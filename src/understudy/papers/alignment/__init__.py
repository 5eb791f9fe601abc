"""Claims of "Over-parameterization as a Catalyst for Better Generalization of Deep ReLU Network" (Tian 2020)."""

from understudy.papers.alignment import attraction, dynamics, recovery, recursion

CLAIMS = (recursion.CLAIM, attraction.CLAIM, dynamics.CLAIM, recovery.RECOVERY, recovery.LOSS_CURVES)
