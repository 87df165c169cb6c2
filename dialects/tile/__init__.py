"""The tile dialect: op classes and builders made from ODS, and helpers for its types and enums."""

from tilewright.dialects._enums import enum_attr, enum_value
from tilewright.dialects._tile_ops_gen import *
from tilewright.dialects.tile.types import desc_info, desc_type, element_bits, is_desc, is_ptr, pointee, ptr_space, ptr_type

__all__ = [name for name in globals() if not name.startswith("_")]
