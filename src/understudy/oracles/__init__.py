"""The largest response of a neuron with a unit incoming vector: exactly, bounded from above, or searched for."""

from understudy.oracles.cone_oracle import ConeOracle as ConeOracle
from understudy.oracles.cone_oracle import Maximum as Maximum
from understudy.oracles.largest import largest_response as largest_response
