"""What only some targets have."""

from . import cuda, hip, libdevice

__all__ = ["cuda", "hip", "libdevice"]
