"""`@jit` with a driver that records launches: binding, specialization, launch options, hooks, grids, threads, devices."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_gpu import Tensor, active_gpu, fake_compile

import tilewright.language as tl
import tilewright.runtime.jit as jit_module
from tilewright import knobs
from tilewright.errors import CompilationError
from tilewright.runtime import AsyncCompileMode
from tilewright.runtime.allocator import _allocator
from tilewright.runtime.jit import JITFunction, jit
from tilewright.runtime.specialize import specialize_value

CAPTURED = 3


def constexpr(value: Any) -> Any:
    """Captured constants must be `tl.constexpr` objects for the front end; the runtime only compares them."""
    return value


WIDTH = constexpr(5)


def add(x, y, o, n, B: tl.constexpr):
    pass


def scalars(a, b: tl.int64, c: tl.float16, d: tl.constexpr = 7, *, e=None):
    pass


def captures(x, n):
    n + WIDTH


@pytest.fixture
def gpu(monkeypatch):
    yield from active_gpu(monkeypatch)


def tensors(count: int = 3, dtype: str = "float32") -> list[Tensor]:
    return [Tensor(4096 * (i + 1), dtype) for i in range(count)]


def run_twice(launch, gpu) -> list[dict]:
    """The records of one launch through the general path and one through generated code."""
    launch()
    launch()
    first, second = gpu.launches[-2:]
    assert first == second
    return second


def test_memory_that_a_kernel_works_in(gpu, monkeypatch):
    """Each launch takes its own, for every CTA, from the allocator that is set."""
    asked = []

    def allocate(size: int, alignment: int, stream: int) -> Tensor:
        asked.append((size, alignment, stream))
        return Tensor(1 << 20 | len(asked) << 12)

    monkeypatch.setattr(jit_module, "compile", fake_compile(gpu.compiled, scratch=256))
    kernel = jit(add)
    token = _allocator.set(allocate)
    for _ in range(2):
        kernel[(3, 2)](*tensors(), 16, B=64, num_ctas=2)
    assert asked == [(256 * 3 * 2 * 2, 128, gpu.stream)] * 2
    assert [launch["values"][-1] for launch in gpu.launches] == [0x101000, 0x102000]
    _allocator.reset(token)
    with pytest.raises(RuntimeError, match="set_allocator"):
        kernel[(1,)](*tensors(), 16, B=64, num_ctas=2)


def test_kernels_that_loop_over_programs(gpu, monkeypatch):
    """At most as many CTAs are launched as run at a time, and no more than end no later; the grid that was asked for is passed behind the
    arguments."""
    monkeypatch.setattr(jit_module, "compile", fake_compile(gpu.compiled, axes=(0, 1, 2)))
    kernel = jit(add)
    for grid, launched in (((1000, 2), 250), ((66, 8), 264), ((16, 4, 2), 128), ((5,), 5), ((263, 1), 263)):
        seen = run_twice(lambda grid=grid: kernel[grid](*tensors(), 1000, B=1024), gpu)
        assert (seen["values"], seen["programs"]) == ([4096, 8192, 12288, 1000], (*grid, 1, 1)[:3])
        assert seen["grid"] == (launched, 1, 1)
    count = len(gpu.launches)
    kernel[(0, 3)](*tensors(), 1000, B=1024)
    assert len(gpu.launches) == count or gpu.launches[-1]["grid"] == (0, 1, 1)
    with pytest.raises(ValueError, match="grid of add"):
        kernel[(-1,)](*tensors(), 1000, B=1024)


@pytest.mark.parametrize("pdl", [False, True])
def test_kernels_that_take_programs_from_a_queue(gpu, monkeypatch, pdl):
    """They are passed the counter of the stream, unless the launch may run beside another of it."""
    monkeypatch.setattr(jit_module, "compile", fake_compile(gpu.compiled, axes=(0, 1, 2), queue=True))
    kernel = jit(add)
    for stream in (77, 5):
        gpu.stream = stream
        seen = run_twice(lambda: kernel[(1000,)](*tensors(), 1000, B=1024, launch_pdl=pdl), gpu)
        wanted = (0, (250, 1, 1)) if pdl else (64 * stream, (264, 1, 1))
        assert (seen["programs"], seen["counter"], seen["grid"]) == ((1000, 1, 1), *wanted)


def test_first_and_later_launches_are_the_same(gpu):
    kernel = jit(add)
    seen = run_twice(lambda: kernel[(4, 2)](*tensors(), 1000, B=1024, num_warps=8), gpu)
    assert seen["values"] == [4096, 8192, 12288, 1000]
    assert seen["grid"] == (4, 2, 1)
    assert seen["block"] == (256, 1, 1)
    assert seen["stream"] == 77
    assert seen["shared"] == 128
    assert len(gpu.compiled) == 1


def test_generated_code_is_used(gpu, monkeypatch):
    kernel = jit(add)
    args = tensors()
    kernel[(1,)](*args, 1000, B=64)
    monkeypatch.setattr(JITFunction, "launch", lambda *_: pytest.fail("took the general path"))
    for n in (1000, 1008 - 8, 2024, 5):
        kernel[(1,)](*args, n, 64)
        assert gpu.launches[-1]["values"][-1] == n


def test_the_stream_and_the_grid_are_read_at_each_launch(gpu):
    kernel = jit(add)
    for stream, grid in ((1, (1,)), (2, (2, 3)), (3, (4, 5, 6)), (4, lambda meta: (meta["n"] // meta["B"],)), (5, [7])):
        gpu.stream = stream
        kernel[grid](*tensors(), 1024, B=64)
        assert gpu.launches[-1]["stream"] == stream
    assert [launch["grid"] for launch in gpu.launches] == [(1, 1, 1), (2, 3, 1), (4, 5, 6), (16, 1, 1), (7, 1, 1)]


def test_specialization_on_divisibility_equality_and_dtype(gpu):
    kernel = jit(add)
    for n in (16, 17, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63):
        kernel[(1,)](*tensors(), n, B=64)
    kinds = [source.signature["n"] for source, _ in gpu.compiled]
    assert kinds == ["i32", "i32", "constexpr", "i64", "i64", "u64"]
    assert [launch["values"][3:] for launch in gpu.launches] == [[16], [17], [], [2**31 - 1], [2**31], [-(2**31) - 1], [2**63]]
    assert gpu.compiled[0][0].attrs == {(i,): [["tt.divisibility", 16]] for i in range(4)}
    assert (3,) not in gpu.compiled[1][0].attrs
    kernel[(1,)](Tensor(4100), *tensors(2, "bfloat16"), 17, B=64)
    assert list(gpu.compiled[-1][0].signature.values())[:3] == ["*fp32", "*bf16", "*bf16"]
    assert (0,) not in gpu.compiled[-1][0].attrs


def test_equal_values_of_different_types_are_different_constants(gpu):
    kernel = jit(add)
    for constant in (1, True, 1.0, 0.0, -0.0, "1", None):
        for _ in range(2):
            kernel[(1,)](*tensors(), 16, B=constant)
    assert [source.constants[(4,)] for source, _ in gpu.compiled] == [1, True, 1.0, 0.0, -0.0, "1", None]


def test_arguments_change_class_from_call_to_call(gpu):
    kernel = jit(add)
    for n in (5, 2.5, True, None, 5, 2.5, 2**40, 5):
        kernel[(1,)](*tensors(), n, B=64)
    assert [launch["values"][3:] for launch in gpu.launches] == [[5], [2.5], [True], [], [5], [2.5], [2**40], [5]]


def test_annotations_defaults_and_keyword_only(gpu):
    kernel = jit(scalars)
    seen = run_twice(lambda: kernel[(1,)](1, 1, 2.5, e=3), gpu)
    assert seen["values"] == [1, 2.5, 3]  # a == 1 is compiled in; b is an int64 by its annotation
    assert gpu.compiled[0][0].signature == {"a": "constexpr", "b": "i64", "c": "fp16", "d": "constexpr", "e": "i32"}
    assert gpu.compiled[0][0].constants == {(0,): 1, (3,): 7}


def test_do_not_specialize(gpu):
    kernel = jit(do_not_specialize=["n"], do_not_specialize_on_alignment=[0])(add)
    for n in (1, 16, 17):
        kernel[(1,)](*tensors(), n, B=64)
    assert len(gpu.compiled) == 1
    assert gpu.compiled[0][0].signature["n"] == "i32"
    assert set(gpu.compiled[0][0].attrs) == {(1,), (2,)}


class Pair(NamedTuple):
    left: Any
    right: Any


def test_tuples_are_flattened(gpu):
    kernel = jit(add)
    kernel[(1,)](Pair(Tensor(4096), 1), (3, (4.5, None)), None, (), B=2)
    assert gpu.compiled[0][0].signature["x"] == Pair("*fp32", "constexpr")
    assert gpu.compiled[0][0].constants == {(0, 1): 1, (1, 1, 1): None, (2,): None, (4,): 2}
    assert gpu.launches[0]["values"] == [4096, 3, 4.5]


class Interface:
    """An array that offers only `__cuda_array_interface__`."""

    def __init__(self, pointer: int, typestr: str = "<f4"):
        self.__cuda_array_interface__ = {"data": (pointer, False), "typestr": typestr}


class Descriptor:
    """A host tensor descriptor."""

    padding, round_f32_to_tf32 = "zero", False

    def __init__(self, base: Any, shape: list[int], block_shape: list[int]):
        self.base, self.shape, self.block_shape, self.strides = base, shape, block_shape, [shape[-1], 1]


BLOCKS = Descriptor(Tensor(4096), [128, 64], [32, 16])

#: arguments, options -> the values that the kernel gets, of calls that generated code makes
GENERATED = [
    ((Pair(Tensor(4096), 1), (3, (4.5, None)), None, (), 2), {}, [4096, 3, 4.5]),
    ((Interface(8192), Interface(4100, "<i4"), None, 5, 2), {}, [8192, 4100, 5]),
    ((Interface(8192), (Interface(4096), 16), BLOCKS, 2.5, (8, "mode", 1.0)), {}, [8192, 4096, 16, 4096, 128, 64, 64, 1, 2.5]),
    ((tl.float16, *tensors(2), 7, 2), {}, [4096, 8192, 7]),
    ((*tensors(), 7, 2), {"launch_pdl": True, "num_warps": 2, "enable_fp_fusion": False, "debug": True}, [4096, 8192, 12288, 7]),
]


@pytest.mark.parametrize(("arguments", "options", "values"), GENERATED)
def test_what_generated_code_takes(gpu, monkeypatch, arguments, options, values):
    kernel = jit(add)
    kernel[(3,)](*arguments, **options)
    monkeypatch.setattr(JITFunction, "launch", lambda *_: pytest.fail("took the general path"))
    kernel[(3,)](*arguments, **options)
    assert gpu.launches[1] == gpu.launches[0] and gpu.launches[0]["values"] == values


def test_parts_of_tuples_are_checked(gpu):
    kernel = jit(add)
    calls = [((1, 2), 4), ((16, 2), 4), ((16, True), 4), ((16, 2.5), 4), ((16, 2, 3), 4), ((16, None), 4), ((16, 2), 8), ((16, 2**40), 4)]
    for _ in range(2):
        for rest, constant in calls:
            kernel[(1,)](*tensors(), rest, B=(constant, 1))
    assert [launch["values"][3:] for launch in gpu.launches] == 2 * [
        [2],
        [16, 2],
        [16, True],
        [16, 2.5],
        [16, 2, 3],
        [16],
        [16, 2],
        [16, 2**40],
    ]
    assert len(gpu.compiled) == len(calls)
    kernel[(1,)](*tensors(), (16, 2), B=(True, 1))
    assert len(gpu.compiled) == len(calls) + 1


def test_each_set_of_options_is_a_kernel(gpu):
    kernel = jit(add)
    options = [{}, {"launch_pdl": True}, {"debug": True}, {"launch_pdl": True, "num_warps": 8}, {"maxnreg": 64}, {"extern_libs": {}}]
    for _ in range(2):
        for each in options:
            kernel[(1,)](*tensors(), 16, B=64, **each)
    assert [compiled for _, compiled in gpu.compiled] == options


def test_generated_code_finds_what_the_general_path_finds(gpu):
    """Calls in any order, of which the first decides what is compared and what is looked up."""
    for seed in range(6):
        draw = random.Random(seed)
        kernel, checked = jit(add), jit(add)
        for _ in range(150):
            arrays = [Tensor(draw.choice([4096, 8192, 4100]), draw.choice(["float32", "float32", "float16"])) for _ in range(3)]
            arguments = (*arrays, draw.choice([16, 1, 1, 17, 0, -16, -3, 2**40, True, False, 2.0, np.int32(16), None]))
            options = draw.choice([{}, {}, {"num_warps": 8}, {"num_warps": None}, {"num_warps": 2, "num_stages": 2}, {"maxnreg": 64}])
            block = draw.choice([64, 64, 128, 1, True, 1.0, 0.0, -0.0])
            kernel[(2,)](*arguments, B=block, **options)
            found = gpu.launches[-1]["kernel"]
            wanted = checked.warmup(*arguments, grid=(1,), B=block, **options)
            for name in ("signature", "constants", "attrs"):
                assert getattr(found.src, name) == getattr(wanted.src, name), (seed, arguments, block)
            assert repr(found.src.constants) == repr(wanted.src.constants)  # 1 is not True, 0.0 not -0.0
            assert found.metadata.num_warps == wanted.metadata.num_warps and found.metadata.maxnreg == wanted.metadata.maxnreg
            values = [a.pointer for a in arrays] + ([arguments[3]] if found.src.signature["n"] != "constexpr" else [])
            assert gpu.launches[-1]["values"] == values


def test_descriptors_are_told_apart_by_their_blocks(gpu):
    kernel = jit(add)
    for _ in range(2):
        for block in ([32, 16], [16, 32]):
            for rows in (128, 256):
                kernel[(1,)](Descriptor(Tensor(4096), [rows, 64], block), *tensors(2), 16, B=64)
    assert [source.signature["x"] for source, _ in gpu.compiled] == ["tensordesc<fp32[32, 16]>", "tensordesc<fp32[16, 32]>"]
    assert [launch["values"][1] for launch in gpu.launches] == [128, 256] * 4


def test_a_bfloat16_argument_is_rounded(gpu):
    kernel = jit(takes_bfloat16)
    for value in (1.0, 3.14159, 7):
        for _ in range(2):
            kernel[(1,)](value)
    assert [launch["values"] for launch in gpu.launches] == [[bits] for bits in (0x3F80, 0x3F80, 0x4049, 0x4049, 0x40E0, 0x40E0)]


def takes_bfloat16(x: tl.bfloat16):
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ("constexpr", None)),
        (True, ("u1", None)),
        (1, ("constexpr", 1)),
        (0, ("i32", "D")),
        (-16, ("i32", "D")),
        (2**31, ("i64", "D")),
        (2**64 - 1, ("u64", "")),
        (1.5, ("fp32", None)),
        ((1, 2.0), (("constexpr", "fp32"), (1, None))),
        ((), ((), ())),
    ],
)
def test_specialize_value(value, expected):
    assert specialize_value(value) == expected


def test_values_that_no_kernel_takes(gpu):
    kernel = jit(add)
    with pytest.raises(OverflowError):
        kernel[(1,)](*tensors(), 2**64, B=1)
    with pytest.raises(TypeError, match="argument n of add: failed to specialize argument of type: dict"):
        kernel[(1,)](*tensors(), {}, B=1)
    with pytest.raises(TypeError, match="dtype complex64"):
        kernel[(1,)](*tensors(2), Tensor(4096, "complex64"), 1, B=1)


def test_mistakes_in_the_call(gpu):
    kernel = jit(add)
    with pytest.raises(TypeError, match="add.* missing 1 required positional argument: 'B'"):
        kernel[(1,)](*tensors(), 5)
    with pytest.raises(TypeError, match="multiple values for argument 'n'"):
        kernel[(1,)](*tensors(), 5, n=6, B=1)
    with pytest.raises(KeyError, match="Keyword argument num_wraps was specified but unrecognised"):
        kernel[(1,)](*tensors(), 5, B=1, num_wraps=4)
    with pytest.raises(ValueError, match="num_warps must be a power of 2"):
        kernel[(1,)](*tensors(), 5, B=1, num_warps=3)
    with pytest.raises(RuntimeError, match="Cannot call @triton.jit'd outside of the scope of a kernel"):
        kernel(1)
    for grid, error in (((1, 2, 3, 4), ValueError), ((2.5,), TypeError), (5, TypeError), ((-1,), ValueError)):
        with pytest.raises(error, match="grid of add"):
            kernel[grid](*tensors(), 5, B=1)
    kernel[(1,)](*tensors(), 5, B=1)
    for grid, error in (((1, 2, 3, 4), ValueError), ((2.5,), TypeError), (5, TypeError), ((-1,), ValueError)):
        with pytest.raises(error, match="grid of add"):
            kernel[grid](*tensors(), 5, B=1)


@pytest.mark.parametrize(
    "forget",
    [
        lambda kernel: kernel.device_caches.clear(),
        lambda kernel: kernel.device_caches[0][0].clear(),
        lambda kernel: kernel._unsafe_update_src("def add(x, y, o, n, B):\n    return\n"),
    ],
)
def test_cleared_caches_are_compiled_for_again(gpu, forget):
    kernel = jit(add)
    for count in (1, 2):
        for _ in range(3):
            kernel[(1,)](*tensors(), 5, B=1)
        assert len(gpu.compiled) == count and len(gpu.launches) == 3 * count
        forget(kernel)
    assert gpu.launches[0]["kernel"] is not gpu.launches[-1]["kernel"] is gpu.launches[-2]["kernel"]


def test_arguments_that_do_not_fit_are_named(gpu):
    kernel = jit(add)
    kernel[(1,)](*tensors(), 5, B=1)
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match=f"argument n of add: integer argument {number} does not fit in 64 bits"):
            kernel[(1,)](*tensors(), number, B=1)
    for _ in range(2):
        with pytest.raises(TypeError, match="argument b: i64 needs an integer, not 2.5"):
            jit(scalars)[(1,)](Tensor(), 2.5, 1.0)
    with pytest.raises(ValueError, match="grid of add must have 1 to 3 dimensions"):
        kernel[None](*tensors(), 5, B=1)


@pytest.mark.parametrize(("grid", "error"), [((1, 2, 3, 4), ValueError), (3, TypeError), ((1.5,), TypeError)])
def test_grids_of_a_compiled_kernel_are_checked(gpu, grid, error):
    compiled = jit(add).warmup(*tensors(), 5, B=1, grid=(1,))
    with pytest.raises(error, match="grid of add"):
        compiled[grid](*tensors(), 5, 1)


def test_a_tensor_in_host_memory_is_refused(gpu):
    kernel = jit(add)
    x, y, o = tensors()
    kernel[(1,)](x, y, o, 5, B=1)
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"argument y: Pointer argument cannot be accessed from Triton \(cpu tensor\?\): a Tensor on cpu"
        ):
            kernel[(1,)](x, Tensor(64, device=-1), o, 5, B=1)
    kernel[(1,)](x, Tensor(8192, device=-1), o, 5, B=1)  # pinned memory: the driver says that it is accessible
    assert len(gpu.launches) == 2


def test_an_empty_grid_launches_nothing(gpu):
    kernel = jit(add)
    kernel[(0,)](*tensors(), 5, B=1)
    assert gpu.launches == []
    for _ in range(2):
        assert kernel[(3, 0)](*tensors(), 5, B=1) is not None


def test_warmup_compiles_and_does_not_launch(gpu):
    kernel = jit(add)
    compiled = kernel.warmup(*tensors(), 16, B=64, grid=(1,), num_stages=2)
    assert compiled.name == "add" and not gpu.launches and gpu.loads == 0
    assert compiled is kernel[(1,)](*tensors(), 32, B=64, num_stages=2)
    assert len(gpu.compiled) == 1


def test_async_compile_mode(gpu):
    kernel = jit(add)
    with ThreadPoolExecutor(2) as executor, AsyncCompileMode(executor):
        futures = [kernel.warmup(*tensors(), n, B=64, grid=(1,)) for n in (16, 17, 32)]
        assert futures[0] is futures[2]
        assert kernel[(1,)](*tensors(), 17, B=64) is futures[1]
    assert len(gpu.compiled) == 2 and not gpu.launches
    assert kernel[(1,)](*tensors(), 17, B=64) is futures[1].result()
    assert len(gpu.compiled) == 2


def test_run_is_the_launch_that_tools_call(gpu):
    kernel = jit(add)
    assert kernel.run(*tensors(), 16, B=64, grid=(2,), warmup=False) is kernel.run(*tensors(), 16, B=64, grid=(2,), warmup=True)


def test_clusters_multiply_the_grid(gpu):
    kernel = jit(add)
    seen = run_twice(lambda: kernel[(3,)](*tensors(), 16, B=64, num_ctas=2), gpu)
    assert seen["grid"] == (6, 1, 1)
    assert seen["attributes"] == {4: (2, 1, 1), 5: (1, 0, 0)}


def test_launch_attributes(gpu):
    kernel = jit(add)
    seen = run_twice(lambda: kernel[(3,)](*tensors(), 16, B=64, launch_pdl=True, launch_cooperative_grid=True), gpu)
    assert {k: v[0] for k, v in seen["attributes"].items()} == {2: 1, 6: 1}


def test_hooks(gpu):
    kernel = jit(add)
    kernel[(1,)](*tensors(), 16, B=64)
    calls: list[Any] = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: calls.append(("pre", len(args))))
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(lambda metadata: calls.append(("enter", metadata["name"])))
        knobs.runtime.launch_exit_hook.add(lambda metadata: calls.append(("exit", metadata["stream"])))
        kernel[(1,)](*tensors(), 16, B=64)
    knobs.runtime.launch_enter_hook = None
    knobs.runtime.launch_exit_hook = None
    kernel[(1,)](*tensors(), 16, B=64)
    assert calls == [("pre", 5), ("enter", "add"), ("exit", 77), ("pre", 5)]


def test_compile_hooks(gpu):
    kernel, seen = jit(add), []
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **facts: seen.append(facts) or True
        assert kernel[(1,)](*tensors(), 16, B=64) is None
        assert not gpu.compiled
        knobs.runtime.jit_cache_hook = None
        knobs.runtime.jit_post_compile_hook = lambda **facts: seen.append(facts)
        kernel[(1,)](*tensors(), 16, B=64)
    assert seen[0]["key"] == seen[1]["key"]
    assert seen[0]["repr"].endswith(
        "add[num_warps=4, num_ctas=1, num_stages=3, enable_fp_fusion=True, launch_cooperative_grid=False]"
        "(x: *fp32, y: *fp32, o: *fp32, n: i32, B: constexpr)"
    )
    assert seen[0]["fn"].jit_function is kernel and seen[0]["compile"]["constants"] == {(4,): 64}
    again = jit(add)
    again.preload(seen[0]["compile"]["specialization_data"])
    again[(1,)](*tensors(), 16, B=64)
    assert len(gpu.compiled) == 2
    with pytest.raises(ValueError, match="trying to preload for"):
        jit(scalars).preload(seen[0]["compile"]["specialization_data"])


def test_a_captured_constant_that_changes_is_an_error(gpu, monkeypatch):
    kernel = jit(captures)
    for _ in range(2):
        kernel[(1,)](Tensor(), 5)
    monkeypatch.setitem(globals(), "WIDTH", 6)
    with pytest.raises(RuntimeError, match="Global variable WIDTH has changed since we compiled this kernel, from 5 to 6"):
        kernel[(1,)](Tensor(), 5)


def test_several_devices(gpu):
    gpu.devices = 2
    kernel = jit(add)
    for device in (0, 1, 0, 1):
        gpu.device = device
        kernel[(1,)](*[Tensor(4096 * (i + 1), device=device) for i in range(3)], 16, B=64)
    functions = [launch["kernel"].function for launch in gpu.launches]
    assert functions[0] == functions[2] != functions[1] == functions[3]


def test_threads_do_not_share_a_frame(gpu):
    kernel = jit(add)
    kernel[(1,)](*tensors(), 2, B=64)
    gpu.launches.clear()

    def work(base: int) -> None:
        for i in range(200):
            kernel[(base + 1,)](*tensors(), 1000 * base + i + 2, B=64)

    threads = [threading.Thread(target=work, args=(base,)) for base in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(gpu.launches) == 800
    for launch in gpu.launches:
        assert (launch["values"][3] - 2) // 1000 == launch["grid"][0] - 1


def num_warps_parameter(x, num_warps: tl.constexpr = 2):
    pass


def test_a_parameter_named_like_an_option_sets_it_too(gpu):
    kernel = jit(num_warps_parameter)
    kernel[(1,)](Tensor())
    kernel[(1,)](Tensor(), num_warps=8)
    assert [(source.constants[(1,)], options) for source, options in gpu.compiled] == [(2, {}), (8, {"num_warps": 8})]


def varargs(x, *rest, B: tl.constexpr):
    pass


def test_varargs(gpu):
    kernel = jit(varargs)
    for rest in ((3, 4.5), (5,), (3, 4.5), (), (5,)):
        kernel[(1,)](Tensor(), *rest, B=2)
    assert [launch["values"] for launch in gpu.launches] == [[4096, 3, 4.5], [4096, 5], [4096, 3, 4.5], [4096], [4096, 5]]
    assert len(gpu.compiled) == 3
    assert gpu.compiled[0][0].signature == {"x": "*fp32", "rest": ("i32", "fp32"), "B": "constexpr"}


def test_what_cannot_be_a_kernel():
    with pytest.raises(
        CompilationError, match=r"test_runtime_jit.py:\d+:1: in add\n(.*\n)+B marked as constexpr and listed in do_not_specialize"
    ):
        jit(do_not_specialize=["B"])(add)
    with pytest.raises(TypeError, match="not support \\*\\*kwargs"):
        jit(lambda_with_kwargs)
    with pytest.raises(TypeError, match="takes a Python function"):
        jit(5)


def lambda_with_kwargs(x, **kwargs):
    pass
