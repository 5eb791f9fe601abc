"""Changing networks, function-preserving where it can be: warm starts, splitting, joining, growing."""

from understudy.surgery.grow import Stage as Stage
from understudy.surgery.grow import grow as grow
from understudy.surgery.join import irreducible as irreducible
from understudy.surgery.join import join_parts as join_parts
from understudy.surgery.join import remove as remove
from understudy.surgery.split import part_positions as part_positions
from understudy.surgery.split import split as split
from understudy.surgery.warm_start import warm_start as warm_start
