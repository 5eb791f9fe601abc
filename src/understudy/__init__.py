"""Finds, certifies and explains what a small network learns from a bigger one."""

import jax as _jax

_jax.config.update("jax_enable_x64", True)

from understudy import gaussian as gaussian
from understudy.gaussian import interaction as interaction
from understudy.networks import TwoLayer as TwoLayer
from understudy.tasks import Population as Population
from understudy.teachers import Teacher as Teacher
