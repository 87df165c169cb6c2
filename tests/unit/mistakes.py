"""Mistakes that users make, one of each kind: what `test_mistakes.py` checks, and what `docs/errors.md` shows.

Each is made as a user would make it, through `compile` or a launch; no GPU is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fake_gpu import FakeDriver, Tensor

import tilewright as triton
import tilewright.language as tl
from tilewright import knobs
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler import ASTSource, max_shared_mem
from tilewright.errors import CompilationError, OutOfResources, PTXASError, ToolchainError, UnsupportedLanguageConstruct, UnsupportedTarget
from tilewright.runtime import driver

H200 = GPUTarget("cuda", 90, 32)


class Mistake(NamedTuple):
    """`make()` raises an `error` whose text contains `says`, and, if `at` is given, points at that source text."""

    title: str
    make: Callable[[], Any]
    error: type[Exception]
    says: str
    at: str = ""


def compiled(kernel: Any, types: str, target: GPUTarget = H200, options: dict[str, Any] | None = None, **constants: Any) -> Callable:
    """A function that compiles `kernel`; `types` are those of its parameters that are not in `constants`."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = dict(zip(names, types.split(), strict=True)) | dict.fromkeys(constants, "constexpr")
    return lambda: triton.compile(ASTSource(kernel, signature, constants), target=target, options=options or {})


@contextmanager
def on_a_gpu() -> Iterator[None]:
    """In here launches go to a GPU that records them."""
    driver.set_active(FakeDriver())
    try:
        yield
    finally:
        driver.reset_active()


def launched(kernel: Any, grid: Any, *arguments: Any, **options: Any) -> Callable:
    """A function that launches `kernel`."""

    def launch() -> Any:
        with on_a_gpu():
            return kernel[grid](*arguments, **options)

    return launch


def without_ptxas() -> Any:
    """Compile where the program ptxas is not what the setting says."""
    with knobs.nvidia.scope(), knobs.compilation.scope():
        knobs.nvidia.ptxas = "/opt/cuda/bin/ptxas"
        knobs.compilation.always_compile = True
        return compiled(fill, "*fp32 i32", BLOCK=64)()


@triton.jit
def fill(x, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, 0.0, mask=offsets < n)


@triton.jit
def misspelled(x):
    tl.store(x, tl.maximun(1, 2))


@triton.jit
def undefined(x):
    tl.store(x, scale * 2)  # noqa: F821


LIMIT = 3


@triton.jit
def plain_global(x):
    tl.store(x, LIMIT)


@triton.jit
def raises(x):
    try:
        tl.store(x, 1)
    except ValueError:
        pass


@triton.jit
def leaves_loop(x, n):
    for i in range(n):
        if i > 3:
            break
        tl.store(x + i, i)


@triton.jit
def block_as_condition(x):
    offsets = tl.arange(0, 16)
    if offsets < 3:
        tl.store(x, 1)


@triton.jit
def scale_row(row: tl.const, factor):
    offsets = tl.arange(0, 16)
    tl.store(row + offsets, tl.load(row + offsets) * factor)


@triton.jit
def stores_to_constant(x):
    scale_row(x, 2.0)


@triton.jit
def changes_type(x, n):
    total = 0
    for _ in range(n):
        total = total + 1.5
    tl.store(x, total)


@triton.jit
def differs_between_branches(x, n):
    if n > 3:
        value = 1
    else:
        value = tl.zeros((16,), tl.float32)
    tl.store(x, value)


@triton.jit
def set_in_one_branch(x, n):
    if n > 3:
        value = 1
    tl.store(x, value)


@triton.jit
def odd_range(x):
    offsets = tl.arange(0, 100)
    tl.store(x + offsets, 0)


@triton.jit
def range_of_the_run(x, n):
    offsets = tl.arange(0, n)
    tl.store(x + offsets, 0)


@triton.jit
def shapes_differ(x):
    a = tl.arange(0, 64)
    b = tl.arange(0, 128)
    tl.store(x + a, a + b)


