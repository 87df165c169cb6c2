"""What the front end makes of Python: operations and their structure."""
# ruff: noqa: F821, F841, B009

from __future__ import annotations

import enum
from typing import NamedTuple

import pytest
from frontend_build import jit, module, text

import tilewright.language as tl
from tilewright.language.functions import aggregate, constexpr_function

WIDTH = tl.constexpr(16)


def ops(fn, signature, name, **constexprs):
    """Number of operations called `name`."""
    return sum(line.count(name) for line in text(fn, signature, **constexprs).splitlines())


# ---- functions and arguments ----------------------------------------------------------------------------------------------------


@jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


def test_kernel_signature_and_argument_facts():
    ir = text(add, "*fp32 *fp32 *fp32 i32", attrs={(0,): [["tt.divisibility", 16]], (3,): [["tt.divisibility", 16]]}, B=64)
    assert "func.func @add(" in ir
    first, second, _, last = ir.split("func.func @add(")[1].split(") {")[0].split(", ")
    assert "!tile.ptr<f32> {tile.divisibility = 16 : i32}" in first and "divisib" not in second
    assert "i32 {tile.divisibility = 16 : i32}" in last


def test_constants_vanish_from_the_arguments():
    assert "%arg3" not in text(add, "*fp32 *fp32 *fp32", n=1, B=64)


def test_every_operation_has_a_file_location():
    ir = module(add, "*fp32 *fp32 *fp32 i32", B=64).operation.get_asm(enable_debug_info=True)
    assert "unknown" not in ir
    assert f'test_frontend_ir.py":{add.def_line + 1}:' in ir


@jit
def scale(x, by: tl.constexpr = 2):
    return x * by


@jit
def call_scale(out, a):
    tl.store(out, scale(a) + scale(a, by=3))


def test_calls_are_visited_in_place_with_call_site_locations():
    ir = module(call_scale, "*i32 i32").operation.get_asm(enable_debug_info=True)
    assert "func.call" not in ir and "callsite(" in ir


def _noinline(fn):
    return jit(fn, noinline=True)


@_noinline
def apart(x, k):
    return x + k, x - k


@jit
def call_apart(out, a):
    s, d = apart(a, 3)
    t, _ = apart(s, 3)
    tl.store(out, d + t)


def test_noinline_makes_one_function_per_specialization():
    ir = text(call_apart, "*i32 i32")
    assert ir.count("func.func private @apart__") == 1 and ir.count("call @apart__") == 2
    assert "no_inline" in ir


@jit
def power(x, n: tl.constexpr):
    if n == 0:
        return 1
    return x * power(x, n - 1)


@jit
def call_power(out, a):
    tl.store(out, power(a, 4))


def test_recursion_on_a_constant():
    assert ops(call_power, "*i32 i32", "arith.muli") == 4


@jit
def total(first, *rest, start=0):
    s = start + first
    for i in tl.static_range(len(rest)):
        s += rest[i]
    return s


@jit
def call_total(out, a, b):
    tl.store(out, total(a, b, *(a, b), start=5))


def test_varargs_keyword_only_and_star_arguments():
    assert ops(call_total, "*i32 i32 i32", "arith.addi") == 4


# ---- branches -----------------------------------------------------------------------------------------------------------------------


@jit
def branches(out, n, MODE: tl.constexpr):
    if MODE == "double":
        n = n * 2
    elif MODE is None:
        undefined_name(n)
    else:
        if n > 3:
            n += 1
            extra = n
        else:
            extra = n - 1
        n = extra
    tl.store(out, n)


def test_constant_conditions_are_pruned():
    ir = text(branches, "*i32 i32", MODE="double")
    assert "scf.if" not in ir and "arith.muli" in ir


def test_runtime_condition_yields_what_both_branches_define():
    ir = text(branches, "*i32 i32", MODE="x")
    assert "-> (i32, i32)" in ir and ir.count("scf.yield") == 2


@jit
def one_sided(p, n):
    if n > 0:
        tl.store(p, n)


def test_if_without_values_has_no_else():
    ir = text(one_sided, "*i32 i32")
    assert "scf.if" in ir and "else" not in ir


@jit
def ternary(out, n):
    tl.store(out, n if n > 0 else 0)
    tl.store(out + 1, 7 if WIDTH == 16 else n)


def test_conditional_expression():
    ir = text(ternary, "*i64 i64")
    assert ir.count("scf.if") == 1 and "-> (i64)" in ir


