"""One-pass SGD in the limit of large dimension: order-parameter equations, simulations, plateaus, asymptotic errors."""

from understudy.online.equations import Rates as Rates
from understudy.online.overlaps import Overlaps as Overlaps
from understudy.online.overlaps import random_overlaps as random_overlaps
from understudy.online.run import Online as Online
from understudy.online.run import OnlineResult as OnlineResult
from understudy.online.simulation import Simulation as Simulation
