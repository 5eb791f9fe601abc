"""The former name of two rooms, `understudy.alignment` and `understudy.regularised`; every name of 0.1 is still
here."""

from understudy.alignment import *  # noqa: F403
from understudy.regularised import *  # noqa: F403