@jit
def early(out, n):
    if n == 0:
        return
    tl.store(out, n)
    if n == 1:
        tl.store(out + 1, n)
        return
    else:
        if n == 2:
            return
    tl.store(out + 2, n)


def test_early_return_nests_the_rest():
    ir = text(early, "*i32 i32")
    assert ir.count("scf.if") == 3 and ir.count("tile.store") == 3 and ir.count("return") == 1


@jit
def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0


@jit
def call_sign(out, a):
    tl.store(out, sign(a))


def test_returned_values_are_joined():
    ir = text(call_sign, "*i32 i32")
    assert ir.count("scf.if") == 2 and ir.count("-> (i32)") == 2


@jit
def scalar_of_one(out, x):
    v = tl.load(x + tl.arange(0, 1))
    if v > 0:
        tl.store(out, 1)


def test_condition_of_one_element():
    assert "tile.unsplat" in text(scalar_of_one, "*i32 *i32")


# ---- loops --------------------------------------------------------------------------------------------------------------------------


@jit
def loop(out, n):
    acc = 0
    other = 5
    for i in tl.range(0, n, 2, num_stages=3, loop_unroll_factor=4, flatten=True, warp_specialize=True, disable_licm=True):
        acc += i
        temporary = acc
    tl.store(out, acc + other)


def test_loop_carries_only_what_it_assigns():
    ir = text(loop, "*i32 i32")
    assert ir.count("iter_args(%arg3 = %c0_i32) -> (i32)") == 1
    for attribute in (
        "tile.num_stages = 3 : i32",
        "tile.loop_unroll_factor = 4 : i32",
        "tile.flatten",
        "tile.warp_specialize",
        "tile.disable_licm",
    ):
        assert attribute in ir


@jit
def wide(out, n):
    for i in range(n):
        tl.store(out + i, i)


@pytest.mark.parametrize(
    ("ty", "mlir", "unsigned"), [("i32", "i32", False), ("i64", "i64", False), ("u32", "i32", True), ("i8", "i32", False)]
)
def test_type_of_the_counter(ty, mlir, unsigned):
    ir = text(wide, f"*i64 {ty}")
    assert ("unsigned" in ir) is unsigned
    assert ("scf.for %arg2" in ir or "scf.for unsigned %arg2" in ir) and (f": {mlir}" in ir)


@jit
def backwards(out, n):
    for i in range(n, 0, -3):
        tl.store(out + i, i)


def test_negative_step_counts_upwards():
    ir = text(backwards, "*i32 i32")
    assert "= %c0_i32 to %arg1 step %c3_i32" in ir and "arith.subi %arg1, %arg2" in ir


@jit
def unrolled(out):
    for i in tl.static_range(0, 8, 2):
        twice: tl.constexpr = i * 2
        tl.store(out + twice, i)


def test_static_range_unrolls():
    ir = text(unrolled, "*i32")
    assert "scf.for" not in ir and ir.count("tile.store") == 4


@jit
def constant_start(out, step, n, START: tl.constexpr):
    a = START
    for i in range(n):
        START = step
        a += START
    tl.store(out, a)


def test_a_constant_argument_may_become_a_loop_variable():
    assert "iter_args" in text(constant_start, "*i32 i32 i32", START=1)


@jit
def while_loop(out, n):
    steps = 0
    while tl.condition(n > 1, disable_licm=True):
        n = n // 2
        steps += 1
    tl.store(out, steps)


def test_while():
    ir = text(while_loop, "*i32 i32")
    assert "scf.while" in ir and "scf.condition" in ir and "tile.disable_licm" in ir


@jit
def while_walrus(out, n):
    left = n
    while (left := left - 1) > 0:
        tl.store(out + left, left)
    tl.store(out, left)


def test_walrus_in_the_condition():
    assert "scf.condition(%" in text(while_walrus, "*i32 i32")


@jit
def nested(out, n, m):
    s = 0.0
    for i in range(n):
        t = 0.0
        for j in range(m):
            if i > j:
                t += 1.0
        s += t
    tl.store(out, s)


def test_nested_loops_and_branches():
    ir = text(nested, "*fp32 i32 i32")
    assert ir.count("scf.for") == 2 and ir.count("scf.if") == 1


@jit
def pruned_assignment(out, n, B: tl.constexpr, SMALL: tl.constexpr):
    for i in range(n):
        if SMALL:
            B = 8
        tl.store(out + tl.arange(0, B), i)


