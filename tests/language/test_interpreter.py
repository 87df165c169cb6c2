"""What only the interpreter does: Python debugging, torch tensors, errors at the user's line, batches of programs."""

import io
import pdb
import sys

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime.interpreter import InterpretedFunction as jit
from tilewright.runtime.interpreter import function as launching


@jit
def add_kernel(x, y, out, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


def line_of(kernel, text):
    return kernel.def_line + next(i for i, line in enumerate(kernel.src.splitlines()) if text in line)


def test_launch_options_are_dropped():
    x, out = np.arange(100.0), np.zeros(100)
    assert add_kernel[(2,)](x, x, out, 100, N=64, num_warps=8, num_stages=3, maxnreg=32) is None
    assert np.array_equal(out, 2 * x)
    assert add_kernel.warmup(x, x, out, 100, N=64, grid=(1,)) is None


def test_hooks_run_before_the_launch():
    @jit
    def kernel(out):
        tl.store(out, 1)

    seen = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), kwargs)))
    kernel[(1,)](np.zeros(1, np.int32), num_warps=4)
    assert seen == [(1, {"num_warps": 4})]


def test_grid_function_sees_the_arguments():
    x, out = np.arange(100.0), np.zeros(100)
    add_kernel[lambda meta: (tilewright.cdiv(meta["n"], meta["N"]),)](x, x, out, 100, N=32)
    assert np.array_equal(out, 2 * x)


def test_autotuning_takes_the_first_configuration_that_runs(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")

    @tilewright.autotune(configs=[tilewright.Config({"N": n}) for n in (3, 32, 64)], key=["n"])
    @tilewright.jit
    def kernel(x, out, n, N: tl.constexpr):
        tl.static_assert(N % 2 == 0)
        i = tl.program_id(0) * N + tl.arange(0, N)
        tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

    x, out = np.arange(100.0), np.zeros(100)
    kernel[lambda meta: (tilewright.cdiv(100, meta["N"]),)](x, out, 100)
    assert np.array_equal(out, x + 1) and kernel.best_config.kwargs == {"N": 32}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "float8_e4m3fn", "float8_e5m2"])
def test_torch_tensors(dtype):
    torch = pytest.importorskip("torch")
    x = (torch.arange(64) % 8).to(getattr(torch, dtype))
    out = torch.zeros_like(x)
    add_kernel[(1,)](x, x, out, 64, 64)
    assert torch.equal(out.float(), 2 * x.float())


def test_torch_views_reach_their_storage():
    torch = pytest.importorskip("torch")
    base = torch.arange(100, dtype=torch.float32)
    out = torch.zeros(10)
    add_kernel[(1,)](base[50:60], base[10:20], out[:8], 10, 16)
    assert out.tolist() == [60.0 + 2 * i for i in range(10)]


def test_numpy_views():
    base = np.arange(200, dtype=np.float32)
    out = np.zeros(16, np.float32)
    add_kernel[(1,)](base[101:117], base[3:][::2], out, 16, 16)  # strides are the kernel's affair
    assert np.array_equal(out, base[101:117] + base[3:19])


def test_read_only_arrays():
    x = np.arange(16.0)
    x.setflags(write=False)
    out = np.zeros(16)
    add_kernel[(1,)](x, x, out, 16, 16)
    assert np.array_equal(out, 2 * x)
    with pytest.raises(tilewright.InterpreterError, match="argument 'out', which is read-only"):
        add_kernel[(1,)](out, out, x, 16, 16)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.arange(16, dtype=">f4"), "argument x of add_kernel: the bytes of >f4 are swapped"),
        (np.zeros(16, np.complex64), "argument x of add_kernel: arrays of dtype complex64 cannot be used in a kernel; accepted are bf16"),
        (np.float32(3), "argument x of add_kernel: failed to specialize argument of type: float32"),
        ([1.0], "argument x of add_kernel: failed to specialize argument of type: list"),
    ],
)
def test_what_is_no_array(array, message):
    out = np.zeros(16, np.float32)
    with pytest.raises(TypeError, match=message):
        add_kernel[(1,)](array, out, out, 16, 16)


@pytest.mark.parametrize("make", [lambda x: x.to("meta"), lambda x: x.to_sparse()])
def test_tensors_without_elements_in_memory(make):
    torch = pytest.importorskip("torch")
    out = torch.zeros(16)
    with pytest.raises(TypeError, match="argument y of add_kernel: a tensor on .* has no elements in memory"):
        add_kernel[(1,)](out, make(out), out, 16, 16)


