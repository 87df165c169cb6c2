"""The matrix instructions of the test machine, written down from the PTX manual's fragment tables."""

from __future__ import annotations

import re

import numpy as np


def decode(bits: np.ndarray, name: str) -> np.ndarray:
    """The float64 values of element bits."""
    if name in ("s8", "u8"):
        return bits.astype(np.uint8).view(np.int8 if name == "s8" else np.uint8).astype(np.float64)
    if name == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    if name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if name == "tf32":
        return (bits.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    exponent, mantissa, bias = (4, 3, 7) if name == "e4m3" else (5, 2, 15)
    bits = bits.astype(np.int64)
    e, m = (bits >> mantissa) & ((1 << exponent) - 1), bits & ((1 << mantissa) - 1)
    value = np.where(e == 0, m * 2.0 ** (1 - bias - mantissa), (1 + m / (1 << mantissa)) * 2.0 ** (e.astype(np.float64) - bias))
    return np.where(bits >> (exponent + mantissa), -value, value)


BITS = {"s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f16": 16, "bf16": 16, "tf32": 32}


def elements(words: list[np.ndarray], name: str) -> np.ndarray:
    """(threads, elements) of 32-bit registers."""
    stacked = np.stack([w.view(np.uint32) for w in words], axis=1)
    width = {8: np.uint8, 16: np.uint16, 32: np.uint32}[BITS[name]]
    return decode(np.ascontiguousarray(stacked).view(width), name)


def warp_fragment(words: list[np.ndarray], name: str, rows: int) -> np.ndarray:
    """(warps, rows, K) of an A fragment (rows 16) or a transposed B fragment (rows 8)."""
    data = elements(words, name)
    packed = 32 // BITS[name]
    threads, count = data.shape
    out = np.zeros((threads // 32, rows, 8 * packed))
    per_word = rows // 8
    for lane in range(32):
        for i in range(count):
            word, part = divmod(i, packed)
            row = lane // 4 + 8 * (word % per_word)
            col = lane % 4 * packed + part + 4 * packed * (word // per_word)
            out[:, row, col] = data[lane::32, i]
    return out


def accumulate(acc: list[np.ndarray], product: np.ndarray, acc_name: str, scale: np.ndarray | None = None) -> list[np.ndarray]:
    """Add (warps, 16, N) products to accumulator registers."""
    half = acc_name == "f16"
    values = np.stack([a.view(np.uint32) for a in acc], axis=1)
    values = values.view(np.float16) if half else values.view(np.int32 if acc_name == "s32" else np.float32)
    out = values.astype(np.float64)
    if scale is not None:
        out = np.where(scale[:, None], out, 0.0)
    for lane in range(32):
        for i in range(values.shape[1]):
            row, col = lane // 4 + 8 * (i // 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i // 4)
            out[lane::32, i] += product[:, row, col]
    kind = np.float16 if half else np.int32 if acc_name == "s32" else np.float32
    raw = np.ascontiguousarray(out.astype(kind)).view(np.uint32)
    return [raw[:, i].view(acc[0].dtype) for i in range(len(acc))]


def run_matrix_asm(machine, text: str, constraints: list[str], x: list, move_matrices) -> list:
    """Run a block of mma.sync or wgmma instructions; returns the struct of outputs. `move_matrices` runs an ldmatrix."""
    outputs = [c for c in constraints if c.startswith("=")]
    count = len(outputs)
    registers = {}
    tied = {}
    for position, constraint in enumerate(c for c in constraints if not c.startswith(("=", "~"))):
        registers[count + position] = x[position]
        if constraint.isdigit():
            tied[int(constraint)] = x[position]
    threads = machine.threads
    dtype = np.float32 if outputs[0] == "=f" else np.float64 if outputs[0] == "=d" else np.uint32
    results = [tied[i].copy() if i in tied else np.zeros(threads, dtype) for i in range(count)]
    if "mma.sync" in text:
        _mma_sync(lambda *load: move_matrices(machine, *load), text, registers, results)
    else:
        _wgmma(machine, text, registers, results)
    return [results] if count > 1 else results


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\$(\d+)", text)]


def _mma_sync(load_matrices, text: str, registers: dict, results: list) -> None:
    loaded: dict[str, np.ndarray] = {}

    def words(listed: str) -> list[np.ndarray]:
        return [registers[int(w[1:])] if w.startswith("$") else loaded[w] for w in listed.split(",")]

    for line in text.splitlines():
        if line.startswith("ldmatrix"):
            suffix, targets, root, offset = re.match(r"ldmatrix\.sync\.aligned\.m8n8(\S+) \{(.*?)\}, \[\$(\d+)\+(\d+)\];", line).groups()
            brought = load_matrices(f"ldmatrix.{suffix}", [registers[int(root)].astype(np.int64) + int(offset)])
            names = targets.split(",")
            loaded.update(zip(names, brought if len(names) > 1 else [brought], strict=True))
        if not line.startswith("mma"):
            continue
        head, d, a, b, _ = re.match(r"(\S+) \{(.*?)\}, \{(.*?)\}, \{(.*?)\}, \{(.*?)\};", line).groups()
        shape, names = re.search(r"\.(m\d+n\d+k\d+)\.row\.col\.(.*)", head).groups()
        acc_name, name_a, name_b, _ = names.split(".")
        d, a, b = _numbers(d), words(a), words(b)
        if shape == "m8n8k4":
            left = a[0].view(np.float64).reshape(-1, 8, 4)
            right = b[0].view(np.float64).reshape(-1, 8, 4)
            product = np.einsum("wmk,wnk->wmn", left, right)
            for i, register in enumerate(d):
                results[register] = results[register] + product.reshape(-1, 32, 2)[:, :, i].ravel()
            continue
        product = np.einsum("wmk,wnk->wmn", warp_fragment(a, name_a, 16), warp_fragment(b, name_b, 8))
        for register, value in zip(d, accumulate([results[i] for i in d], product, acc_name), strict=True):
            results[register] = value


def operand_from_memory(machine, thread: int, desc: int, rows: int, size: int, mn_major: bool) -> np.ndarray:
    """(rows, 32 / size) element bits that a descriptor names in the shared memory of a thread's CTA."""
    start, leading, stride = (desc & 0x3FFF) << 4, (desc >> 16 & 0x3FFF) << 4, (desc >> 32 & 0x3FFF) << 4
    swizzle = {0: 0, 1: 128, 2: 64, 3: 32}[desc >> 62]
    span = swizzle or 16
    row, k = np.meshgrid(np.arange(rows), np.arange(32 // size), indexing="ij")
    if mn_major:
        inner = row * size
        across, groups = (stride, leading) if swizzle == 0 else (leading, stride)
        address = start + inner % span + inner // span * across + k % 8 * span + k // 8 * groups
    else:
        inner = k * size
        address = start + row % 8 * span + row // 8 * stride + inner % span + inner // span * leading
    mask = swizzle // 16 - 1 if swizzle else 0
    address = (address ^ ((address >> 7 & mask) << 4)) + int(machine.rank[thread]) * machine.window
    return machine.shared[address[..., None] + np.arange(size)].view({1: np.uint8, 2: np.uint16, 4: np.uint32}[size])[..., 0]


def _wgmma(machine, text: str, registers: dict, results: list) -> None:
    predicates: dict[str, np.ndarray] = {}
    parts: dict[str, np.ndarray] = {}
    threads = machine.threads

    def value(token: str):
        return registers[int(token[1:])] if token.startswith("$") else np.full(threads, int(token), np.uint64)

    for line in text.splitlines():
        if line.startswith("setp"):
            mode, name, a, b = re.match(r"setp\.(\w+)\.b32 (\w+), (\S+), (\S+);", line).groups()
            predicates[name] = (value(a) == value(b)) if mode == "eq" else (value(a) != value(b))
        elif line.startswith("add.s64"):
            name, a, b = re.match(r"add\.s64 (\w+), (\S+), (\S+);", line).groups()
            parts[name] = value(a) + value(b)
        elif line.startswith("wgmma.mma_async"):
            _wgmma_instruction(machine, line, registers, results, parts, predicates)


def _wgmma_instruction(machine, line: str, registers: dict, results: list, parts: dict, predicates: dict) -> None:
    pattern = r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k\d+\.(\w+)\.(\w+)\.(\w+) \{(.*?)\}, (\{.*?\}|da), db, (\w+)(.*);"
    n, acc_name, name_a, name_b, d, a, predicate, tail = re.match(pattern, line).groups()
    n, d = int(n), _numbers(d)
    flags = [int(f) for f in tail.replace(",", " ").split()]
    half = name_a in ("f16", "bf16")
    mn_b = half and flags[-1] == 1
    mn_a = half and a == "da" and flags[2] == 1
    size = BITS[name_a] // 8
    products = []
    fragments = None if a == "da" else warp_fragment([registers[i] for i in _numbers(a)], name_a, 16)
    for group in range(machine.threads // 128):
        thread = group * 128
        right = decode(operand_from_memory(machine, thread, int(parts["db"][thread]), n, size, mn_b), name_b)
        if a == "da":
            left = decode(operand_from_memory(machine, thread, int(parts["da"][thread]), 64, size, mn_a), name_a).reshape(4, 16, -1)
        else:
            left = fragments[4 * group : 4 * group + 4]
        products.append(np.einsum("wmk,nk->wmn", left, right))
    updated = accumulate(
        [results[i] for i in d],
        np.concatenate(products),
        acc_name,
        predicates[predicate] if predicate == "first" else np.full(machine.threads, predicate == "1"),
    )
    for register, new in zip(d, updated, strict=True):
        results[register] = new
