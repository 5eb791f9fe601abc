"""What Understudy itself promises, measured like the claims of the papers."""

from understudy.papers.promises import certificates, kill_soak

CLAIMS = (certificates.CLAIM, kill_soak.CLAIM)