def test_numbers_of_numpy():
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    add_kernel[(1,)](x, x, out, np.int16(5), 16)
    assert np.count_nonzero(out) == 4
    with pytest.raises(OverflowError, match="argument n of add_kernel: integer argument 18446744073709551616 does not fit in 64 bits"):
        add_kernel[(1,)](x, x, out, 2**64, 16)


@jit
def generator_kernel(x):
    yield tl.load(x)


def test_a_generator_is_no_kernel():
    with pytest.raises(TypeError, match=r"test_interpreter.py:\d+: yield is not supported in a kernel: return a tuple"):
        generator_kernel[(1,)](np.zeros(1))


@jit
def table_kernel(table, out, N: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, N)
    tl.store(out + tl.program_id(0) * N + i, tl.load(p + i))


@pytest.mark.skipif(sys.platform != "linux", reason="foreign memory is checked on Linux only")
def test_pointers_in_memory():
    arrays = [np.arange(8, dtype=np.float32) + 10 * i for i in range(4)]
    table = np.array([a.ctypes.data for a in arrays], np.int64)
    out = np.zeros((4, 8), np.float32)
    table_kernel[(4,)](table, out, 8)
    assert np.array_equal(out, arrays)
    with pytest.raises(tilewright.InterpreterError, match="address 0x10"):
        table_kernel[(1,)](np.array([16], np.int64), out, 8)


@jit
def misaligned_kernel(x, out):
    p = (x.to(tl.int64) + 2).to(tl.pointer_type(tl.float32))
    tl.store(out, tl.load(p))


def test_misaligned_access():
    with pytest.raises(tilewright.InterpreterError, match="misaligned load"):
        misaligned_kernel[(1,)](np.zeros(4, np.float32), np.zeros(1, np.float32))


# ---- errors ---------------------------------------------------------------------------------------------------------------------


@jit
def inner(p, i):
    v = tl.load(p + i)
    return v + 1


@jit
def outer_kernel(x, out):
    pid = tl.program_id(0)
    tl.store(out + pid, inner(x, pid * 3))


def test_error_shows_line_caret_program_and_callers():
    x, out = np.zeros(10, np.float32), np.zeros(8, np.float32)
    with pytest.raises(tilewright.InterpreterError) as caught:
        outer_kernel[(8,)](x, out)
    text = str(caught.value)
    lines = text.splitlines()
    assert f"test_interpreter.py:{line_of(inner, 'tl.load')}:" in lines[0] and "in inner" in lines[0]
    assert lines[1].strip() == "v = tl.load(p + i)"
    if sys.version_info >= (3, 11):
        assert lines[2].strip() == "^" * len("tl.load(p + i)")
    assert "argument 'x' at index 12" in text and "program (4, 0, 0) of grid (8, 1, 1)" in text
    assert f"called from {__file__}:{line_of(outer_kernel, 'inner')}:" in text


def test_other_exceptions_are_placed_too():
    @jit
    def kernel(x):
        tl.store(x, undefined_name)  # noqa: F821

    with pytest.raises(tilewright.InterpreterError, match=r"(?s)test_interpreter.py.*undefined_name.*NameError"):
        kernel[(1,)](np.zeros(1))


def test_bad_argument_is_named():
    with pytest.raises(TypeError, match="argument y of add_kernel"):
        add_kernel[(1,)](np.zeros(4), {"a": 1}, np.zeros(4), 4, 4)
    with pytest.raises(TypeError, match="complex128"):
        add_kernel[(1,)](np.zeros(4, complex), np.zeros(4), np.zeros(4), 4, 4)


@jit
def assert_kernel(x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.device_assert(v >= 0, "negative input")
    assert tl.sum(v) < 100, "too large"


def test_assertions():
    assert_kernel[(1,)](np.ones(8, np.int32), 8)
    with pytest.raises(tilewright.InterpreterError, match=r"assertion failed at \[2\]: negative input"):
        assert_kernel[(1,)](np.array([0, 1, -1, 0], np.int32), 4)
    with pytest.raises(tilewright.InterpreterError, match="too large"):
        assert_kernel[(1,)](np.full(8, 50, np.int32), 8)


def test_inline_assembly_is_refused_by_name():
    @jit
    def kernel(x):
        v = tl.load(x + tl.arange(0, 4))
        tl.store(x + tl.arange(0, 4), tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [v], tl.int32, True, 1))

    with pytest.raises(tilewright.InterpreterError, match=r"inline assembly cannot be interpreted \('mov.b32"):
        kernel[(1,)](np.zeros(4, np.int32))


# ---- printing and debugging -------------------------------------------------------------------------------------------------------


