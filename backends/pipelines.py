"""What the pipelines of devices have in common."""

from __future__ import annotations

from smelt.passes.call_graph import EXPAND

#: What every device needs: transformations expanded, the graph simplified.
SIMPLIFY = f"{EXPAND},canonicalize,cse,dce"
