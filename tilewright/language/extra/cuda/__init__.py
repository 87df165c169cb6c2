"""What only NVIDIA GPUs have."""

from __future__ import annotations

from ...core import builtin, tensor
from ...dtypes import int32, int64
from ...semantic.cast import cast
from . import libdevice


@builtin
def globaltimer(_semantic=None):
    """int64 nanoseconds of the GPU's clock."""
    return tensor(_semantic.builder.special("globaltimer", int64), int64)


@builtin
def smid(_semantic=None):
    """int32 number of the multiprocessor that runs this program."""
    return tensor(_semantic.builder.special("smid", int32), int32)


@builtin
def num_threads(_semantic=None):
    """Threads of a program, a constant."""
    return _semantic.option("num_warps") * _semantic.target.warp_size


@builtin
def num_warps(_semantic=None):
    """Warps of a program, a constant."""
    return _semantic.option("num_warps")


@builtin
def gdc_wait(_semantic=None):
    """Wait until the kernels that this one depends on have finished and their writes are seen (launch option `launch_pdl`)."""
    _semantic.builder.special("gdc_wait", None)


@builtin
def gdc_launch_dependents(_semantic=None):
    """Let the kernels that depend on this one start (launch option `launch_pdl`)."""
    _semantic.builder.special("gdc_launch", None)


@builtin
def convert_custom_float8_sm80(arg, dst_ty, fp_downcast_rounding=None, _semantic=None):
    """Cast from or to float8e4b15."""
    return cast(_semantic, arg, dst_ty, fp_downcast_rounding)


convert_custom_float8_sm70 = convert_custom_float8_sm80

__all__ = [
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]
