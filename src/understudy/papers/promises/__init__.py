"""What Understudy itself promises, measured like the claims of the papers."""

from understudy.papers.promises import certificates, kill_soak, natures_claim, proofs

CLAIMS = (natures_claim.CLAIM, certificates.CLAIM, kill_soak.CLAIM, proofs.CLAIM)
