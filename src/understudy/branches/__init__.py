"""Branches of critical points along a real parameter: continuation, folds, pitchforks, and ready families."""

from understudy.branches.diagram import continuation as continuation
from understudy.branches.families import Family as Family
from understudy.branches.families import at_sharpness as at_sharpness
from understudy.branches.families import input_variance as input_variance
from understudy.branches.families import outgoing_weight as outgoing_weight
from understudy.branches.families import softplus_sharpness as softplus_sharpness
from understudy.branches.families import teacher_angle as teacher_angle
from understudy.branches.families import teacher_bias as teacher_bias
from understudy.branches.ratio import perturbed_copies as perturbed_copies
from understudy.branches.ratio import teachers_per_student as teachers_per_student
from understudy.branches.result import Branch as Branch
from understudy.branches.result import Continuation as Continuation
from understudy.branches.result import Found as Found
from understudy.branches.result import Side as Side
from understudy.branches.result import SpecialPoint as SpecialPoint
