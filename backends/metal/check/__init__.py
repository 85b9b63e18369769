"""The strict front end for Metal Shading Language: what Apple's compiler would refuse, found on any machine."""

from .front_end import Diagnostic as Diagnostic
from .front_end import check as check
from .front_end import check_or_raise as check_or_raise
