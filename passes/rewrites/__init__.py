"""Declarative rewrites: rules between terms, in sets that passes apply and ``smelt-opt --check-rewrites`` checks.

See docs/rewrites.md.
"""

from __future__ import annotations

from .sets import Rewrite as Rewrite
from .sets import RewriteSet as RewriteSet
from .sets import Rules as Rules
from .sets import all_sets as all_sets
from .sets import canonical as canonical
from .terms import Attr as Attr
from .terms import Condition as Condition
from .terms import Const as Const
from .terms import Rule as Rule
from .terms import Term as Term
from .terms import computed as computed
from .terms import condition as condition
from .terms import number as number
from .terms import number_of as number_of
from .terms import ops as ops
