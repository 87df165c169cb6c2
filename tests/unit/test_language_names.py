"""Every public name of the Triton language exists, and `import triton` can be made to mean this package."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import tilewright
import tilewright.language as tl

TL = """
program_id num_programs arange full zeros zeros_like cast to_tensor cat broadcast broadcast_to expand_dims squeeze unsqueeze reshape view
ravel trans permute join split interleave flip where swizzle2d gather histogram map_elementwise load store make_block_ptr advance
make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor tensor_descriptor tensor_descriptor_type atomic_add atomic_max
atomic_min atomic_and atomic_or atomic_xor atomic_xchg atomic_cas atomic_load atomic_store atomic_poll dot dot_scaled add sub mul exp exp2
log log2 cos sin sqrt rsqrt erf floor ceil sqrt_rn div_rn fdiv fma abs umulhi maximum minimum clamp cdiv sigmoid softmax reduce sum max min
argmax argmin xor_sum reduce_or associative_scan cumsum cumprod sort topk bitonic_merge philox_impl philox randint randint4x rand rand4x
randn randn4x uint_to_uniform_float pair_uniform_to_normal static_print static_assert device_print device_assert debug_barrier assume
multiple_of max_contiguous max_constancy expect_zero inline_asm_elementwise range static_range condition constexpr constexpr_type const
tensor tuple tuple_type slice slice_type dtype pointer_type block_type void pi32_t PropagateNan TRITON_MAX_TENSOR_NUMEL str_to_ty
aggregate_replace target_info math extra core standard random semantic int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float8e5
float8e5b16 float8e4nv float8e4b8 float8e4b15 float16 bfloat16 float32 float64
"""
CORE = (
    "extern_elementwise extern dispatch builtin constexpr tensor dtype view float32 constexpr_function _aggregate builtin_max get_int_dtype"
)
TENSOR = """
abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_load atomic_max atomic_min atomic_or atomic_poll
atomic_store atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum erf exp exp2 expand_dims flip floor gather histogram item
log log2 logical_and logical_or max min permute ravel reduce reduce_or reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn store sum T
to trans view xor_sum handle type dtype shape numel __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__
__rfloordiv__ __mod__ __rmod__ __neg__ __invert__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rlshift__ __rshift__
__rrshift__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__ __not__ __getitem__
"""
TRITON = """
__version__ jit constexpr_function autotune Config heuristics JITFunction KernelInterface compile CompilationError OutOfResources
InterpreterError TritonError reinterpret TensorWrapper MockTensor cdiv next_power_of_2 set_allocator must_use_result aggregate knobs
language runtime compiler backends testing tools errors
"""
MATH = "umulhi exp exp2 log log2 cos sin sqrt sqrt_rn rsqrt abs fdiv div_rn erf floor ceil fma"
CUDA = (
    "globaltimer smid num_threads num_warps convert_custom_float8_sm70 convert_custom_float8_sm80 gdc_wait gdc_launch_dependents libdevice"
)
TARGET = "current_target is_cuda cuda_capability_geq is_hip is_hip_cdna3 is_hip_cdna4 is_hip_gfx1250"


@pytest.mark.parametrize(
    ("home", "names"),
    [
        ("tilewright", TRITON),
        ("tilewright.language", TL),
        ("tilewright.language.core", CORE),
        ("tilewright.language.math", MATH),
        ("tilewright.language.extra.cuda", CUDA),
        ("tilewright.language.extra.hip", "memrealtime smid num_threads num_warps libdevice"),
        ("tilewright.language.target_info", TARGET),
        ("tilewright.language.standard", "_log2 _sum_combine _argmax_combine_tie_break_left"),
    ],
)
def test_names(home, names):
    module = importlib.import_module(home)
    assert [name for name in names.split() if not hasattr(module, name)] == []


def test_methods_of_tensors():
    instance = tl.tensor(None, tl.float32)
    assert [name for name in TENSOR.split() if not hasattr(type(instance), name) and name not in vars(instance)] == []


def test_libdevice_has_all_functions():
    from tilewright.language.extra import cuda, hip, libdevice
    from tilewright.language.extra.libdevice_table import TABLE

    names = [line.split()[0] for line in TABLE.strip().splitlines()]
    assert len(names) == 198
    assert [n for n in names if not callable(getattr(libdevice, n, None))] == []
    assert [n for n in names if not callable(getattr(cuda.libdevice, n, None))] == []
    assert callable(hip.libdevice.fast_expf)


def test_signatures_that_libraries_probe():
    assert "_semantic" in inspect.signature(tl.core.view).parameters
    load = list(inspect.signature(tl.load).parameters)
    assert load[:5] == ["pointer", "mask", "other", "boundary_check", "padding_option"]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_triton_is_this_package():
    assert run(
        """
import tilewright
tilewright.install_as_triton()
tilewright.install_as_triton()
import triton, triton.language as tl, triton.testing
from triton.language.extra import libdevice
from triton.backends.compiler import GPUTarget
import tilewright.language, tilewright.language.extra.libdevice, tilewright.backends.compiler
print(triton is tilewright, tl is tilewright.language, libdevice is tilewright.language.extra.libdevice,
      GPUTarget is tilewright.backends.compiler.GPUTarget, tl.__spec__.name, triton.__spec__.name)
try:
    import triton.no_such_module
except ModuleNotFoundError as error:
    print(error)
"""
    ).splitlines() == [
        "True True True True tilewright.language tilewright",
        "No module named 'triton.no_such_module': tilewright has no tilewright.no_such_module",
    ]


def test_importing_loads_no_heavy_package():
    heavy = run(
        "import sys, tilewright, tilewright.language; print([m for m in ('mlir', 'llvmlite', 'numpy', 'torch') if m in sys.modules])"
    )
    assert heavy == "[]"


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        tilewright.no_such_name  # noqa: B018
