"""Flows on several threads of one process end: without `alone` they wait for each other for ever."""

import threading

import numpy as np

import understudy as us
from understudy.dynamics import FlowOptions, follow

TASK = us.Population(us.Teacher.orthonormal(3, dim=4), width=2)


def test_flows_on_three_threads_end_where_they_end_alone():
    starts = np.asarray(TASK.starts(3))
    options = FlowOptions(snapshots=0)
    ends = {}

    def run(i):
        ((_, trajectory),) = follow(TASK, starts[i : i + 1], options)
        ends[i] = trajectory.vector

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(ends) == [0, 1, 2]
    for i in range(3):
        ((_, trajectory),) = follow(TASK, starts[i : i + 1], options)
        np.testing.assert_array_equal(trajectory.vector, ends[i])
