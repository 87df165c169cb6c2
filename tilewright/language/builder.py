"""The interface between what the language means and how a program is carried out.

`language/semantic/` decides types, promotions and checks, then calls a `Builder`. The front end implements it by creating MLIR
operations of the `tile` dialect, the interpreter by computing with NumPy. One method corresponds to one operation of the dialect,
or to a group of `arith`/`math` operations selected by `kind`.

Conventions that hold for every method:

- A *handle* is whatever the builder returns for a value: opaque to the language. `None` never is a handle.
- Types are objects of `language.dtypes`: a `dtype` or `pointer_type` for a scalar, a `block_type` for a tensor (rank >= 1). Types are
  interned, so they can be keys of a cache and compared with `is`.
- The last positional parameter `ty` is the type of the *result*. Where operands and result share one type (`unary`, `binary`, `select`,
  `fma`, ...) it is thereby the operands' type. `compare` takes the operands' type (its result is int1 of the same shape), `store` and the
  atomics the type of the value.
- Operands already agree in shape and element type: the language has broadcast, splat and cast them.
- Signedness is in the `kind`, not in the handle: int32 and uint32 share their bits.
- int1 never is in memory: the language accesses booleans through int8 pointers.
- Arithmetic (`unary` but for none, `binary`, `compare`, `fma`) never sees an fp8 type: the language computes those in fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .dtypes import block_type, dtype

Handle = Any

# kinds of `unary`; the last two are on fp32 only
UNARY_FLOAT = ("negf", "absf", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil", "sqrt_rn")
UNARY_INT = ("absi",)
# kinds of `binary`: the names of the arith operations, and two of the tile dialect
BINARY_INT = (
    "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "andi", "ori", "xori", "shli", "shrsi", "shrui",
    "minsi", "maxsi", "minui", "maxui", "mulhiui",
)  # fmt: skip
# minnumf/maxnumf return the other operand for a NaN, minimumf/maximumf propagate it; div_rn is IEEE division on fp32
BINARY_FLOAT = ("addf", "subf", "mulf", "divf", "remf", "minnumf", "maxnumf", "minimumf", "maximumf", "div_rn")
# predicates of `compare`: integers, then floats (ordered, but for une: true if either is NaN)
COMPARE_INT = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
COMPARE_FLOAT = ("oeq", "une", "olt", "ole", "ogt", "oge")
# kinds of `cast`
CASTS = ("trunci", "extsi", "extui", "sitofp", "uitofp", "fptosi", "fptoui", "fp_to_fp", "bitcast", "ptr_to_int", "int_to_ptr")

ATOMIC_KINDS = ("add", "fadd", "max", "min", "umax", "umin", "and", "or", "xor", "xchg")
ATOMIC_SEMANTICS = ("relaxed", "acquire", "release", "acq_rel")
ATOMIC_SCOPES = ("cta", "gpu", "sys")
LOAD_CACHE = ("", "ca", "cg", "cs", "cv")
STORE_CACHE = ("", "wb", "cg", "cs", "wt")
EVICTION = ("", "evict_first", "evict_last", "evict_normal")
HINTS = ("tile.divisibility", "tile.contiguity", "tile.constancy")
SPECIALS = ("globaltimer", "smid", "gdc_wait", "gdc_launch", "memrealtime")

# fills a region: called with the handles of its arguments, returns the handles that it yields
Region = Callable[[Sequence[Handle]], Sequence[Handle]]


class Combine(Protocol):
    """The combine function of a reduction or scan over n operands."""

    def __call__(self, args: Sequence[Handle], shape: tuple[int, ...] = ()) -> Sequence[Handle]:
        """Combine `args[:n]` with `args[n:]`; returns n handles.

        The MLIR builder calls it once, inside the region, on scalars (`shape` is empty). A builder that evaluates may call it as often as
        it likes on tensors of `shape`, all elements at once."""


class Builder(Protocol):
    """Operations that the language emits. See the module's docstring for the conventions."""

    # ---- constants and the program's place ------------------------------------------------------------------------------

    def constant(self, value: float, ty: dtype) -> Handle:
        """A constant, splat if `ty` is a block. An int for integers, within the range of `ty` (0 to 2**n - 1 when unsigned, bool for
        int1); a float for floats (rounded to nearest even by the builder)."""

    def program_id(self, axis: int) -> Handle:
        """int32 index of this program along axis 0, 1 or 2."""

    def num_programs(self, axis: int) -> Handle:
        """int32 size of the grid along axis 0, 1 or 2."""

    def arange(self, start: int, end: int, ty: block_type) -> Handle:
        """start, start + 1, ..., end - 1 as int32; end - start is a power of two."""

    # ---- shape ----------------------------------------------------------------------------------------------------------

    def splat(self, a: Handle, ty: block_type) -> Handle:
        """A scalar repeated over the shape of `ty`."""

    def unsplat(self, a: Handle, ty: dtype) -> Handle:
        """The only element of a tensor with one element, as a scalar."""

    def expand_dims(self, a: Handle, axis: int, ty: block_type) -> Handle:
        """Insert a dimension of size 1 at `axis` (0 to rank)."""

    def broadcast(self, a: Handle, ty: block_type) -> Handle:
        """Repeat dimensions of size 1 to the shape of `ty`; same rank."""

    def reshape(self, a: Handle, ty: block_type, allow_reorder: bool = False) -> Handle:
        """Same elements in row-major order, or in any order if `allow_reorder`."""

    def trans(self, a: Handle, order: tuple[int, ...], ty: block_type) -> Handle:
        """Permute dimensions: result dimension i is operand dimension order[i]."""

    def join(self, a: Handle, b: Handle, ty: block_type) -> Handle:
        """Two tensors of one shape along a new last dimension of size 2."""

    def split(self, a: Handle, ty: block_type) -> tuple[Handle, Handle]:
        """Inverse of `join`; `ty` is the type of each half, always a block (the language unsplats rank 0)."""

    def cat(self, a: Handle, b: Handle, dim: int, ty: block_type) -> Handle:
        """Concatenate two tensors of one shape along `dim`."""

    def gather(self, src: Handle, indices: Handle, axis: int, ty: block_type) -> Handle:
        """result[.., i, ..] = src[.., indices[.., i, ..], ..] along `axis`; indices are int32."""

    # ---- arithmetic -----------------------------------------------------------------------------------------------------

    def unary(self, kind: str, a: Handle, ty: dtype) -> Handle:
        """Elementwise `kind` of UNARY_FLOAT or UNARY_INT."""

    def binary(self, kind: str, a: Handle, b: Handle, ty: dtype) -> Handle:
        """Elementwise `kind` of BINARY_FLOAT or BINARY_INT."""

    def compare(self, predicate: str, a: Handle, b: Handle, ty: dtype) -> Handle:
        """Elementwise comparison of operands of type `ty`; the result is int1."""

    def select(self, condition: Handle, a: Handle, b: Handle, ty: dtype) -> Handle:
        """Elementwise a where the int1 `condition` is set, else b. Pointers too."""

    def fma(self, a: Handle, b: Handle, c: Handle, ty: dtype) -> Handle:
        """a * b + c with one rounding."""

    def clampf(self, x: Handle, low: Handle, high: Handle, propagate_nan: bool, ty: dtype) -> Handle:
        """min(max(x, low), high); a NaN x gives NaN if `propagate_nan`, else a bound."""

    def cast(self, kind: str, a: Handle, source: dtype, ty: dtype, rounding: str | None = None) -> Handle:
        """Convert from type `source` to `ty` by `kind` of CASTS. `rounding` ("rtne" or "rtz") only for fp_to_fp to a narrower type; None is
        rtne. fp_to_fp covers every pair of float types, fp8 kinds included, and saturates to finite when the target is an fp8 type.
        fptosi/fptoui truncate. bitcast is between scalars of equal width or between pointers."""

    # ---- memory ---------------------------------------------------------------------------------------------------------

    def addptr(self, ptr: Handle, offset: Handle, offset_ty: dtype, ty: dtype) -> Handle:
        """ptr + offset elements; the offset is a signed int32 or int64 (`offset_ty`), sign-extended to 64 bits."""

    def load(
        self, ptr: Handle, mask: Handle | None, other: Handle | None, ty: dtype, *, cache: str = "", evict: str = "", volatile: bool = False
    ) -> Handle:
        """Elements at `ptr` where the int1 `mask` is set (None: everywhere); elsewhere `other`, undefined if None. `ty` is the type of the
        elements. `cache` of LOAD_CACHE, `evict` of EVICTION."""

    def store(self, ptr: Handle, value: Handle, mask: Handle | None, ty: dtype, *, cache: str = "", evict: str = "") -> None:
        """Write `value` of type `ty` where `mask` is set. `cache` of STORE_CACHE."""

    def atomic_rmw(
        self, kind: str, ptr: Handle, value: Handle, mask: Handle | None, ty: dtype, *, sem: str = "acq_rel", scope: str = "gpu"
    ) -> Handle:
        """Read-modify-write by `kind` of ATOMIC_KINDS; the result is the old value, undefined where masked off. xchg is on integers only
        (the language bitcasts)."""

    def atomic_cas(self, ptr: Handle, compare: Handle, value: Handle, ty: dtype, *, sem: str = "acq_rel", scope: str = "gpu") -> Handle:
        """Compare and swap of 16-, 32- or 64-bit integers; the result is the old value."""

    def atomic_load(self, ptr: Handle, mask: Handle | None, ty: dtype, *, sem: str = "acquire", scope: str = "gpu") -> Handle: ...

    def atomic_store(
        self, ptr: Handle, value: Handle, mask: Handle | None, ty: dtype, *, sem: str = "release", scope: str = "gpu"
    ) -> None: ...

    def atomic_poll(
        self, ptr: Handle, expected: Handle, timeout: Handle | None, ty: dtype, *, sem: str = "acquire", scope: str = "gpu"
    ) -> Handle:
        """Spin until the integer at the scalar `ptr` equals `expected` (type `ty`), or until `timeout` (int64 nanoseconds). int1: equal."""

    # ---- tensor descriptors; `ty` of the accesses is the type of the block that is moved ------------------------------------

    def make_descriptor(self, base: Handle, shape: Sequence[Handle], strides: Sequence[Handle], padding: str, ty: block_type) -> Handle:
        """`base` scalar pointer, `shape` int32 scalars, `strides` int64 scalars in elements, `padding` "zero" or "nan", `ty` the block."""

    def descriptor_load(self, desc: Handle, offsets: Sequence[Handle], ty: block_type, *, cache: str = "", evict: str = "") -> Handle:
        """The block at int32 `offsets`, of the descriptor's block shape; padding outside the array."""

    def descriptor_store(self, desc: Handle, value: Handle, offsets: Sequence[Handle], ty: block_type) -> None: ...

    def descriptor_reduce(self, kind: str, desc: Handle, value: Handle, offsets: Sequence[Handle], ty: block_type) -> None:
        """Atomic `kind` (add, min, max, and, or, xor; signedness and float by `ty`) of a block into memory."""

    def descriptor_gather(self, desc: Handle, x_offsets: Handle, y_offset: Handle, ty: block_type) -> Handle:
        """Rows `x_offsets` (int32 tensor) from column `y_offset`."""

    def descriptor_scatter(self, desc: Handle, value: Handle, x_offsets: Handle, y_offset: Handle, ty: block_type) -> None: ...

    # ---- matrix products --------------------------------------------------------------------------------------------------

    def dot(
        self, a: Handle, b: Handle, acc: Handle, a_ty: block_type, b_ty: block_type, ty: block_type, *, precision: str, max_imprecise: int
    ) -> Handle:
        """a[.., M, K] @ b[.., K, N] + acc; 2-D or 3-D. `precision` (tf32, tf32x3, ieee, bf16x3, bf16x6) matters for fp32 operands only."""

    def dot_scaled(
        self,
        a: Handle,
        a_scale: Handle | None,
        a_format: str,
        b: Handle,
        b_scale: Handle | None,
        b_format: str,
        acc: Handle,
        types: Sequence[block_type | None],
        ty: block_type,
        *,
        fast_math: bool,
        a_k_pack: bool,
        b_k_pack: bool,
    ) -> Handle:
        """Microscaled product. `types` are those of (a, a_scale, b, b_scale)."""

    # ---- regions --------------------------------------------------------------------------------------------------------

    def reduce(
        self,
        sources: Sequence[Handle],
        axis: int,
        combine: Combine,
        types: Sequence[block_type],
        tys: Sequence[dtype],
        *,
        commutative: bool = False,
    ) -> list[Handle]:
        """Reduce n tensors of `types` together along `axis`; results of `tys` lack that dimension: scalars if it was the only one.

        Operands stay in order, unless `combine` is `commutative`, or seen to be."""

    def scan(self, sources: Sequence[Handle], axis: int, reverse: bool, combine: Combine, types: Sequence[block_type]) -> list[Handle]:
        """Inclusive scan of n tensors together along `axis`, from the end if `reverse`; operands and results have `types`."""

    def map_elementwise(self, sources: Sequence[Handle], body: Region, types: Sequence[block_type]) -> list[Handle]:
        """Apply `body`, from n scalars to m, to the elements of n tensors; the element types of the m results are those of the handles
        that it yields."""

    # ---- the rest ---------------------------------------------------------------------------------------------------------

    def histogram(self, a: Handle, mask: Handle | None, source: block_type, ty: block_type) -> Handle:
        """Counts (int32) of the values 0 .. bins - 1."""

    def inline_asm(
        self, asm: str, constraints: str, args: Sequence[Handle], types: Sequence[dtype], tys: Sequence[dtype], *, pure: bool, pack: int
    ) -> list[Handle]:
        """Elementwise target assembly on args of `types`; results of `tys`. `pack` elements go into one call."""

    def extern_call(
        self, symbol: str, lib_name: str, lib_path: str, args: Sequence[Handle], types: Sequence[dtype], ty: dtype, *, pure: bool
    ) -> Handle:
        """Elementwise call of a function of a bitcode library."""

    def print(self, prefix: str, args: Sequence[Handle], types: Sequence[dtype], *, hex: bool, is_signed: Sequence[bool]) -> None: ...

    def assert_(self, condition: Handle, mask: Handle | None, message: str, ty: dtype) -> None:
        """Trap with `message` where the int1 `condition` (of type `ty`) is false and `mask`, if any, is set."""

    def assume(self, condition: Handle) -> None:
        """Scalar int1 that may be taken for true."""

    def barrier(self) -> None: ...

    def hint(self, a: Handle, name: str, values: tuple[int, ...]) -> None:
        """Attach `name` of HINTS to the value, in place: one number per dimension (one for a scalar)."""

    def special(self, name: str, ty: dtype | None) -> Handle | None:
        """A target operation without operands, `name` of SPECIALS; `ty` is None for those without a result."""
