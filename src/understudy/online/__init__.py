"""One-pass SGD in the limit of large dimension: order-parameter equations, simulations, plateaus, asymptotic errors."""

from understudy.online.asymptotics import AsymptoticError as AsymptoticError
from understudy.online.asymptotics import asymptotic_error as asymptotic_error
from understudy.online.finite_data import MovedMinimum as MovedMinimum
from understudy.online.finite_data import follow_on_samples as follow_on_samples
from understudy.online.finite_data import sampled as sampled
from understudy.online.overlaps import Overlaps as Overlaps
from understudy.online.overlaps import random_overlaps as random_overlaps
from understudy.online.phases import Phases as Phases
from understudy.online.phases import asymptotic_phases as asymptotic_phases
from understudy.online.plateaus import Plateau as Plateau
from understudy.online.plateaus import find_plateaus as find_plateaus
from understudy.online.run import Online as Online
from understudy.online.run import OnlineResult as OnlineResult
from understudy.online.simulation import Simulation as Simulation
