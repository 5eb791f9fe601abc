"""Rows that point the same way: neurons that one neuron can replace."""

from understudy.rays import Groups as Groups
from understudy.rays import aligned_groups as aligned_groups
