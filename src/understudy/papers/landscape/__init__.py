"""What the landscape holds beyond the papers: thresholds, branches and critical points that we measured ourselves."""

from understudy.papers.landscape import overtaking, stability

CLAIMS = (overtaking.CLAIM, stability.CLAIM)
