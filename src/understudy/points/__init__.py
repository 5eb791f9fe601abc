"""The nature of critical points: certificate, structure, symmetry."""

from understudy.points.certificate import Certificate as Certificate
from understudy.points.certificate import certify as certify
from understudy.points.destinations import push as push
from understudy.points.grouping import Group as Group
from understudy.points.grouping import group_runs as group_runs
from understudy.points.matrix_free import lowest_eigenpairs as lowest_eigenpairs
from understudy.points.meaning import structure as structure
from understudy.tasks.structure import Structure as Structure
