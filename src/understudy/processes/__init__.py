"""All cores of one machine: how many there are, and work that is shared with helper processes."""

from understudy.processes.cores import core_count as core_count
from understudy.processes.cores import job_count as job_count
from understudy.processes.cores import use_jobs as use_jobs
from understudy.processes.sharing import share as share
