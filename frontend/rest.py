"""What `import smelt` does not load: the first use of any of these names loads them all.

A program seldom uses one, and together they would take a fifth of the time of the import. Those of files are in
`filed`.
"""

from __future__ import annotations

from smelt.runtime.profile import profile as profile

from .divisors import *
from .functions.convolution import *
from .functions.custom_calls import *
from .functions.histograms import *
from .functions.incomplete import *
from .functions.mixtures import *
from .functions.nans import *
from .functions.numerics import *
from .functions.padding import *
from .functions.polynomials import *
from .functions.probabilities import *
from .functions.quantiles import *
from .functions.quantization import *
from .functions.quantized_products import *
from .functions.second_kind import *
from .functions.sets import *
from .functions.special import *
from .functions.statistics import *
from .functions.structured_products import *
from .lazy.depends import *
from .lazy.dot import *
from .linalg.norms import norm as matrix_norm
from .linalg.polynomials import *
from .memory import *
from .subnormals import *
from .transforms.control import *
from .transforms.jacobians import hessian as hessian
from .transforms.jacobians import jacfwd as jacfwd
from .transforms.jacobians import jacrev as jacrev
from .transforms.linearize import linear_transpose as linear_transpose
from .transforms.linearize import linearize as linearize
