"""PyTorch networks: report what is redundant, compress, merge, compare, grow and certify.

`import understudy.torch as ut`; JAX is not imported.
"""

from understudy.torch.certify import TrainedCertificate as TrainedCertificate
from understudy.torch.certify import certify as certify
from understudy.torch.compare import Comparison as Comparison
from understudy.torch.compare import align as align
from understudy.torch.compare import compare as compare
from understudy.torch.compress import compress as compress
from understudy.torch.files import BadFileError as BadFileError
from understudy.torch.files import load as load
from understudy.torch.files import load_state as load_state
from understudy.torch.files import save as save
from understudy.torch.grow import grow as grow
from understudy.torch.merge import MergeReport as MergeReport
from understudy.torch.merge import merge as merge
from understudy.torch.report import LayerReport as LayerReport
from understudy.torch.report import Report as Report
from understudy.torch.report import report as report
from understudy.torch.result import Compressed as Compressed
from understudy.torch.result import CompressionReport as CompressionReport
from understudy.torch.tune import distill as distill
from understudy.torch.tune import finetune as finetune
