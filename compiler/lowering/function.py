"""`func.func` to `llvm.func`: kernels with their launch bounds, helper functions, calls and returns.

Before: every function has one block whose control flow is `scf`, and tensors have layouts. After: a new function in the new module; the
old one is untouched. The entry block holds the arguments, constants and thread ids and branches to the body.
"""

from mlir import ir

from tilewright.compiler.analysis import axis_info
from tilewright.compiler.passes.building import collect
from tilewright.compiler.passes.diagnostics import user_error
from tilewright.dialects import tile

from . import cluster
from .context import LoweringContext, ModuleState
from .registry import rule
from .tma import prefetch_tensor_maps

#: Size and alignment of a CUtensorMap.
TENSOR_MAP_BYTES, TENSOR_MAP_ALIGNMENT = 128, 64

_create = ir.Operation.create


def lower_function(state: ModuleState, func: ir.Operation, launch: dict[str, ir.Attribute]) -> None:
    """Lower one function into the module of `state`. `launch` is the attributes that a kernel gets and a helper function does not."""
    types = state.types
    name = ir.StringAttr(func.attributes["sym_name"]).value
    if not len(func.regions[0].blocks):
        raise user_error(func, f"the function {name} is declared and has no body")
    old_type = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
    params = [state.convert(t) for t in old_type.inputs]
    results = [state.convert(t) for t in old_type.results]
    result = types.void if not results else results[0] if len(results) == 1 else types.struct(*results)
    is_kernel = is_public(func)
    if is_kernel:
        check_kernel(func, name, old_type)
    new = state.function(name, types.function(result, *params), "external" if is_kernel else "internal", func.location)
    if is_kernel:
        for key, attr in launch.items():
            new.attributes[key] = attr
        new.attributes["arg_attrs"] = ir.ArrayAttr.get(argument_attributes(state, func, old_type.inputs))
    else:
        new.attributes["no_inline"] = types.unit

    blocks = new.regions[0].blocks
    locations = [func.location] * len(params)
    entry = blocks.append(*params, arg_locs=locations)
    ctx = LoweringContext(state, entry, blocks.append(), func.location)
    ctx.axis_info = axis_info.analyze(func)
    if is_kernel:
        ctx.tensor_maps = [argument for argument, type in zip(entry.arguments, old_type.inputs, strict=True) if tile.is_desc(type)]
        if all(op.operation.name != "tilegpu.warp_specialize" for op in func.regions[0].blocks[0].operations):
            prefetch_tensor_maps(ctx)
    if is_kernel and state.facts.num_ctas > 1:
        cluster.enter(ctx, collect(func, "tile.exchange"))
    terminator = ctx.lower_block(func.regions[0].blocks[0], entry.arguments)
    if is_kernel:
        cluster.leave(ctx)
    ctx.lower_op(terminator)


def is_public(func: ir.Operation) -> bool:
    """Whether the function is a kernel."""
    return "sym_visibility" not in func.attributes or ir.StringAttr(func.attributes["sym_visibility"]).value == "public"


def check_kernel(func: ir.Operation, name: str, type: ir.FunctionType) -> None:
    """Raise CompilationError for a kernel that cannot be launched, as one in a file may be."""
    if type.results:
        raise user_error(func, f"the kernel {name} returns {', '.join(map(str, type.results))}; a public function returns nothing")
    for number, argument in enumerate(type.inputs):
        if isinstance(argument, ir.ShapedType):
            raise user_error(func, f"argument {number} of the kernel {name} is {argument}; kernels take scalars, pointers and descriptors")


def argument_attributes(state: ModuleState, func: ir.Operation, inputs: list[ir.Type]) -> list[ir.Attribute]:
    """`llvm.align` for pointer arguments of known divisibility; tensor maps are passed by value and read in place."""
    old = ir.ArrayAttr(func.attributes["arg_attrs"]) if "arg_attrs" in func.attributes else [{}] * len(inputs)
    new = []
    for type, attrs in zip(inputs, old):
        known = {}
        if tile.is_ptr(type) and "tile.divisibility" in attrs:
            align = ir.IntegerAttr(attrs["tile.divisibility"]).value
            known = {"llvm.align": state.types.int_attr(64, align & -align)}
        elif tile.is_desc(type):
            known = {
                "llvm.byval": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{TENSOR_MAP_BYTES} x i8>")),
                "llvm.align": state.types.int_attr(64, TENSOR_MAP_ALIGNMENT),
                "nvvm.grid_constant": state.types.unit,
            }
        new.append(ir.DictAttr.get(known))
    return new


@rule("func.return")
def return_(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    values = ctx.operands(op)
    if len(values) > 1:
        type = ctx.types.struct(*[v.type for v in values])
        packed = ctx.poison(type)
        for i, value in enumerate(values):
            packed = ctx.emit("llvm.insertvalue", type, (packed, value), ctx.types.position(i))
        values = [packed]
    ctx.emit_void("llvm.return", values)
    return []


@rule("func.call")
def call(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    results = [ctx.type(r.type) for r in op.results]
    operands = ctx.operands(op)
    if len(results) > 1:
        packed = ctx.call(callee, ctx.types.struct(*results), operands)
        return [ctx.emit("llvm.extractvalue", type, (packed,), ctx.types.position(i)) for i, type in enumerate(results)]
    returned = ctx.call(callee, results[0] if results else None, operands)
    return [returned] if results else []
