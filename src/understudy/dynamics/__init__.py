"""How a loss is minimised: stiff gradient flow, justified jumps to Newton's method, starts."""

from understudy.dynamics.flow import FlowOptions as FlowOptions
from understudy.dynamics.flow import Trajectory as Trajectory
from understudy.dynamics.flow import follow as follow
