"""Making teachers: two-layer ones (orthonormal, at angles, random) and deep ReLU ones with half-active, strong and weak nodes."""

from understudy.teachers.half_active import half_active
from understudy.teachers.two_layer import Teacher