def test_a_constant_assigned_in_a_pruned_branch_stays_constant():
    assert "iter_args" not in text(pruned_assignment, "*i32 i32", B=32, SMALL=False)


@jit
def find(x, n):
    if n < 0:
        return -1
    v = tl.load(x + n)
    if v == 0:
        return n
    return v


@jit
def early_return_in_a_loop(x, out, n):
    s = 0
    for i in range(n):
        s += find(x, i)
    tl.store(out, s)


def test_early_return_of_a_helper_called_in_a_loop():
    ir = text(early_return_in_a_loop, "*i32 *i32 i32")
    assert ir.count("scf.if") == 2 and ir.count("scf.for") == 1


# ---- expressions ----------------------------------------------------------------------------------------------------------------------


@jit
def logic(out, bias, n, A: tl.constexpr):
    if bias is not None and bias.dtype.element_ty == tl.float32:
        tl.store(bias, 1.0)
    if A == 2 or undefined_name:
        tl.store(out, 1)
    low = n < 0
    odd = n % 2 == 1
    if not (low or odd) and A and 0 < n < 9:
        tl.store(out, 2)


def test_short_circuit_of_constants_and_logic_of_tensors():
    ir = text(logic, "*i32 i32", bias=None, A=2)
    assert ir.count("arith.ori") == 1 and ir.count("scf.if") == 1
    assert "!tile.ptr<f32>" in text(logic, "*i32 *fp32 i32", A=2)


class Mode(enum.Enum):
    FAST = 1
    EXACT = 2


def made_by(factor, fn):
    @jit
    def closure(out, n, MODE: tl.constexpr, CONFIG: tl.constexpr):
        if MODE == Mode.FAST and CONFIG["pad"]:
            tl.store(out, fn(n, factor))
        if n.dtype.is_int() and n.dtype.primitive_bitwidth == 32 and "x".upper() in ("X", "Y"):
            tl.store(out + 1, tl.maximum(n, factor))

    return closure


def test_closures_and_constant_objects():
    fn = made_by(tl.constexpr(3), scale)
    ir = text(fn, "*i32 i32", MODE=Mode.FAST, CONFIG={"pad": True})
    assert ir.count("arith.muli") == 1 and ir.count("tile.store") == 2
    assert text(fn, "*i32 i32", MODE=Mode.EXACT, CONFIG={"pad": True}).count("tile.store") == 1
    assert text(made_by(tl.constexpr(3), tl.minimum), "*i32 i32", MODE=Mode.FAST, CONFIG={"pad": 1}).count("arith.minsi") == 1


class Region:
    """A context manager that emits a barrier at both ends."""

    def __enter__(self):
        tl.debug_barrier()
        return 3

    def __exit__(self, *exc):
        tl.debug_barrier()


@jit
def with_statement(out, n):
    with Region() as three:
        n += three
    tl.store(out, n)


def test_with():
    lines = [line.strip() for line in text(with_statement, "*i32 i32").splitlines()]
    first, last = [i for i, line in enumerate(lines) if line == "tile.barrier"]
    assert any("arith.addi" in line for line in lines[first:last])


class Pair(NamedTuple):
    a: tl.tensor
    b: object


@jit
def swap(p):
    return Pair(p.b, p.a)


@jit
def tuples(ptrs, out, n, SHAPE: tl.constexpr):
    M, N = SHAPE
    p = Pair(a=n, b=n + 1)
    for _ in range(n):
        p = swap(p)
    (a, b), c = (p, 3)
    both = (a, b) + (c,)
    values = [v * 2 for v in both if WIDTH > 3]
    tl.store(out + tl.arange(0, SHAPE[0]), values[0] + values[-1] + len(both) + M - N)
    tl.store(ptrs[0], tl.load(ptrs[1]))


def test_tuples():
    ir = text(tuples, [("*fp32", "*fp16"), "*i32", "i32"], SHAPE=(4, 8))
    assert ir.split(") {")[0].count("!tile.ptr") == 3
    assert "-> (i32, i32)" in ir


@jit
def indexing(out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i[:, None] * B + i[None, :], i[:, None] + i[None, :].T.trans(1, 0).to(tl.int32))


def test_indexing_adds_dimensions():
    assert ops(indexing, "*i32", "tile.expand_dims", B=16) >= 4


@constexpr_function
def log2(n):
    return n.bit_length() - 1


@constexpr_function
def half(n):
    return n // 2