@jit
def print_kernel(x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.device_print("value", v)
    print("block", v, "sum", tl.sum(v))


def test_printing(capsys):
    print_kernel[(2,)](np.array([1, -2], np.int32), 2)
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["pid (0, 0, 0) idx (0) value: 1", "pid (0, 0, 0) idx (1) value: -2"]
    assert out[2] == "block int32[2] [ 1, -2] sum int32 -1"
    assert out[3].startswith("pid (1, 0, 0)")


@jit
def debugged_kernel(x, out):
    v = tl.load(x + tl.arange(0, 4))
    w = v * 2
    tl.store(out + tl.arange(0, 4), w)


def test_pdb_steps_on_the_users_lines():
    output = io.StringIO()
    commands = [f"break {__file__}:{line_of(debugged_kernel, 'w = v * 2')}", "continue", "next", "p int(tl.sum(w))", "p v", "continue"]
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=output, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    previous = sys.gettrace()
    try:
        debugger.runctx("debugged_kernel[(3,)](x, out)", globals(), {"x": x, "out": out})
    finally:
        sys.settrace(previous)
    text = output.getvalue()
    assert f"{line_of(debugged_kernel, 'w = v * 2')})debugged_kernel()" in text
    assert f"{line_of(debugged_kernel, 'tl.store')})debugged_kernel()" in text
    assert "12" in text and "fp32[4] [0., 1., 2., 3.]" in text
    assert np.array_equal(out, 2 * x)


@jit
def waiting_kernel(flag):
    if tl.program_id(0) == 0:
        tl.atomic_poll(flag, 1)
    tl.atomic_store(flag, 1)


def test_waiting_for_a_later_program_is_a_deadlock():
    with pytest.raises(tilewright.InterpreterError, match="atomic_poll waits for ever: memory holds 0, not 1") as caught:
        waiting_kernel[(2,)](np.zeros(1, np.int32))
    assert f"{__file__}:{line_of(waiting_kernel, 'atomic_poll')}:9" in str(caught.value) and "in program (0, 0, 0)" in str(caught.value)


# ---- batches ----------------------------------------------------------------------------------------------------------------------


@jit
def divergent_kernel(x, out, N: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(out + pid, -1)
    total = tl.load(out + pid)
    for i in range(pid % 5):
        total += tl.load(x + i)
    if pid == 17:
        total = total * 100
    tl.store(out + pid, total)


@pytest.mark.parametrize("batch", [1, 2, 16, 64])
def test_batches_give_what_single_programs_give(batch, monkeypatch):
    monkeypatch.setattr(launching, "BATCH", batch)
    x, out = np.arange(8, dtype=np.int32), np.zeros(40, np.int32)
    divergent_kernel[(40,)](x, out, 1)
    want = [(sum(range(p % 5)) - 1) * (100 if p == 17 else 1) for p in range(40)]
    assert out.tolist() == want


@jit
def everything_kernel(x, index, out, N: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    v = tl.load(x + pid * N + i)
    a = tl.sum(tl.sort(v)) + tl.max(tl.cumsum(v))
    b = tl.gather(v, tl.load(index + i), 0)
    c = tl.reshape(tl.join(v, b), (2, N)).trans()
    d = tl.dot(tl.broadcast_to(v[:, None], (N, N)).to(tl.float16), tl.broadcast_to(b[None, :], (N, N)).to(tl.float16))
    h = tl.histogram(v.to(tl.int32), 16)
    e, f = tl.split(c)
    r = a + tl.sum(b * i) + tl.sum(d) + tl.sum(h * i) + tl.sum(tl.where(e > f, e, f)) + pid
    tl.store(out + pid, r)
    tl.atomic_add(out + 64 + pid % 3, 1.0)
    old = tl.atomic_max(out + 70, r)
    tl.store(out + 80 + pid, (old <= r).to(tl.float32))


def test_batches_of_every_kind_of_operation(monkeypatch):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 16, (33, 16)).astype(np.float32)
    index = rng.integers(0, 16, 16).astype(np.int32)
    results = []
    for batch in (1, 16):
        monkeypatch.setattr(launching, "BATCH", batch)
        out = np.zeros(128, np.float32)
        everything_kernel[(33,)](x, index, out, 16)
        results.append(out)
    assert np.array_equal(*results)


@jit
def strips_kernel(x, out):
    i = tl.program_id(0) * 10 + tl.arange(0, 2)
    for k in range(0, 10, 2):
        tl.store(out + i + k, tl.load(x + i + k) * 2)


def test_errors_in_a_batch_leave_memory_as_programs_one_by_one_do():
    x, out = np.arange(100.0), np.zeros(160)
    with pytest.raises(tilewright.InterpreterError, match=r"program \(10, 0, 0\)"):
        strips_kernel[(16,)](x, out)
    assert np.array_equal(out[:100], 2 * x) and not out[100:].any()
