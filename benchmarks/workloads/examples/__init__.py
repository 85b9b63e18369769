"""What the examples' models take, beside other frameworks: inference, a step of training, and tokens of the decoder.

``python -m benchmarks examples`` runs these. Functions and models stand in `functions` and `models`; each framework
computes with its own, and results are checked.
"""

from . import steps as steps
from . import tokens as tokens