@jit
def host_functions(out, B: tl.constexpr):
    k: tl.constexpr = log2(B)
    name: tl.constexpr = f"width {B:04d} {k}"
    tl.static_assert(name == "width 0016 4", name)
    tl.static_assert(max(k, 3, B) == 16 and min(2, k) == 2 and int(2.5) == 2 and isinstance(out, tl.tensor) and not hasattr(out, "nothing"))
    tl.static_assert(isinstance(B, tl.constexpr) and B.value == 16 and getattr(tl, "float32") == tl.float32)
    tl.store(out, half(tl.program_id(0)))
    tl.store(out + tl.arange(0, 2**k), min(B, tl.program_id(0)) + max(1, tl.program_id(1), 2))


def test_host_functions_and_builtins():
    ir = text(host_functions, "*i32", B=16)
    assert ir.count("arith.minsi") == 1 and ir.count("arith.maxsi") == 2


@jit
def number_like_a_tensor(out, stride):
    tl.store(out, stride.to(tl.int64) * 3)
    tl.store(out + 1, (stride + 1).to(tl.int64))


def test_specialized_argument_has_the_methods_of_a_tensor():
    assert "i64" in text(number_like_a_tensor, "*i64", stride=1)


@aggregate
class Vec:
    x: tl.tensor
    y: tl.tensor
    n: tl.constexpr

    @jit
    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y, self.n)

    @jit
    def norm(self):
        return self.x * self.x + self.y * self.y + self.n


@jit
def aggregates(out, a, b, k):
    v = Vec(a, b, 2)
    for _ in range(k):
        v = v + Vec(b, a, 2)
    if k > 3:
        v = Vec(v.y, v.x, v.n)
    tl.store(out, v.norm())


def test_aggregates_flow_through_loops_and_branches():
    ir = text(aggregates, "*i32 i32 i32 i32")
    assert ir.count("-> (i32, i32)") == 2


@jit
def combine(a, ai, b, bi):
    keep = a > b
    return tl.where(keep, a, b), tl.where(keep, ai, bi)


@jit
def reduction(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v, k = tl.reduce((tl.load(x + i), i), 0, combine)
    tl.store(out, v + k)


def test_combine_function_fills_the_region():
    ir = text(reduction, "*fp32 *fp32", B=32)
    body = ir.split("tile.reduce")[1].split("tile.yield")[0]
    assert body.count("arith.select") == 2 and "arith.cmpf" in body


@jit
def debug(out, n):
    assert n > 0, "n must be positive"
    print("n is", n)
    tl.store(out, n)


def test_assert_needs_debug():
    class Options:
        debug = True

    assert "tile.assert" not in text(debug, "*i32 i32") and "tile.print" in text(debug, "*i32 i32")
    assert "tile.assert" in text(debug, "*i32 i32", options=Options())


@jit
def hints(x, out, n, B: tl.constexpr):
    tl.multiple_of(n, 8)
    i = n + tl.arange(0, B)
    i = tl.max_contiguous(tl.multiple_of(i, 8), 8)
    tl.store(out + i, tl.load(x + i, eviction_policy="evict_first", cache_modifier=".cg"))


def test_hints_sit_on_the_defining_operation():
    ir = text(hints, "*fp32 *fp32 i32", B=32)
    assert "tile.contiguity = array<i32: 8>" in ir and "tile.divisibility = array<i32: 8>" in ir
    assert "%arg2: i32 {tile.divisibility = 8 : i32}" in ir


@jit
def bools(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) & True)


def test_booleans_are_bytes_in_memory():
    ir = text(bools, "*i1 *u1", B=16)
    assert "tensor<16xi8>" in ir


@jit
def constants(out):
    tl.store(out, 0.0)
    tl.store(out + 1, -0.0)
    tl.store(out + 2, float("nan"))
    tl.store(out + 3, 0.0)


def test_constants_are_made_once_and_signs_kept():
    ir = text(constants, "*fp32")
    assert ir.count("arith.constant 0.0") == 1 and ir.count("arith.constant -0.0") == 1 and "0x7FC00000" in ir


@jit
def from_below_zero(out):
    tl.store(out + tl.arange(0, 16), tl.arange(-8, 8))


def test_a_range_from_below_zero_is_one_from_zero_and_a_sum():
    ir = text(from_below_zero, "*i32")
    assert ir.count("tile.range 0 to 16") == 2 and "dense<-8> : tensor<16xi32>" in ir
