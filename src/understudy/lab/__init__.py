"""The lab: watch a student learn, in the browser (optional, `pip install 'understudy[lab]'`)."""

from understudy.lab.address import question_of as question_of
from understudy.lab.server import serve as serve
from understudy.lab.viewing import view as view
