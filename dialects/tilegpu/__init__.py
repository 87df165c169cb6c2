"""The tilegpu dialect: op classes and builders made from ODS, and helpers for its layouts and types."""

from tilewright.dialects._tilegpu_ops_gen import *
from tilewright.dialects.tilegpu.types import (
    buffer_info,
    buffer_type,
    is_buffer,
    is_linear,
    is_shared,
    linear_attr,
    linear_bases,
    linear_rank,
    shared_attr,
    shared_bases,
    shared_pad,
    token_type,
)

__all__ = [name for name in globals() if not name.startswith("_")]
