"""What random programs need beyond the LLVM ops, intrinsics and assembly that the simulator of tests/compile knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import simt
from mlir import ir

from tilewright.runtime.interpreter import libdevice, special_functions
from tilewright.runtime.interpreter.float_formats import decode, encode


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer division toward zero."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    return np.floor_divide(a - np.fmod(a, safe), safe)


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.fmod(a, np.where(b == 0, b.dtype.type(1), b))


def _to_integer(op: ir.Operation, values: np.ndarray, signed: bool) -> np.ndarray:
    """fptosi and fptoui; what is out of range is 0."""
    target = simt.dtype_of(simt.element_of(op.results[0].type)[1])
    bits = target.itemsize * 8
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    whole = np.trunc(values.astype(np.float64))
    inside = np.where((whole >= low) & (whole < high), whole, 0.0)
    return inside.astype(np.int64 if signed else np.uint64).astype(simt.UNSIGNED[bits]).view(target)


OPS: dict[str, Callable] = {
    "llvm.udiv": simt.on_unsigned(_divide),
    "llvm.urem": simt.on_unsigned(_remainder),
    "llvm.sdiv": lambda op, a, b: _divide(a, b),
    "llvm.srem": lambda op, a, b: _remainder(a, b),
    "llvm.frem": simt.rounded(np.fmod),
    "llvm.fneg": simt.rounded(np.negative),
    "llvm.intr.fabs": simt.rounded(np.abs),
    "llvm.intr.abs": lambda op, a, *_: np.abs(a),
    "llvm.intr.sqrt": simt.rounded(np.sqrt),
    "llvm.intr.floor": simt.rounded(np.floor),
    "llvm.intr.ceil": simt.rounded(np.ceil),
    "llvm.intr.minimum": lambda op, a, b: np.minimum(a, b),
    "llvm.intr.copysign": simt.rounded(np.copysign),
    "llvm.intr.ctpop": lambda op, a: np.bitwise_count(a).astype(a.dtype),
    "llvm.intr.fma": lambda op, a, b, c: simt.cast(op, special_functions.fused_multiply_add(a, b, c)),
    "llvm.uitofp": lambda op, a: simt.cast(op, simt.unsigned(a)),
    "llvm.fptosi": lambda op, a: _to_integer(op, a, True),
    "llvm.fptoui": lambda op, a: _to_integer(op, a, False),
    "llvm.intr.assume": lambda op, *_: None,
    "llvm.freeze": lambda op, a: a,
}

INTRINSICS: dict[str, Callable] = {
    "llvm.nvvm.sqrt.approx.ftz.f": lambda operands: np.sqrt(operands[0]),
    "llvm.nvvm.sqrt.rn.f": lambda operands: np.sqrt(operands[0]),
    "llvm.nvvm.rsqrt.approx.ftz.f": lambda operands: (1 / np.sqrt(operands[0].astype(np.float64))).astype(np.float32),
    "llvm.nvvm.mulhi.ull": lambda operands: libdevice.high_half(*operands, signed=False).view(np.int64),
    "llvm.nvvm.f2bf16.rz": lambda operands: (operands[0].view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32),
    "llvm.nvvm.ff2f16x2.rz": lambda operands: np.stack(np.broadcast_arrays(*(_truncated_half(x) for x in reversed(operands))), axis=1),
}


def _truncated_half(values: np.ndarray) -> np.ndarray:
    nearest = values.astype(np.float16)
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(beyond, np.nextafter(nearest, np.float16(0)), nearest)


_CONVERT = re.compile(r"cvt\.rn\.(satfinite\.)?(e4m3|e5m2|f16)x2\.(f32|f16x2|e4m3x2|e5m2x2) .*;")
_ATOMIC = re.compile(r"(?:@\$(\d+) )?(atom|red)\.\w+\.\w+\.global\.(add|cas|min|max)(?:\.noftz)?(?:\.v\d)?\.([a-z]+\d+)(?:x2)? (.*);")
_HALVES = {"e4m3": "fp8e4nv", "e5m2": "fp8e5"}


class Frame(simt.Frame):
    """A call that knows these ops too."""

    def evaluate(self, op: ir.Operation, name: str, operands: list, active: np.ndarray) -> Any:
        threads = self.simulator.threads
        if name == "llvm.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            if callee.startswith("__nv_") and not self.simulator.functions[callee].regions[0].blocks:
                return _library(op, callee, operands)
        if name == "llvm.call_intrinsic":
            intrinsic = ir.StringAttr(op.attributes["intrin"]).value
            if intrinsic in INTRINSICS:
                return INTRINSICS[intrinsic](operands)
            if "shfl" in intrinsic or "matrix" in intrinsic:
                operands = [np.broadcast_to(x, threads) for x in operands]
        if name == "llvm.inline_asm":
            return self.assembly(op, operands, active)
        if name.startswith("nvvm.read.ptx.sreg.nctaid."):
            return np.full(threads, self.simulator.grid["xyz".index(name[-1])], np.int32)
        if name in OPS:
            return OPS[name](op, *operands)
        return super().evaluate(op, name, operands, active)

    def assembly(self, op: ir.Operation, operands: list, active: np.ndarray) -> Any:
        """Conversions to and from 8 bits, float atomics, cache policies; else what the simulator knows."""
        text = ir.StringAttr(op.attributes["asm_string"]).value
        outputs = ir.StringAttr(op.attributes["constraints"]).value.count("=")
        if text.startswith("createpolicy"):
            return np.zeros(1, np.int64)
        if match := _CONVERT.fullmatch(text):
            return _convert(match, operands)
        if match := _ATOMIC.fullmatch(text):
            if match[3] == "cas" or match[4][0] in "fbu":
                return self.atomic(match, operands, outputs, active)
        if "cache_hint" in text and " st" in text:
            operands = operands[:-1]
            hinted = _WithText(op, re.sub(r", \$\d+;$", ";", text))
            return simt.run_asm(self.simulator, hinted, operands, active)
        return simt.run_asm(self.simulator, op, operands, active)

    def atomic(self, match: re.Match, operands: list, outputs: int, active: np.ndarray) -> Any:
        """Atomic additions of floats, singly, in pairs or as vectors, unsigned extrema, compare-and-swap; thread after thread."""
        threads, memory = self.simulator.threads, self.simulator.memory

        def operand(number: str) -> np.ndarray:
            return np.broadcast_to(operands[int(number) - outputs], threads)

        chosen = active & operand(match[1]) if match[1] else active
        target = re.search(r"\[\$(\d+)\]", match[5])
        address = operand(target[1])
        words = [operand(n) for n in re.findall(r"\$(\d+)", match[5][target.end() :])]
        kind = match[4]
        if match[3] == "cas":
            cells = memory.view(words[0].dtype)
            old = np.zeros(threads, words[0].dtype)
            for thread in np.flatnonzero(chosen):
                place = int(address[thread]) // old.itemsize
                old[thread] = cells[place]
                if cells[place] == words[0][thread]:
                    cells[place] = words[1][thread]
            return old
        stored = [np.ascontiguousarray(w) for w in words]
        size = stored[0].itemsize
        old = [np.zeros(threads, w.dtype) for w in stored]
        for thread in np.flatnonzero(chosen):
            for i, word in enumerate(stored):
                place = int(address[thread]) + i * size
                before = memory[place : place + size].copy()
                old[i][thread] = before.view(word.dtype)[0]
                memory[place : place + size] = _combined(before, word[thread : thread + 1].view(np.uint8), match[3], kind)
        return None if not outputs else old[0] if outputs == 1 else old


def _combined(a: np.ndarray, b: np.ndarray, operation: str, kind: str) -> np.ndarray:
    """The bytes of the sum or extremum of numbers in bytes."""
    if kind == "bf16":
        wide = [decode(x.view(np.uint16), "bf16") for x in (a, b)]
        return encode(wide[0] + wide[1], "bf16").view(np.uint8)
    dtype = np.dtype({"f": "f", "u": "u"}[kind[0]] + str(int(kind[1:]) // 8))
    return {"add": np.add, "max": np.maximum, "min": np.minimum}[operation](a.view(dtype), b.view(dtype)).view(np.uint8)


def _library(op: ir.Operation, symbol: str, operands: list) -> np.ndarray:
    function = libdevice.lookup(symbol)
    if function is None:
        raise KeyError(symbol)
    return np.asarray(function(*operands)).astype(simt.dtype_of(simt.element_of(op.results[0].type)[1]))


def _convert(match: re.Match, operands: list) -> np.ndarray:
    """Two elements in one register to two in another; of two operands the first is the upper half."""
    target, source = match[2], match[3]
    if source == "f32":
        low, high = np.broadcast_arrays(operands[1], operands[0])
    else:
        halves = np.ascontiguousarray(operands[0]).view(np.float16 if source == "f16x2" else np.int8).reshape(-1, 2)
        low, high = (halves[:, i] if source == "f16x2" else decode(halves[:, i].view(np.int8), _HALVES[source[:4]]) for i in (0, 1))
    if target == "f16":
        return np.stack([low.astype(np.float16), high.astype(np.float16)], 1).view(np.int32)[:, 0]
    codes = [encode(x.astype(np.float32), _HALVES[target]).view(np.int8) for x in (low, high)]
    return np.stack(codes, 1).view(np.int16)[:, 0]


class _WithText:
    """An inline assembly op with another text."""

    def __init__(self, op: ir.Operation, text: str):
        self.attributes = {"asm_string": ir.StringAttr.get(text, op.context), "constraints": op.attributes["constraints"]}
        self.results = op.results


class Machine(simt.Simulator):
    """A simulator whose calls know these ops; `grid` is the size of the launch."""

    grid = (1, 1, 1)

    def call(self, func: ir.Operation, arguments: list, active: np.ndarray) -> Any:
        frame = Frame(self, func, active)
        frame.assign(frame.blocks[0].arguments, arguments, active)
        return frame.run()
