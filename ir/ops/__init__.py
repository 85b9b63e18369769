"""The ops, one file a family. Importing this package fills the registry."""

from . import arithmetic as arithmetic
from . import barrier as barrier
from . import call as call
from . import compare as compare
from . import constants as constants
from . import contract as contract
from . import conversion as conversion
from . import convolution as convolution
from . import custom_call as custom_call
from . import exponential as exponential
from . import fft as fft
from . import indexing as indexing
from . import linalg as linalg
from . import linear_systems as linear_systems
from . import matrix_functions as matrix_functions
from . import movement as movement
from . import power as power
from . import random as random
from . import reduce as reduce
from . import rounding as rounding
from . import scan_sort as scan_sort
from . import spectral as spectral
from . import transcendental as transcendental
