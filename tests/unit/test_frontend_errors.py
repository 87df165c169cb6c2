"""Mistakes in kernels: each gives one error with the file, the line, carets under the expression, and what to do."""

# ruff: noqa: E701, E731, F401, F821, F841
from __future__ import annotations

import pickle

import pytest
from frontend_build import failure, jit, line_of, module

import tilewright.language as tl
from tilewright.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilewright.language.functions import aggregate

plain_global = 42
TUPLE = tl.constexpr((1, 2, 3))


def check(error, fn, line, under, *texts, kind=CompilationError):
    """`error` is on the line of `fn` that holds `line`, with carets under `under`, and says `texts`."""
    assert isinstance(error, kind)
    rendered = str(error)
    number = line_of(fn, line)
    source = next(s for s in fn.src.splitlines() if line in s)
    column = fn.def_col + source.index(under) + 1
    assert f"{__file__}:{number}:{column}: in " in rendered, rendered
    shown = rendered.splitlines()
    place = shown.index("    " + source.strip())
    assert shown[place + 1] == "    " + " " * (source.strip().index(under)) + "^" * len(under), rendered
    for text in texts:
        assert text in error.error_message, rendered
    assert error.lineno == number


# ---- Python that kernels lack: (body, what the carets are under, part of the message) ----------------------------------------------------


def _kernels():
    @jit
    def k_lambda(out, n):
        f = lambda x: x + n

    @jit
    def k_dict(out, n):
        d = {"a": n}

    @jit
    def k_set(out, n):
        d = {n, 1}

    @jit
    def k_try(out, n):
        try:
            n + 1
        finally:
            pass

    @jit
    def k_raise(out, n):
        raise ValueError

    @jit
    def k_import(out, n):
        import math

    @jit
    def k_global(out, n):
        global plain_global

    @jit
    def k_del(out, n):
        del n

    @jit
    def k_def(out, n):
        def inner(): pass  # fmt: skip

    @jit
    def k_class(out, n):
        class Inner: pass  # fmt: skip

    @jit
    def k_leaves(out, n):
        for i in range(n):
            break

    @jit
    def k_skips(out, n):
        while n > 0:
            continue

    @jit
    def k_for_else(out, n):
        for i in range(n):
            n += 1
        else:
            n += 2

    @jit
    def k_early(out, n):
        for i in range(n):
            if i == 3:
                return

    @jit
    def k_over_tuple(out, n):
        for i in (n, n):
            tl.store(out, i)

    @jit
    def k_chained(out, n):
        a = b = n

    @jit
    def k_attribute_target(out, n):
        n.x = 1

    @jit
    def k_subscript_target(out, n):
        n[0] = 1

    @jit
    def k_starred_target(out, n):
        a, *b = (n, 1, 2)

    @jit
    def k_matmul(out, n):
        tl.store(out, n @ n)

    @jit
    def k_power(out, n):
        tl.store(out, n**2)

    @jit
    def k_keywords(out, n):
        tl.store(out, **n)

    @jit
    def k_yield(out, n):
        yield n

    @jit
    def k_match(out, n):
        match n:
            case 1:
                pass

    @jit
    def k_string_condition(out, n):
        if "yes":
            pass

    @jit
    def k_fstring(out, n):
        tl.static_print(f"n is {n}")

    @jit
    def k_two_generators(out, n):
        t = [a + b for a in (1, 2) for b in (3, 4)]

    @jit
    def k_plain_function(out, n):
        tl.store(out, check(n))

    return {name: fn for name, fn in locals().items() if name.startswith("k_")}


