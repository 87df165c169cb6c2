"""Code of the target inside a kernel: assembly and functions of bitcode libraries."""

from __future__ import annotations

from typing import Any

from ..core import builtin, tensor
from ..dtypes import dtype
from .cast import cast, expect_dtype
from .promotion import computation_type
from .session import Semantic
from .values import broadcast_all, to_tensor

# types of the arguments -> (symbol, type of the result)
Table = dict[tuple[dtype, ...], tuple[str, dtype]]


@builtin
def inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack, _semantic=None):
    """Run target assembly on each element, or on groups of `pack` elements (types narrower than 32 bits share registers).

    `constraints` is LLVM's, such as "=r,r"; `dtype` the type of the result, or a tuple of types; `is_pure` lets the compiler merge and drop
    calls. Arguments are broadcast to each other."""
    s = _semantic
    for text, what in ((asm, "asm"), (constraints, "constraints")):
        if not isinstance(text, str):
            raise TypeError(f"inline_asm_elementwise: {what} must be a string, got {text!r}")
    if not isinstance(pack, int) or pack < 1:
        raise ValueError(f"inline_asm_elementwise: pack must be a positive constexpr int, got {pack!r}")
    several = isinstance(dtype, tuple)
    dtypes = [expect_dtype(ty, "dtype") for ty in (dtype if several else (dtype,))]
    if not dtypes:
        raise ValueError("inline_asm_elementwise must return at least one tensor")
    operands = broadcast_all(s, *(to_tensor(s, a) for a in (args if isinstance(args, tuple) else (args,))))
    pattern = operands[0].type if operands else dtypes[0]
    tys = [pattern.with_element_ty(ty) for ty in dtypes]
    handles = s.builder.inline_asm(
        asm, constraints, [x.handle for x in operands], [x.type for x in operands], tys, pure=bool(is_pure), pack=pack
    )
    results = tuple(tensor(h, ty) for h, ty in zip(handles, tys))
    return results if several else results[0]


def _match(dtypes: tuple[dtype, ...], table: Table) -> tuple[dtype, ...]:
    """The row of `table` for arguments of these types: the same types, else all at their common type."""
    if dtypes in table:
        return dtypes
    common = dtypes[0]
    for ty in dtypes[1:]:
        common = computation_type(common, ty)
    promoted = (common,) * len(dtypes)
    if promoted in table:
        return promoted
    rows = [f"({', '.join(map(str, row))})" for row in table]
    raise ValueError(f"input arg type does not match. Expect one of {', '.join(rows)}, got ({', '.join(map(str, dtypes))})")


def call_extern(s: Semantic, lib_name: str, lib_path: str, args: Any, table: Table, is_pure: bool) -> tensor:
    """Call, elementwise, the function that `table` has for the types of `args`."""
    if not table:
        raise ValueError("arg_type_symbol_dict must have at least one row: {types of the arguments: (symbol, type of the result)}")
    arity = len(next(iter(table)))
    if len(args) != arity:
        raise ValueError(f"length of input args does not match. Expect {arity}, got {len(args)}")
    operands = [to_tensor(s, a) for a in args]
    row = _match(tuple(x.dtype for x in operands), table)
    operands = broadcast_all(s, *(cast(s, x, ty) for x, ty in zip(operands, row)))
    symbol, result = table[row]
    ty = operands[0].type.with_element_ty(expect_dtype(result, "result type"))
    handle = s.builder.extern_call(
        symbol, lib_name, lib_path, [x.handle for x in operands], [x.type for x in operands], ty, pure=bool(is_pure)
    )
    return tensor(handle, ty)


@builtin
def dispatch(func, lib_name, lib_path, args, arg_type_symbol_dict, ret_type=None, is_pure=True, _semantic=None):
    """As `extern_elementwise`; `func` and `ret_type` are not needed and only accepted."""
    return call_extern(_semantic, lib_name, lib_path, args, arg_type_symbol_dict, is_pure)


@builtin
def extern_elementwise(lib_name, lib_path, args, arg_type_symbol_dict, is_pure, _semantic=None):
    """Call a function of a bitcode library elementwise.

    `arg_type_symbol_dict` maps the types of the arguments to (symbol, type of the result); arguments are broadcast, and brought to their
    common type if there is no row for theirs. The library is found by
    `lib_path`, or by the launch option `extern_libs={lib_name: path}`."""
    return call_extern(_semantic, lib_name, lib_path, args, arg_type_symbol_dict, is_pure)
