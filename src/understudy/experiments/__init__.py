"""What is computed: validated descriptions, and one way to compute each, here or on a cluster."""
