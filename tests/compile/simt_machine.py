"""Executes lowered kernels (the `llvm` dialect) on the CPU, all threads of one CTA in lockstep: checks lowerings without a GPU.

A value is a NumPy array with one row for each thread; a vector value has a second axis, a struct is a list. Branches must be uniform.
Floats of 16 bits and less other than f16 are carried as their bits. Pointers are integers: global buffers lie at multiples of 2**32.
"""

from __future__ import annotations

import re

import numpy as np
from mlir import ir
from simt_matrix import run_matrix_asm

DTYPES = {"i1": bool, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64}
DTYPES |= {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}
BINARY = {
    "llvm.add": np.add,
    "llvm.sub": np.subtract,
    "llvm.mul": np.multiply,
    "llvm.and": np.bitwise_and,
    "llvm.or": np.bitwise_or,
    "llvm.xor": np.bitwise_xor,
    "llvm.shl": np.left_shift,
    "llvm.lshr": np.right_shift,
    "llvm.fadd": np.add,
    "llvm.fmul": np.multiply,
}
COMPARE = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal] + [
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
]
PAGE = 1 << 32


def dtype_of(type_: ir.Type):
    """NumPy dtype of a scalar type or of a vector's elements."""
    if isinstance(type_, ir.VectorType):
        type_ = type_.element_type
    text = str(type_)
    return np.uint64 if text.startswith("!llvm.ptr") else DTYPES[text]


