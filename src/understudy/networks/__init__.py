"""Networks and teachers: parameters and forward pass."""

from understudy.networks.dense import Deep as Deep
from understudy.networks.dense import TwoLayer as TwoLayer
from understudy.networks.half_active import half_active as half_active
from understudy.networks.hidden import HiddenLayer as HiddenLayer
from understudy.networks.hidden import Layered as Layered
from understudy.networks.teacher import Teacher as Teacher
