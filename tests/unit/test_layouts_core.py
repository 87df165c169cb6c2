"""The algebra of linear layouts against brute force over random layouts."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import distributed, flat_index, inputs, layouts, shapes

from tilewright.compiler.layouts import LinearLayout, f2

matrices = st.lists(st.integers(0, 63), min_size=0, max_size=8)


@given(matrices, matrices)
def test_f2_product_is_composition(a, b):
    b = [x & ((1 << len(a)) - 1) for x in b]
    ab = f2.matmul(a, b)
    for x in range(1 << len(b)):
        assert f2.apply(ab, x) == f2.apply(a, f2.apply(b, x))


@given(matrices)
def test_f2_kernel_image_and_rank(a):
    span = {f2.apply(a, x) for x in range(1 << len(a))}
    null = {x for x in range(1 << len(a)) if f2.apply(a, x) == 0}
    assert {f2.apply(f2.image(a), x) for x in range(1 << len(f2.image(a)))} == span
    assert {f2.apply(f2.kernel(a), x) for x in range(1 << len(f2.kernel(a)))} == null
    assert 1 << f2.rank(a) == len(span)


@given(matrices, st.integers(0, 63))
def test_f2_solve(a, target):
    found = f2.solve(a, [target])
    expected = [x for x in range(1 << len(a)) if f2.apply(a, x) == target]
    assert (found is None) == (not expected)
    if found is not None:
        # Of all solutions, the one without dependent columns: its highest bits are as low as they can be.
        assert found[0] == min(expected, key=lambda x: x)


@given(matrices)
def test_f2_complement_completes_to_a_basis(a):
    full = [*f2.image(a), *f2.complement(a, 6)]
    assert len(full) == 6 and f2.rank(full) == 6


@given(layouts())
def test_call_is_linear_and_bases_round_trip(layout):
    assert LinearLayout(layout.bases, layout.out_sizes) == layout
    for index in inputs(layout):
        expected = [0] * layout.rank
        for name, value in index.items():
            for bit, base in enumerate(layout.bases[name]):
                if value >> bit & 1:
                    expected = [x ^ y for x, y in zip(expected, base, strict=True)]
        assert layout(**index) == tuple(expected)


@given(st.data())
def test_compose(data):
    inner = data.draw(layouts(shape=data.draw(shapes(5))))
    bits = [s.bit_length() - 1 for s in inner.out_sizes]
    out = data.draw(shapes(5))
    coordinate = st.tuples(*[st.integers(0, s - 1) for s in out])
    outer = LinearLayout({f"d{i}": data.draw(st.lists(coordinate, min_size=b, max_size=b)) for i, b in enumerate(bits)}, out)
    both = outer.compose(inner)
    for index in inputs(inner):
        assert both(**index) == outer(**{f"d{i}": c for i, c in enumerate(inner(**index))})


@given(st.data())
def test_right_inverse(data):
    layout = data.draw(distributed(data.draw(shapes())))
    inverse = layout.right_inverse()
    for coords in product(*[range(s) for s in layout.out_sizes]):
        index = inverse(**{f"dim{i}": c for i, c in enumerate(coords)})
        assert layout(**dict(zip(layout.names, index, strict=True))) == coords


@given(st.data())
def test_left_inverse(data):
    layout = data.draw(distributed(data.draw(shapes()), copies=False))
    if not layout.is_injective:
        with pytest.raises(ValueError):
            layout.left_inverse()
        return
    wider = LinearLayout(layout.bases, tuple(2 * s for s in layout.out_sizes))
    inverse = wider.left_inverse()
    for index in inputs(wider):
        assert inverse(**{f"dim{i}": c for i, c in enumerate(wider(**index))}) == tuple(index.values())


@given(st.data())
def test_invert(data):
    shape = data.draw(shapes(6))
    layout = data.draw(distributed(shape, copies=False))
    if not layout.is_invertible:
        with pytest.raises(ValueError, match="not invertible"):
            layout.invert()
        return
    inverse = layout.invert()
    for index in inputs(layout):
        assert inverse(**{f"dim{i}": c for i, c in enumerate(layout(**index))}) == tuple(index.values())


@given(layouts(in_bits=(2, 2, 1, 0)))
def test_rank_properties(layout):
    reached = {layout(**i) for i in inputs(layout)}
    total = 1
    for s in layout.out_sizes:
        total *= s
    assert layout.is_surjective == (len(reached) == total)
    assert layout.is_injective == (len(reached) == sum(1 for _ in inputs(layout)))
    assert len(reached) == 1 << layout.map_rank == 1 << len(layout.image())


@given(layouts())
def test_free_masks_leave_one_copy_of_each_element(layout):
    masks = layout.free_masks()
    kept = [layout(**i) for i in inputs(layout) if all(not v & masks[n] for n, v in i.items())]
    assert len(kept) == len(set(kept))
    assert set(kept) == {layout(**i) for i in inputs(layout)}


@given(st.data())
def test_product_and_left_division(data):
    tile = data.draw(layouts(shape=data.draw(shapes(4)), in_bits=(2, 1, 1, 0)))
    sizes = tuple(data.draw(st.sampled_from([1, 2, 4])) for _ in tile.out_sizes)
    rest = data.draw(layouts(shape=sizes, in_bits=(1, 2, 0, 1)))
    whole = tile * rest
    assert whole.divide_left(tile) == rest
    for index in inputs(whole):
        low = {n: v & (tile.in_size(n) - 1) for n, v in index.items()}
        high = {n: v >> tile.in_bits(n) for n, v in index.items()}
        expected = tuple(a ^ (b * s) for a, b, s in zip(tile(**low), rest(**high), tile.out_sizes, strict=True))
        assert whole(**index) == expected


@given(layouts(shape=(4, 8), in_bits=(2, 2, 1, 0)), layouts(shape=(2, 2), in_bits=(1, 1, 0, 0)))
def test_left_division_is_exact_or_refused(layout, tile):
    quotient = layout.divide_left(tile)
    if quotient is not None:
        assert tile * quotient == layout


def test_quotient_splits_off_untouched_inputs():
    conversion = LinearLayout({"register": [(2, 0, 0), (1, 0, 0)], "lane": [(0, 2, 0), (0, 1, 0)], "warp": [(0, 0, 1)]}, (4, 4, 2))
    assert conversion.quotient(["warp"]) == LinearLayout({"register": [(2, 0), (1, 0)], "lane": [(0, 2), (0, 1)]}, (4, 4))
    assert conversion.quotient(["lane"]) is None
    touched = LinearLayout({"register": [(1, 1)], "warp": [(0, 1)]}, (2, 2))
    assert touched.quotient(["warp"]) is None


@given(layouts(shape=(4, 4, 2, 1), in_bits=(2, 2, 1, 0)), st.sampled_from(["register", "lane", "warp"]), st.booleans())
def test_quotient_against_enumeration(layout, name, splits):
    if splits:  # a random map hardly ever does
        dim = layout.names.index(name)
        own = {n: [tuple(0 if d == dim else x for d, x in enumerate(b)) for b in bases] for n, bases in layout.bases.items()}
        own[name] = [tuple(1 << i if d == dim else 0 for d in range(4)) for i in range(layout.in_bits(name))]
        layout = LinearLayout(own, layout.out_sizes)
    dim = layout.names.index(name)
    others = [d for d in range(4) if d != dim]
    # The input splits off if it alone decides its output, which is its own value.
    values = [(index, layout(**index)) for index in inputs(layout)]
    apart = all(
        out[dim] == index[name] and out == tuple(map(int.__xor__, layout(**{name: index[name]}), layout(**{**index, name: 0})))
        for index, out in values
    )
    apart &= all(not any(layout(**{name: v})[d] for d in others) for v in range(layout.in_size(name)))
    quotient = layout.quotient([name])
    assert (quotient is not None) == apart
    if quotient is not None:
        for index, out in values:
            assert quotient(**{n: v for n, v in index.items() if n != name}) == tuple(out[d] for d in others)


@given(layouts())
def test_equal_up_to_ignores_named_inputs_and_order(layout):
    swapped = layout.select(reversed(layout.names))
    assert layout.equal_up_to(swapped)
    changed = layout.with_columns(warp=[0] * (layout.in_bits("warp") + 1))
    assert layout.equal_up_to(changed, "warp")
    assert not layout.equal_up_to(changed)


@given(layouts())
@settings(max_examples=30)
def test_kernel_is_what_maps_to_the_origin(layout):
    span = {f2.apply(layout.kernel(), x) for x in range(1 << len(layout.kernel()))}
    origin = (0,) * layout.rank
    assert span == {flat_index(layout, **i) for i in inputs(layout) if layout(**i) == origin}


@pytest.mark.parametrize(
    ("bases", "sizes", "message"),
    [
        ({"register": [(1,)]}, (2, 2), "coordinates for a rank"),
        ({"register": [(2, 0)]}, (2, 2), "outside of a dimension"),
        ({"register": []}, (3,), "power of two"),
    ],
)
def test_bad_layouts_are_refused(bases, sizes, message):
    with pytest.raises(ValueError, match=message):
        LinearLayout(bases, sizes)
