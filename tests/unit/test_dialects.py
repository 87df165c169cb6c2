"""The Python side of the dialects: getters, enum attributes, builders, and what they do with wrong arguments."""

import pytest
from mlir import ir

from tilewright.dialects import context, tile, tilegpu

BASES = {"register": ((0, 1), (0, 2)), "lane": ((0, 4), (1, 0)), "warp": ((0, 0),), "block": ()}


@pytest.fixture(autouse=True)
def module():
    with context(), ir.Location.unknown():
        yield ir.Module.create()


def block(module: ir.Module, *types: ir.Type) -> ir.Block:
    """The body of a new function in `module` that takes `types`."""
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create(
            "func.func",
            attributes={"sym_name": ir.StringAttr.get("f"), "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, []))},
            regions=1,
        )
    return function.regions[0].blocks.append(*types)


def test_one_context_per_process():
    assert context() is context()


def test_pointers():
    f32, pointer = ir.F32Type.get(), tile.ptr_type(ir.F32Type.get(), 3)
    assert str(pointer) == "!tile.ptr<f32, 3>" and pointer == ir.Type.parse("!tile.ptr<f32, 3>")
    assert (tile.is_ptr(pointer), tile.pointee(pointer), tile.ptr_space(pointer)) == (True, f32, 3)
    assert tile.element_bits(pointer) == 64 and tile.element_bits(f32) == 32
    assert not tile.is_ptr(f32) and not tile.is_ptr(ir.RankedTensorType.get([4], pointer))
    with pytest.raises(TypeError, match="f32 is not a pointer"):
        tile.pointee(f32)
    with pytest.raises(ValueError, match="a pointer points to an integer, a float or a pointer"):
        tile.ptr_type(ir.RankedTensorType.get([4], f32))


def test_descriptors():
    f16 = ir.F16Type.get()
    layout = tilegpu.shared_attr([(0, 1), (1, 0)])
    assert tile.desc_info(tile.desc_type([128, 64], f16)) == ((128, 64), f16, None)
    assert tile.desc_info(tile.desc_type([2, 2], f16, layout)) == ((2, 2), f16, layout)
    assert tile.is_desc(tile.desc_type([8], f16)) and not tile.is_desc(f16)
    with pytest.raises(ValueError, match="1 to 5 dimensions, not 6"):
        tile.desc_type([1] * 6, f16)


def test_linear_layouts():
    attr = tilegpu.linear_attr(BASES)
    assert tilegpu.linear_bases(attr) == BASES and tilegpu.linear_rank(attr) == 2
    assert ir.Attribute.parse(str(attr)) == attr
    empty = tilegpu.linear_attr({}, rank=3)
    assert tilegpu.linear_rank(empty) == 3 and ir.Attribute.parse(str(empty)) == empty
    with pytest.raises(ValueError, match="unknown input dimension"):
        tilegpu.linear_attr({"thread": [(1,)]})
    with pytest.raises(ValueError, match="one length"):
        tilegpu.linear_attr({"register": [(1,), (1, 0)]})
    with pytest.raises(ValueError, match="negative"):
        tilegpu.linear_attr({"register": [(-1,)]})
    with pytest.raises(ir.MLIRError, match="does not reach every element of 4x8"):
        ir.RankedTensorType.get([4, 8], ir.F32Type.get(), attr)


def test_buffers():
    f16, layout = ir.F16Type.get(), tilegpu.shared_attr([(1,), (2,)], pad=(4, 2))
    assert tilegpu.shared_bases(layout) == {"offset": ((1,), (2,))} and tilegpu.shared_pad(layout) == (4, 2)
    assert tilegpu.shared_pad(tilegpu.shared_attr([(1,)])) is None
    buffer = tilegpu.buffer_type([4], f16, layout, 3)
    assert tilegpu.buffer_info(buffer) == ((4,), f16, layout, 3) and ir.Type.parse(str(buffer)) == buffer
    with pytest.raises(ValueError, match="shared layout does not reach every element of 8"):
        tilegpu.buffer_type([8], f16, layout)
    with pytest.raises(ValueError, match="must be #tilegpu.shared"):
        tilegpu.buffer_type([4], f16, tilegpu.linear_attr({"register": [(1,), (2,)]}))


def test_enums_take_and_give_strings(module):
    body = block(module, tile.ptr_type(ir.F32Type.get()))
    with ir.InsertionPoint(body):
        load = tile.LoadOp(body.arguments[0], cache="cg")
        assert tile.enum_value(load.cache) == "cg" and tile.enum_value(load.evict) is None
        rmw = tile.AtomicRMWOp(body.arguments[0], load.result, "fadd")
        assert [tile.enum_value(a) for a in (rmw.kind, rmw.sem, rmw.scope)] == ["fadd", "acq_rel", "gpu"]
        with pytest.raises(ValueError, match="'xx' is no value of the enum 'cache'"):
            tile.load(body.arguments[0], cache="xx")


def test_builders_infer_types_with_layouts(module):
    layout = tilegpu.linear_attr(BASES)
    f32 = ir.F32Type.get()
    body = block(module, ir.RankedTensorType.get([2, 8], f32, layout))
    with ir.InsertionPoint(body):
        a = body.arguments[0]
        assert tile.expand_dims(a, 0).type.shape == [1, 2, 8]
        turned = tile.trans(a, [1, 0]).type
        assert tilegpu.linear_bases(turned.encoding)["register"] == ((1, 0), (2, 0))
        joined = tile.join(a, a)
        assert tilegpu.linear_bases(joined.type.encoding)["register"] == ((0, 0, 1), (0, 1, 0), (0, 2, 0))
        assert [half.type for half in tile.SplitOp(joined).results] == [a.type, a.type]
        assert tilegpu.linear_bases(tile.cat(a, a, dim=1).type.encoding)["register"] == ((0, 1), (0, 2), (0, 8))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tile.load(x),
        lambda x: tile.expand_dims(x, 0),
        lambda x: tile.trans(x, [0]),
        lambda x: tile.join(x, x),
        lambda x: tile.SplitOp(x),
        lambda x: tile.cat(x, x),
        lambda x: tile.gather(x, x, 0),
        lambda x: tile.descriptor_load(x, []),
        lambda x: tile.descriptor_gather(x, x, x),
        lambda x: tilegpu.slot(x, x),
        lambda x: tile.atomic_rmw(x, x, "add"),
    ],
)
def test_wrong_operands_raise_and_do_not_abort(module, build):
    body = block(module, ir.F32Type.get())
    with ir.InsertionPoint(body), pytest.raises((ir.MLIRError, ValueError)):
        build(body.arguments[0])
        body.owner.verify()