UNSUPPORTED = {
    "k_lambda": ("lambda x: x + n", "lambda x: x + n", "define a @jit function"),
    "k_dict": ('{"a": n}', '{"a": n}', "use a tuple"),
    "k_set": ("{n, 1}", "{n, 1}", "use a tuple"),
    "k_try": ("try:", "try:", "try is not supported"),
    "k_raise": ("raise ValueError", "raise ValueError", "tl.device_assert"),
    "k_import": ("import math", "import math", "module level"),
    "k_global": ("global plain", "global plain_global", "pass the value as an argument"),
    "k_del": ("del n", "del n", "del is not supported"),
    "k_def": ("def inner", "def inner(): pass", "nested function definitions are not allowed inside a @triton.jit kernel"),
    "k_class": ("class Inner", "class Inner: pass", "aggregate"),
    "k_leaves": ("break", "break", "break is not supported"),
    "k_skips": ("continue", "continue", "under an `if`"),
    "k_for_else": ("n += 2", "n += 2", "`else` after `for`"),
    "k_early": ("return", "return", "Cannot have `return` statements inside `while` or `for`"),
    "k_over_tuple": ("for i in (n, n)", "(n, n)", "Only `range`, `tl.range` and `tl.static_range`"),
    "k_chained": ("a = b = n", "b", "chained assignment"),
    "k_attribute_target": ("n.x = 1", "n.x", "Attribute assignment is not supported in triton"),
    "k_subscript_target": ("n[0] = 1", "n[0]", "__setitem__ is not supported in triton"),
    "k_starred_target": ("a, *b", "a, *b", "starred target"),
    "k_matmul": ("n @ n", "n @ n", "tl.dot(a, b)"),
    "k_power": ("n**2", "n**2", "for constants only"),
    "k_keywords": ("**n", "n", "write the keywords out"),
    "k_yield": ("yield n", "yield n", "return a tuple"),
    "k_match": ("match n:", "match n:", "use if/elif/else"),
    "k_string_condition": ('if "yes"', '"yes"', "must be a bool, an int, None or a scalar tensor"),
    "k_fstring": ('f"n is', None, "an f-string takes constants only"),
    "k_two_generators": ("[a + b", "[a + b for a in (1, 2) for b in (3, 4)]", "takes one `for`"),
    "k_plain_function": ("check(n)", "check(n)", "decorate it with @jit"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_python(name):
    fn = _kernels()[name]
    line, under, text = UNSUPPORTED[name]
    error = failure(fn, "*i32 i32")
    if under is None:
        assert text in error.error_message and error.lineno == line_of(fn, line)
    else:
        check(error, fn, line, under, text, kind=UnsupportedLanguageConstruct)


def test_all_kernels_above_are_tested():
    assert UNSUPPORTED.keys() == _kernels().keys()


# ---- names -------------------------------------------------------------------------------------------------------------------------------


@jit
def undefined(out):
    tl.store(out, missing + 1)


@jit
def reads_global(out):
    tl.store(out, plain_global + 1)


@jit
def one_branch(out, n):
    if n > 0:
        y = n
    tl.store(out, y)


@jit
def only_in_loop(out, n):
    for i in range(n):
        last = i
    tl.store(out, last)


@jit
def loop_counter_afterwards(out, n):
    for i in range(n):
        tl.store(out, i)
    tl.store(out, i + 1)


def test_names():
    check(failure(undefined, "*i32"), undefined, "missing + 1", "missing", "missing is not defined")
    error = failure(reads_global, "*i32")
    check(error, reads_global, "plain_global", "plain_global", "plain_global = tl.constexpr(42)", "Cannot access global variable")
    error = failure(one_branch, "*i32 i32")
    check(error, one_branch, "tl.store(out, y)", "y", f"only one branch of the `if` on line {one_branch.def_line + 1}")
    error = failure(only_in_loop, "*i32 i32")
    check(error, only_in_loop, "tl.store(out, last)", "last", "only the loop on line")
    check(failure(loop_counter_afterwards, "*i32 i32"), loop_counter_afterwards, "i + 1)", "i", "only the loop on line")


def test_plain_globals_can_be_allowed(monkeypatch):
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    module(reads_global, "*i32")


# ---- types in branches and loops ---------------------------------------------------------------------------------------------------------


@jit
def branch_types(out, n):
    if n > 0:
        value = 1
    else:
        value = 2.5
    tl.store(out, value)


@jit
def branch_shapes(out, n):
    tl.store(out, tl.zeros((4,), tl.int32) if n > 0 else n)


@jit
def loop_type(out, n):
    total = 0
    for i in range(n):
        total += 1.5
    tl.store(out, total)


@jit
def while_type(out, n):
    total = n
    while total > 0:
        total = total.to(tl.int64) - 1
    tl.store(out, total)


@jit
def loop_none(out, n):
    best = None
    for i in range(n):
        best = i
    tl.store(out, n)


@jit
def return_types(n):
    if n > 0:
        return n, 1
    return n


@jit
def calls_return_types(out, n):
    tl.store(out, return_types(n)[0])


@jit
def block_condition(out, n):
    if tl.arange(0, 4) < n:
        tl.store(out, 1)


@jit
def float_bounds(out, n):
    for i in range(0, n * 0.5):
        tl.store(out, i)


def test_types_that_change():
    check(failure(branch_types, "*i32 i32"), branch_types, "if n > 0", "if n > 0:", "Mismatched type for value", "int32", "fp32")
    error = failure(branch_shapes, "*i32 i32")
    check(error, branch_shapes, "tl.zeros((4,)", "tl.zeros((4,), tl.int32) if n > 0 else n", "the conditional expression", "<4xint32>")
    check(failure(loop_type, "*fp32 i32"), loop_type, "total += 1.5", "total", "Loop-carried variable total", "int32", "fp32", ".to(")
    check(failure(while_type, "*i32 i32"), while_type, "total = total.to", "total", "Loop-carried variable total", "int64")
    check(failure(loop_none, "*i32 i32"), loop_none, "best = i", "best", "Loop-carried variable best")
    assert "the returned value" in failure(calls_return_types, "*i32 i32").error_message
    error = failure(block_condition, "*i32 i32")
    check(error, block_condition, "if tl.arange", "tl.arange(0, 4) < n", "Boolean value of Tensor with more than one value is ambiguous")
    check(failure(float_bounds, "*i32 i32"), float_bounds, "range(0, n", "range(0, n * 0.5)", "integer scalars")


# ---- constants ---------------------------------------------------------------------------------------------------------------------------


@jit
def constant_from_tensor(out, n):
    size: tl.constexpr = n + 1


@jit
def constant_twice(out, n):
    size: tl.constexpr = 4
    size: tl.constexpr = 8


@jit
def constant_changed(out, n):
    size: tl.constexpr = 4
    size += 1


@jit
def needs_constant(x, N: tl.constexpr):
    return x + N


@jit
def passes_tensor(out, n):
    tl.store(out, needs_constant(1, n))


@jit
def not_a_power(out, n):
    tl.store(out + tl.arange(0, 48), n)


@jit
def variable_shape(out, n):
    size = 16
    tl.store(out + tl.arange(0, size), n)


@jit
def tuple_index(out, n):
    tl.store(out, TUPLE[5])


@jit
def runtime_index(out, n):
    t = (n, n + 1)
    tl.store(out, t[n])


@jit
def zero_division(out, B: tl.constexpr):
    tl.store(out, 4 // (B - B))


@jit
def false_assertion(out, B: tl.constexpr):
    tl.static_assert(B > 64, "B must be large")


@jit
def endless(n: tl.constexpr):
    return endless(n + 1)


@jit
def calls_endless(out, n):
    tl.store(out, endless(0))


def test_constants():
    error = failure(constant_from_tensor, "*i32 i32")
    check(error, constant_from_tensor, "size: tl.constexpr = n + 1", "n + 1", "known only at run time")
    error = failure(constant_twice, "*i32 i32")
    assert "size is already defined. constexpr cannot be reassigned." in str(error) and error.lineno == constant_twice.def_line + 2
    check(failure(constant_changed, "*i32 i32"), constant_changed, "size += 1", "size += 1", "constexpr cannot be reassigned")
    error = failure(passes_tensor, "*i32 i32")
    check(error, passes_tensor, "needs_constant(1, n)", "needs_constant(1, n)", "argument N of needs_constant()", "tl.constexpr", "int32")
    check(failure(not_a_power, "*i32 i32"), not_a_power, "tl.arange(0, 48)", "tl.arange(0, 48)", "power of 2")
    check(failure(variable_shape, "*i32 i32"), variable_shape, "tl.arange(0, size)", "tl.arange(0, size)", "constexpr")
    check(failure(tuple_index, "*i32 i32"), tuple_index, "TUPLE[5]", "TUPLE[5]", "out of range")
    check(failure(runtime_index, "*i32 i32"), runtime_index, "t[n]", "t[n]", "indexed by constants only")
    check(failure(zero_division, "*i32", B=4), zero_division, "4 // (B - B)", "4 // (B - B)", "by zero")
    error = failure(false_assertion, "*i32", B=4)
    call = 'tl.static_assert(B > 64, "B must be large")'
    check(error, false_assertion, call, call, "B must be large", kind=CompileTimeAssertionFailure)
    assert "recursion must end on a constexpr condition" in failure(calls_endless, "*i32 i32").error_message


# ---- calls -------------------------------------------------------------------------------------------------------------------------------


@jit
def inner(p, n):
    tl.store(p + tl.arange(0, 4), n, msk=n > 0)


@jit
def middle(p, n):
    inner(p, n)


@jit
def outer(p, n):
    if n > 0:
        middle(p, n + 1)


def test_chain_of_call_sites():
    error = failure(outer, "*i32 i32")
    check(error, inner, "msk=", "tl.store(p + tl.arange(0, 4), n, msk=n > 0)", "msk")
    lines = str(error).splitlines()
    assert [site.function for site in error.call_sites] == ["middle", "outer"]
    first = lines.index(f"called from {__file__}:{line_of(middle, 'inner(p, n)')}:5: in middle")
    assert lines[first + 1 : first + 3] == ["    inner(p, n)", "    ^^^^^^^^^^^"]
    assert f"called from {__file__}:{line_of(outer, 'middle(p')}:9: in outer" in lines


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(failure(outer, "*i32 i32")))
    assert str(error) == str(failure(outer, "*i32 i32")) and error.call_sites[0].function == "middle"


@jit
def missing_argument(out, n):
    tl.store(out, needs_constant(n))


@jit
def too_many(out, n):
    tl.store(out, needs_constant(n, 1, 2))


@jit
def unknown_keyword(out, n):
    tl.store(out, needs_constant(n, M=1))


@jit
def number_call(out, n):
    tl.store(out, n(1))


@jit
def int_of_tensor(out, n):
    tl.store(out, int(n))


@jit
def no_attribute(out, n):
    tl.store(out, tl.lod(out))


@jit
def no_method(out, n):
    tl.store(out, n.size())


def _noinline(fn):
    return jit(fn, noinline=True)


@_noinline
def apart(x):
    return x + 1


@jit
def apart_on_a_block(out, n):
    tl.store(out + tl.arange(0, 4), apart(tl.arange(0, 4)))


@jit
def returns_value(out, n):
    tl.store(out, n)
    return n


@jit
def pointer_sum(out, n):
    tl.store(out + out, n)


@jit
def shapes(out, n):
    tl.store(out + tl.arange(0, 4), tl.arange(0, 4) + tl.arange(0, 8))


@tl.core.must_use_result("it changes nothing in place")
@tl.core.builtin
def moved(x, _semantic=None):
    return x


@jit
def drops_result(out, n):
    moved(scaled(n))


@jit
def scaled(n):
    tl.static_print(n)
    return n * 2


@aggregate
class Point:
    x: tl.tensor


@jit
def changes_field(out, n):
    p = Point(n)
    p.x += 1


def test_calls():
    check(
        failure(missing_argument, "*i32 i32"), missing_argument, "needs_constant(n)", "needs_constant(n)", "missing argument 'N'", "(x, N)"
    )
    check(failure(too_many, "*i32 i32"), too_many, "needs_constant(n, 1, 2)", "needs_constant(n, 1, 2)", "takes 2 arguments but 3")
    check(failure(unknown_keyword, "*i32 i32"), unknown_keyword, "needs_constant(n, M=1)", "needs_constant(n, M=1)", "N")
    check(failure(number_call, "*i32 i32"), number_call, "n(1)", "n(1)", "cannot be called")
    check(failure(int_of_tensor, "*i32 i32"), int_of_tensor, "int(n)", "int(n)", "tl.int32")
    check(failure(no_attribute, "*i32 i32"), no_attribute, "tl.lod(out)", "tl.lod", "no attribute 'lod'")
    check(failure(no_method, "*i32 i32"), no_method, "n.size()", "n.size", "no attribute 'size'")
    error = failure(apart_on_a_block, "*i32 i32")
    check(
        error,
        apart_on_a_block,
        "apart(tl",
        "apart(tl.arange(0, 4))",
        "marked noinline",
        "non-scalar argument x",
        kind=UnsupportedLanguageConstruct,
    )
    check(failure(returns_value, "*i32 i32"), returns_value, "return n", "return n", "a kernel returns nothing")
    check(failure(pointer_sum, "*i32 i32"), pointer_sum, "out + out", "out + out", "pointer")
    check(failure(shapes, "*i32 i32"), shapes, "tl.arange(0, 8)", "tl.arange(0, 4) + tl.arange(0, 8)", "[4]", "[8]")
    check(failure(changes_field, "*i32 i32"), changes_field, "p.x += 1", "p.x", "aggregate_replace", kind=UnsupportedLanguageConstruct)


def test_cause_is_kept_without_the_compilers_frames():
    error = failure(not_a_power, "*i32 i32")
    assert isinstance(error.__cause__, ValueError) and error.__cause__.__traceback__ is None


def test_signature_that_does_not_fit():
    with pytest.raises(ValueError, match="no parameter 'm'; its parameters: out, n"):
        module(shapes, "*i32 i32", m=3)
    with pytest.raises(ValueError, match="lack the parameter 'n'"):
        module(shapes, "*i32")


def test_an_error_leaves_the_context_usable():
    for _ in range(3):
        failure(outer, "*i32 i32")
        failure(branch_types, "*i32 i32")
        failure(loop_type, "*fp32 i32")
    module(apart_scalar, "*i32 i32")


@jit
def apart_scalar(out, n):
    tl.store(out, apart(n))


@jit
def two_parameters(out, n):
    tl.store(out, n)


def test_signatures():
    from tilewright.compiler.frontend import build_module

    with pytest.raises(ValueError, match="two_parameters has no parameter 'z'; its parameters: out, n"):
        build_module(two_parameters, {"out": "*i32", "z": "i32"}, {}, None, None)
    with pytest.raises(ValueError, match="signature and constexprs of two_parameters lack the parameter 'n'"):
        build_module(two_parameters, {"out": "*i32"}, {}, None, None)


def test_the_name_of_a_kernel():
    named = jit(two_parameters.fn, repr=lambda specialization: "no name")
    with pytest.raises(ValueError, match="'no name' cannot name a kernel: letters, digits and _ only"):
        module(named, "*i32 i32")
    with pytest.raises(ValueError, match="None cannot name a kernel"):
        module(jit(two_parameters.fn, repr=lambda specialization: None), "*i32 i32")


def test_an_aggregate_inherits_from_aggregates():
    class Plain:
        pass

    with pytest.raises(TypeError, match="aggregate Derived inherits from Plain, which is no aggregate"):

        @aggregate
        class Derived(Plain):
            x: tl.tensor
