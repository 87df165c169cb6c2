"""KernelFunction: source, parameters, captures and the cache key. No MLIR."""

# ruff: noqa: F722, F821, UP037, S102
from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tilewright.compiler.frontend.function import KernelFunction
from tilewright.compiler.source import ASTSource
from tilewright.language import core

SIZE = core.constexpr(4)
const = core.const
C = core.constexpr


@KernelFunction
def helper(x):
    return x + SIZE


@KernelFunction
# a comment between decorator and def
def kernel(
    a, b: core.constexpr, c: C, d: "tl.uint32", e: "*fp16", f: const, g: "*const fp32" = None, *, h=3
):  # fmt: skip
    """Text that is
    less indented"""
    return helper(a)  # the end


def make(scale):
    @KernelFunction
    def inner(x):
        return helper(x) * scale

    return inner


def test_source_starts_at_def_and_is_dedented():
    inner = make(core.constexpr(2))
    assert inner.src == "def inner(x):\n    return helper(x) * scale\n"
    assert inner.def_col == 4 and inner.raw_src[0].strip() == "@KernelFunction"
    assert kernel.src.startswith("def kernel(\n") and kernel.src.rstrip().endswith("# the end")
    assert kernel.ast() is kernel.ast() and kernel.ast().name == "kernel"


def test_parameters():
    p = {q.name: q for q in kernel.params}
    assert [q.name for q in kernel.params if q.is_constexpr] == ["b", "c"] and kernel.constexprs == [1, 2]
    assert p["d"].annotation_type == "u32" and p["e"].annotation_type == "*fp16" and p["a"].annotation_type == ""
    assert p["f"].is_const and p["g"].is_const and p["g"].default is None and p["g"].has_default
    assert p["h"].is_keyword_only and p["h"].default == 3 and not p["a"].has_default


def test_do_not_specialize_by_name_and_index():
    fn = KernelFunction(helper.fn, do_not_specialize=["x"])
    assert fn.params[0].do_not_specialize
    assert KernelFunction(helper.fn, do_not_specialize_on_alignment=[0]).params[0].do_not_specialize_on_alignment


def test_keyword_dict_is_refused():
    def bad(**options):
        pass

    with pytest.raises(TypeError, match="kwargs"):
        KernelFunction(bad)


def test_function_without_source_is_refused():
    scope = {}
    exec("def made(x):\n    return x", scope)
    with pytest.raises(ValueError, match="defined in a Python file"):
        KernelFunction(scope["made"])


def test_lambda_is_refused():
    with pytest.raises(ValueError, match="@jit functions should be written with `def`"):
        KernelFunction(lambda x: x)


def test_captured_name_without_a_value():
    @KernelFunction
    def early(x):
        return x + later

    with pytest.raises(NameError, match="later is not defined yet: the enclosing function has not assigned it"):
        early.resolve("later")
    later = 3
    assert early.resolve("later") == 3


def test_call_outside_of_a_kernel():
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        helper(1)


def named_kernel(x, y, B: C):
    pass


def test_the_name_is_made_of_types_and_of_constants_by_name():
    shown = KernelFunction(named_kernel, repr=lambda s: f"pkg.add_{s.signature['x'][1:]}_{s.constants['B']}")
    signature = {"x": "*fp16", "y": "i32", "B": "constexpr"}
    assert shown.kernel_name(signature, {(2,): 64}) == "add_fp16_64"
    functions = (shown, KernelFunction(named_kernel), KernelFunction(named_kernel, repr=lambda s: "other"))
    assert len({ASTSource(fn, signature, {"B": b}).hash() for fn in functions for b in (1, 2)}) == 6


def test_lists_of_parameters_are_lists():
    for option in ("do_not_specialize", "do_not_specialize_on_alignment"):
        with pytest.raises(TypeError, match=f"{option} must be a list of names or indices of parameters, not 'n'"):
            KernelFunction(named_kernel, **{option: "n"})


def test_source_is_read_only():
    fn = KernelFunction(helper.fn)
    key = fn.cache_key
    with pytest.raises(AttributeError, match="_unsafe_update_src"):
        fn.src = "def helper(x):\n    return x"
    fn._unsafe_update_src("def helper(x):\n    return x\n")
    assert fn.cache_key != key and fn.ast().body[0].value.id == "x"


def test_key_covers_callees_and_captured_constants():
    assert make(core.constexpr(2)).cache_key != make(core.constexpr(3)).cache_key
    assert {name for name, _ in make(core.constexpr(2)).used_global_vals} == {"scale", "SIZE"}


def test_changed_global_is_noticed(monkeypatch):
    fn = make(core.constexpr(2))
    assert fn.cache_key
    fn.check_globals()
    monkeypatch.setattr(sys.modules[__name__], "SIZE", core.constexpr(8))
    with pytest.raises(RuntimeError, match="Global variable SIZE has changed since we compiled this kernel, from .*4.* to .*8"):
        fn.check_globals()


PROGRAM = """
    import sys
    from tilewright.compiler.frontend.function import KernelFunction
    from tilewright.language import core
    NAMES = core.constexpr(("a", "b"))

    class Thing:
        pass

    @KernelFunction
    def even(n):
        return odd(n - 1) if n > 0 else NAMES

    @KernelFunction
    def odd(n):
        return even(n - 1) if n > 0 else Thing

    print(even.cache_key, odd.cache_key)
"""


def test_key_is_the_same_in_every_process(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    runs = {
        subprocess.run(
            [sys.executable, str(path)],
            env={**__import__("os").environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 1)
    }
    assert len(runs) == 1
    even, odd = runs.pop().split()
    assert even != odd
