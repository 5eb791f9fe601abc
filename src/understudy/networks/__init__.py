"""Networks: parameters and forward pass."""

from understudy.networks.dense import Deep, TwoLayer
