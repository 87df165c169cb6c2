"""The MLIR dialects `tile` and `tilegpu`: op classes, types and attributes, and the context that holds them.

from tilewright.dialects import context, tile, tilegpu
"""

import sys

from tilewright.dialects import tile, tilegpu
from tilewright.dialects._library import context

# MLIR looks for the Python module of a dialect under this name; without it every op would repeat the search.
sys.modules.setdefault("mlir.dialects.tile", tile)
sys.modules.setdefault("mlir.dialects.tilegpu", tilegpu)

__all__ = ["context", "tile", "tilegpu"]