class Machine:
    """One CTA: `threads` threads, shared memory, and global buffers given to `launch`."""

    def __init__(self, module: ir.Module, threads: int, shared_bytes: int = 232 * 1024) -> None:
        self.functions = {}
        for op in module.body.operations:
            if op.operation.name == "llvm.func":
                self.functions[ir.StringAttr(op.attributes["sym_name"]).value] = op.operation
        self.threads = threads
        self.shared = np.zeros(shared_bytes, np.uint8)
        self.buffers: list[np.ndarray] = []

    def launch(self, name: str, *arguments) -> None:
        """Run a kernel; NumPy arrays are passed as pointers and changed in place, integers as i32."""
        values = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                self.buffers.append(argument.reshape(-1).view(np.uint8))
                values.append(np.full(self.threads, PAGE * len(self.buffers), np.uint64))
            else:
                values.append(np.full(self.threads, argument, np.uint32))
        self.call(self.functions[name], values)

    def call(self, func: ir.Operation, arguments: list) -> list:
        """Run a function; returns what it returns."""
        blocks = list(func.regions[0].blocks)
        block, values = blocks[0], {}
        values.update(zip(block.arguments, arguments, strict=True))
        while True:
            for op in block.operations:
                op = op.operation
                operands = [values[v] for v in op.operands]
                if op.name == "llvm.return":
                    return operands
                if op.name in ("llvm.br", "llvm.cond_br"):
                    block, passed = self.branch(op, operands)
                    values.update(zip(block.arguments, passed, strict=True))
                    break
                results = self.execute(op, operands)
                values.update(zip(op.results, results, strict=True))

    def branch(self, op: ir.Operation, operands: list):
        successors = list(op.successors)
        if op.name == "llvm.br":
            return successors[0], operands
        condition = operands[0]
        assert (condition == condition[0]).all(), "branches must be uniform"
        sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        passed = operands[1 : 1 + sizes[1]] if condition[0] else operands[1 + sizes[1] :]
        return successors[0 if condition[0] else 1], passed

    def execute(self, op: ir.Operation, x: list) -> list:
        """Run one op."""
        name = op.name
        if name in BINARY:
            kept = x[0].dtype
            return [BINARY[name](*x).astype(kept)]
        method = getattr(self, "op_" + name.replace("llvm.", "").replace("nvvm.", "").replace(".", "_"), None)
        assert method is not None, f"the test machine lacks {name}"
        with np.errstate(all="ignore"):
            return method(op, x)

    def spread(self, value, type_: ir.Type):
        shape = (self.threads, type_.shape[0]) if isinstance(type_, ir.VectorType) else (self.threads,)
        return np.broadcast_to(np.asarray(value, dtype_of(type_)), shape).copy()

    # Constants and registers of the machine

    def op_mlir_constant(self, op, x):
        type_, attr = op.results[0].type, op.attributes["value"]
        dtype = dtype_of(type_)
        if isinstance(attr, ir.DenseElementsAttr):
            if attr.is_splat:
                value = attr.get_splat_value().value
            else:
                value = [int(v) for v in attr]
        else:
            value = attr.value
        if dtype is np.uint16 and "bf16" in str(type_):
            value = np.float32(value).view(np.uint32) >> 16
        if np.issubdtype(dtype, np.unsignedinteger):
            value = np.asarray(value, np.int64).astype(dtype)
        return [self.spread(value, type_)]

    def op_mlir_poison(self, op, x):
        type_ = op.results[0].type
        if "struct" in str(type_):
            return [[None] * (str(type_).count(",") + 1)]
        return [self.spread(0, type_)]

    op_mlir_zero = op_mlir_poison

    def op_mlir_addressof(self, op, x):
        return [np.zeros(self.threads, np.uint64)]

    def op_read_ptx_sreg_tid_x(self, op, x):
        return [np.arange(self.threads, dtype=np.uint32)]

    def op_barrier0(self, op, x):
        return []

    # Vectors and structs

    def op_extractelement(self, op, x):
        return [x[0][:, int(x[1][0])].copy()]

    def op_insertelement(self, op, x):
        out = x[0].copy()
        out[:, int(x[2][0])] = x[1]
        return [out]

    def op_shufflevector(self, op, x):
        both = np.concatenate(x, axis=1)
        mask = np.array(list(ir.DenseI32ArrayAttr(op.attributes["mask"])))
        return [both[:, np.where(mask < 0, 0, mask)]]

    def op_extractvalue(self, op, x):
        return [x[0][ir.DenseI64ArrayAttr(op.attributes["position"])[0]]]

    def op_insertvalue(self, op, x):
        out = list(x[0])
        out[ir.DenseI64ArrayAttr(op.attributes["position"])[0]] = x[1]
        return [out]

    # Casts and selection

    def op_bitcast(self, op, x):
        type_ = op.results[0].type
        value = np.ascontiguousarray(x[0].reshape(self.threads, -1)).view(dtype_of(type_))
        return [value if isinstance(type_, ir.VectorType) else value[:, 0]]

    def op_zext(self, op, x):
        return [x[0].astype(dtype_of(op.results[0].type))]

    op_trunc = op_ptrtoint = op_inttoptr = op_zext

    def op_sext(self, op, x):
        signed = x[0].view(x[0].dtype.name.replace("uint", "int"))
        target = np.dtype(dtype_of(op.results[0].type))
        return [signed.astype(target.name.replace("uint", "int")).view(target)]

    def op_fpext(self, op, x):
        target = dtype_of(op.results[0].type)
        source = (x[0].astype(np.uint32) << 16).view(np.float32) if "bf16" in str(op.operands[0].type) else x[0]
        return [source.astype(target)]

    def op_intr_fma(self, op, x):
        return [(x[0].astype(np.float64) * x[1] + x[2]).astype(x[0].dtype)]

    def op_icmp(self, op, x):
        return [COMPARE[ir.IntegerAttr(op.attributes["predicate"]).value](*x)]

    def op_select(self, op, x):
        condition = x[0]
        if x[1].ndim == 2 and condition.ndim == 1:
            condition = condition[:, None]
        return [np.where(condition, x[1], x[2])]

    # Memory

    def op_getelementptr(self, op, x):
        size = np.dtype(dtype_of(ir.TypeAttr(op.attributes["elem_type"]).value)).itemsize
        index = list(ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"]))[0]
        if len(x) > 1:
            step = x[1].view(x[1].dtype.name.replace("uint", "int")).astype(np.int64)
        else:
            step = np.int64(index)
        base = x[0] if x[0].ndim == (x[1].ndim if len(x) > 1 else 1) else x[0][:, None]
        return [(base.astype(np.int64) + step * size).astype(np.uint64)]

    def memory(self, address: np.ndarray):
        """(buffer, offsets) of addresses that all lie in one memory."""
        page = int(address[0] // PAGE)
        assert (address // PAGE == page).all()
        return (self.shared if page == 0 else self.buffers[page - 1]), (address % PAGE).astype(np.int64)

    def read(self, address: np.ndarray, count: int) -> np.ndarray:
        """`count` bytes for each thread."""
        buffer, offset = self.memory(address)
        return buffer[offset[:, None] + np.arange(count)]

    def write(self, address: np.ndarray, data: np.ndarray) -> None:
        """Write the bytes of each row of `data`."""
        buffer, offset = self.memory(address)
        raw = np.ascontiguousarray(data.reshape(len(address), -1)).view(np.uint8)
        buffer[offset[:, None] + np.arange(raw.shape[1])] = raw

    def op_load(self, op, x):
        type_ = op.results[0].type
        dtype = np.dtype(dtype_of(type_))
        count = type_.shape[0] if isinstance(type_, ir.VectorType) else 1
        self.check_alignment(op, x[0])
        data = np.ascontiguousarray(self.read(x[0], count * dtype.itemsize)).view(dtype)
        return [data if isinstance(type_, ir.VectorType) else data[:, 0]]

    def op_store(self, op, x):
        self.check_alignment(op, x[1])
        self.write(x[1], x[0])
        return []

    def check_alignment(self, op, address):
        if "alignment" in op.attributes:
            assert (address % ir.IntegerAttr(op.attributes["alignment"]).value == 0).all(), "misaligned access"

    # Calls, intrinsics, assembly

    def op_call(self, op, x):
        return self.call(self.functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value], x)

    def op_call_intrinsic(self, op, x):
        name = ir.StringAttr(op.attributes["intrin"]).value
        lanes = np.arange(self.threads) % 32
        warp = np.arange(self.threads) - lanes
        if ".shfl.sync." in name:
            other = x[2].astype(np.int64)
            source = lanes ^ other if ".bfly." in name else other
            assert (source < 32).all()
            return [x[1][warp + source]]
        count = int(re.search(r"\.x(\d)", name).group(1))
        # Row r of matrix i is at the address that lane 8 i + r gives.
        rows = [np.arange(0, self.threads, 32)[:, None] + 8 * i + np.arange(8) for i in range(count)]
        assert (x[0] % 16 == 0).all()
        if "ldmatrix" in name:
            out = [self.matrix_words(self.read(x[0][r.ravel()], 16).view(np.uint16).reshape(-1, 8, 8), name) for r in rows]
            return [out] if count > 1 else out
        for r, word in zip(rows, x[1:], strict=True):
            halves = np.ascontiguousarray(word).view(np.uint16).reshape(-1, 32, 2)
            matrix = halves.reshape(-1, 8, 8)
            self.write(x[0][r.ravel()], (matrix.transpose(0, 2, 1) if ".trans" in name else matrix).reshape(-1, 8))
        return []

    def matrix_words(self, matrix, name):
        if ".trans" in name:
            matrix = matrix.transpose(0, 2, 1)
        return np.ascontiguousarray(matrix.reshape(-1, 2)).view(np.uint32)[:, 0]

    def op_inline_asm(self, op, x):
        text = ir.StringAttr(op.attributes["asm_string"]).value
        if "mma" in text:
            constraints = ir.StringAttr(op.attributes["constraints"]).value.split(",")
            return run_matrix_asm(self, text, constraints, x)
        if text.startswith(("cp.async.commit_group", "cp.async.wait_group", "fence", "wgmma")):
            return []
        if "shfl.sync.idx" in text:
            return [x[0][np.arange(self.threads) // 32 * 32]]
        match = re.match(r"@\$(\d+) st\.(?:global|shared)\S*\.b(\d+) \[\$(\d+)\], (.*);", text)
        if match:
            active = x[int(match.group(1))]
            width = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[int(match.group(2))]
            words = [x[int(n)] for n in re.findall(r"\$(\d+)", match.group(4))]
            raw = np.stack([w.astype(width) if w.dtype.itemsize > width().itemsize else w.view(width) for w in words], axis=1)
            self.write(x[int(match.group(3))][active], raw[active])
            return []
        match = re.match(r"(?:@\$(\d) )?cp\.async\.c[ag]\.shared\.global \[\$0\], \[\$1\], (\d+)(?:, \$2)?;", text)
        assert match, f"the test machine lacks {text}"
        size = int(match.group(2))
        data = self.read(x[1], size).copy()
        if ", $2;" in text:
            data[np.arange(size)[None, :] >= x[2].astype(np.int64)[:, None]] = 0
        active = x[int(match.group(1))] if match.group(1) else np.ones(self.threads, bool)
        self.write(x[0][active], data[active])
        return []