@triton.jit
def inner_sizes_differ(x):
    a = tl.zeros((16, 32), tl.float16)
    tl.store(x, tl.sum(tl.dot(a, a)))


@triton.jit
def types_of_dot_differ(x):
    a = tl.zeros((16, 16), tl.float16)
    tl.store(x, tl.sum(tl.dot(a, a.to(tl.float32))))


@triton.jit
def too_many_elements(x):
    offsets = tl.arange(0, 4096)[:, None] * 4096 + tl.arange(0, 4096)[None, :]
    tl.store(x + offsets, 0)


@triton.jit
def big_product(x, y, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(x + offsets, tl.dot(tl.load(x + offsets), tl.load(y + offsets)))


@triton.jit
def float_offset(x):
    tl.store(x + 1.5, 0)


@triton.jit
def no_pointer(n):
    tl.load(n)


@triton.jit
def no_such_modifier(x):
    tl.store(x, tl.load(x, cache_modifier=".zz"))


@triton.jit
def in_a_helper(x):
    tl.store(x, 0.5 * block_sum(x, 100))


@triton.jit
def block_sum(x, SIZE: tl.constexpr):
    return tl.sum(tl.load(x + tl.arange(0, SIZE)))


@triton.jit
def asserts(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 128 == 0, "BLOCK must be a multiple of 128")
    tl.store(x, BLOCK)


@triton.jit
def assembles(x, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr):
    offsets = tl.arange(0, 16)
    y = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [tl.load(x + offsets)], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(x + offsets, y)


def assembled(asm: str, constraints: str) -> Callable:
    """A function that compiles a kernel with inline assembly from 32 to 32 bits."""
    return compiled(assembles, "*i32", ASM=asm, CONSTRAINTS=constraints)


GPU_TENSOR = Tensor(4096)
HOST_TENSOR = Tensor(64, device=-1)

IN_THE_KERNEL = [
    Mistake("A name that `tl` does not have", compiled(misspelled, "*fp32"), CompilationError, "has no attribute 'maximun'", "tl.maximun"),
    Mistake("An undefined name", compiled(undefined, "*fp32"), CompilationError, "scale is not defined", "scale"),
    Mistake("A global that is not a constant", compiled(plain_global, "*fp32"), CompilationError, "LIMIT = tl.constexpr(3)", "LIMIT"),
    Mistake("Python that kernels do not have", compiled(raises, "*fp32"), UnsupportedLanguageConstruct, "try is not supported", "try:"),
    Mistake("`break`", compiled(leaves_loop, "*fp32 i32"), UnsupportedLanguageConstruct, "break is not supported", "break"),
    Mistake("A block as a condition", compiled(block_as_condition, "*fp32"), CompilationError, "Use tl.where", "offsets < 3"),
    Mistake(
        "A variable whose type changes in a loop", compiled(changes_type, "*fp32 i32"), CompilationError, "variable total has", "total"
    ),
    Mistake(
        "A variable whose type depends on a branch",
        compiled(differs_between_branches, "*fp32 i32"),
        CompilationError,
        "Mismatched type for value",
        "if n > 3:",
    ),
    Mistake("A variable that one branch sets", compiled(set_in_one_branch, "*fp32 i32"), CompilationError, "only one branch", "value"),
    Mistake("A range that is not a power of two", compiled(odd_range, "*fp32"), CompilationError, "a power of 2", "tl.arange(0, 100)"),
    Mistake(
        "A range that is known at run time only", compiled(range_of_the_run, "*fp32 i32"), CompilationError, "constexpr", "tl.arange(0, n)"
    ),
    Mistake("A store through a `tl.const` pointer", compiled(stores_to_constant, "*fp32"), CompilationError, "tl.const", "tl.store(row"),
    Mistake("Shapes that do not match", compiled(shapes_differ, "*fp32"), CompilationError, "[64] and [128]", "a + b"),
    Mistake(
        "A product of blocks that do not fit", compiled(inner_sizes_differ, "*fp32"), CompilationError, "not compatible", "tl.dot(a, a)"
    ),
    Mistake("A product of different types", compiled(types_of_dot_differ, "*fp32"), CompilationError, "fp16 and fp32", "tl.dot("),
    Mistake("A block that is too large", compiled(too_many_elements, "*fp32"), CompilationError, "(1048576)", "tl.arange"),
    Mistake(
        "Blocks that do not fit into shared memory",
        compiled(big_product, "*fp16 *fp16", SIZE=512),
        OutOfResources,
        f"limit: {max_shared_mem(H200)}",
    ),
    Mistake("A pointer plus a float", compiled(float_offset, "*fp32"), CompilationError, "by integers only", "x + 1.5"),
    Mistake(
        "A load from something that is no pointer", compiled(no_pointer, "i32"), CompilationError, "Unsupported ptr type", "tl.load(n)"
    ),
    Mistake("A value that an argument does not take", compiled(no_such_modifier, "*fp32"), CompilationError, "accepted: ", "tl.load("),
    Mistake("A mistake in a function that the kernel calls", compiled(in_a_helper, "*fp32"), CompilationError, "called from", "tl.arange("),
    Mistake(
        "A constraint of inline assembly", assembled("mov.b32 $0, $1;", "=z,r"), CompilationError, "use b, h, r, l, q, f, d", "tl.inline"
    ),
    Mistake("An operand of inline assembly", assembled("mov.b32 $0, $2;", "=r,r"), CompilationError, "2 operands", "tl.inline"),
    Mistake("Inline assembly with too many operands", assembled("", "=r,r,r"), CompilationError, "there are 1 and 1", "tl.inline"),
    Mistake("Inline assembly of another type", assembled("mov.b32 $0, $1;", "=r,d"), CompilationError, "takes values of 64", "tl.inline"),
    Mistake("Inline assembly that ptxas refuses", assembled("bogus $0, $1;", "=r,r"), PTXASError, "any known instruction: 'bogus'"),
    Mistake("An assertion at compile time", compiled(asserts, "*fp32", BLOCK=64), CompilationError, "multiple of 128", "tl.static_assert"),
]

IN_THE_CALL = [
    Mistake("A missing argument", launched(fill, (1,), GPU_TENSOR, 64), TypeError, "missing 1 required positional argument: 'BLOCK'"),
    Mistake("An unknown option", launched(fill, (1,), GPU_TENSOR, 64, BLOCK=64, num_wraps=4), KeyError, "The options are num_warps"),
    Mistake("A value that an option does not take", launched(fill, (1,), GPU_TENSOR, 64, BLOCK=64, num_warps=3), ValueError, "not 3"),
    Mistake("An argument that is not data", launched(fill, (1,), "x", 64, BLOCK=64), TypeError, "argument x of fill"),
    Mistake("A tensor in host memory", launched(fill, (1,), HOST_TENSOR, 64, BLOCK=64), ValueError, "a Tensor on cpu"),
    Mistake("A grid that is not integers", launched(fill, (64 / 4,), GPU_TENSOR, 64, BLOCK=64), TypeError, "divide with triton.cdiv"),
    Mistake("No grid", lambda: fill(GPU_TENSOR, 64, 64), RuntimeError, "fill[grid](...)"),
]

ON_THIS_MACHINE = [
    Mistake("A target that is too old", compiled(fill, "*fp32 i32", GPUTarget("cuda", 70, 32), BLOCK=64), UnsupportedTarget, "80, 86, 89"),
    Mistake(
        "A target that there is not", compiled(fill, "*fp32 i32", GPUTarget("cuda", 95, 32), BLOCK=64), UnsupportedTarget, "80, 86, 89"
    ),
    Mistake("No ptxas", without_ptxas, ToolchainError, "TRITON_PTXAS_PATH"),
]
