"""Minimising a loss: stiff gradient flow, justified jumps to Newton's method, starts."""

from understudy.dynamics.flow import follow as follow
from understudy.dynamics.trajectory import FlowOptions as FlowOptions
from understudy.dynamics.trajectory import Trajectory as Trajectory
