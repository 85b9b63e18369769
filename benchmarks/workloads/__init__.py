"""The workloads, one file a theme. Importing this package registers them, in the table's order."""

from . import gelu as gelu
from . import rows as rows
from . import sums as sums

from . import matmul as matmul  # isort: skip
from . import overhead as overhead  # isort: skip
from . import scan as scan  # isort: skip
from . import models as models  # isort: skip
from . import example_models as example_models  # isort: skip
from . import further_models as further_models  # isort: skip
from . import training as training  # isort: skip

from . import compile_time as compile_time  # isort: skip
from . import imports as imports  # isort: skip

from . import examples as examples  # isort: skip

from . import convolutions as convolutions  # isort: skip
from . import quantized as quantized  # isort: skip
from . import linear_algebra as linear_algebra  # isort: skip
from . import fourier as fourier  # isort: skip
from . import ordered as ordered  # isort: skip
from . import few_rows as few_rows  # isort: skip
from . import convolution_kinds as convolution_kinds  # isort: skip
from . import families as families  # isort: skip
from . import shapes as shapes  # isort: skip
