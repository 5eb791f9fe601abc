"""A second program that checks proof files: its own reading, formulas and algorithms, on ball arithmetic alone."""
