"""Changing networks, function-preserving where it can be: warm starts for a smaller student."""

from understudy.surgery.warm_start import warm_start
