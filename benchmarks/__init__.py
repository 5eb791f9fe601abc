"""What is fast, beside its peers, in one run."""
