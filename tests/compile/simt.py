"""Runs a lowered kernel in NumPy, all threads of one program in lockstep: numerics of the lowering without a GPU.

It knows the LLVM ops, intrinsics and inline assembly that the tests meet, and raises KeyError or ValueError for any other. A value is
an array with one row per thread, a struct a list; a divergent branch runs its blocks in the order of the function under a mask of
threads. Memory is one array of bytes for global and one for shared memory, addresses count from its start.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from mlir import ir
from simt_matrix import run_matrix_asm
from simt_roles import Turns
from simt_tma import TensorMap, TmaState, run_tma_asm

from tilewright.compiler.passes.program_queue import COUNT_ON
from tilewright.dialects import context

WARP = 32
LOCAL = 64  # bytes of a thread's own memory
WINDOW = 1 << 18  # bytes between the shared memories of two CTAs: what the address in a matrix descriptor counts
PAGE = 1024  # bytes; arrays start on a page and a free page lies between two
UNWRITTEN = 0xFF  # memory that no one wrote is NaN in every format of floats
INTS = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def element_of(type: ir.Type) -> tuple[int, str]:
    """(elements, name of the element type) of a type; 0 elements for a scalar."""
    if isinstance(type, ir.VectorType):
        return type.shape[0], element_of(type.element_type)[1]
    text = str(type)
    return 0, "ptr" if text.startswith("!llvm.ptr") else text


def dtype_of(name: str) -> np.dtype:
    """The NumPy type of an element; bf16 values are float32 rounded to bf16."""
    if name[0] == "i":
        return np.dtype(INTS[int(name[1:])])
    return np.dtype({"ptr": np.int64, "f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}[name])


def width_of(name: str) -> int:
    return 64 if name == "ptr" else int(name.lstrip("ibf"))


def round_bf16(values: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(values), values, rounded).astype(np.float32)


def to_bytes(values: np.ndarray, name: str) -> np.ndarray:
    """The bytes of each row of `values`, lowest element first."""
    rows = values.reshape(len(values), -1)
    if name == "bf16":
        rows = (np.ascontiguousarray(rows, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return np.ascontiguousarray(rows).view(np.uint8).reshape(len(values), -1)


def from_bytes(data: np.ndarray, count: int, name: str) -> np.ndarray:
    """The inverse of `to_bytes`; `count` 0 gives scalars."""
    data = np.ascontiguousarray(data)
    if name == "bf16":
        rows = (data.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        rows = data.view(dtype_of(name))
    return rows if count else rows[:, 0]


class Simulator:
    """One program of a module of LLVM ops, run by `ctas` CTAs of `threads` threads each. All threads run in lockstep; with `part` that many
    do, and the parts take turns by `seed`. Addresses of shared memory are those of the cluster's window."""

    def __init__(
        self, module: ir.Module, threads: int, shared: int = 232 * 1024, part: int | None = None, seed: int = 0, ctas: int = 1
    ) -> None:
        self.module = module  # keeps the operations alive
        self.part = part
        self.turns = None if part is None else Turns(seed)
        self.cta_threads = threads
        self.threads = threads * ctas
        self.rank = np.arange(self.threads, dtype=np.int32) // threads
        self.window = shared if ctas == 1 else WINDOW
        self.shared = np.full(self.window * ctas, UNWRITTEN, np.uint8)
        self.pending = np.full(self.threads, -1)  # the phase of the cluster's barrier that a thread has arrived at and not waited for
        self.cluster_phase = 0
        self.cluster_arrivals = 0
        self.memory = np.zeros(0, np.uint8)
        self.program = (0, 0, 0)
        self.grid = (1, 1, 1)
        self.tma = TmaState()
        self.functions = {}
        for op in module.body.operations:
            if op.operation.name == "llvm.func":
                self.functions[ir.StringAttr(op.attributes["sym_name"]).value] = op.operation

    def launch(
        self,
        name: str,
        *arguments: np.ndarray | int,
        maps: Callable[[list], list[TensorMap]] = lambda values: [],
        grid: Sequence[int] = (),
        counter: Sequence[np.ndarray | int] = (),
    ) -> None:
        """Run a kernel; arrays are passed as pointers and changed in place. `maps` makes the tensor maps that follow out of what is passed
        before; the sizes of the `grid` that was asked for come behind them, and the `counter` of a queue of programs last, if there is
        one."""
        places, top = [], PAGE
        for argument in (*arguments, *counter):
            places.append(top)
            top += (-(-np.asarray(argument).nbytes // PAGE) + 1) * PAGE
        self.stack, self.locals = top, {}
        self.memory = np.full(top + LOCAL * self.threads, UNWRITTEN, np.uint8)
        arrays = [(p, a) for p, a in zip(places, (*arguments, *counter), strict=True) if isinstance(a, np.ndarray)]
        for place, array in arrays:
            self.memory[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        func = self.functions[name]
        types = [element_of(a.type)[1] for a in func.regions[0].blocks[0].arguments]
        values = [p if isinstance(a, np.ndarray) else a for p, a in zip(places, (*arguments, *counter), strict=True)]
        last = values[len(arguments) :]
        values = values[: len(arguments)]
        self.tma = TmaState(maps(values))
        values += [*range(len(self.tma.maps)), *grid, *last]
        rows = [np.full(self.threads, v, dtype_of(t)) for v, t in zip(values, types, strict=True)]
        if self.part is None:
            self.call(func, rows, np.ones(self.threads, bool))
        else:
            masks = [np.arange(self.threads) // self.part == i for i in range(self.threads // self.part)]
            self.turns.run([partial(self._run_part, func, rows, mask) for mask in masks])
        assert (self.pending < 0).all(), "a thread ended without the wait that its arrival at the cluster's barrier asks for"
        under_way = [store for groups in self.tma.stores.values() for group in groups for store in group]
        assert not under_way, "a kernel ended before TMA had read its buffers"
        for place, array in arrays:
            array[...] = self.memory[place : place + array.nbytes].view(array.dtype).reshape(array.shape)

    def _run_part(self, func: ir.Operation, rows: list, mask: np.ndarray) -> None:
        """One part, in a thread of Python of its own."""
        with context():
            self.call(func, rows, mask)

    def meet(self, barrier: int, threads: int, active: np.ndarray, waits: bool = True) -> None:
        """A barrier."""
        if self.turns is not None:
            rank = int(self.rank[active][0])
            assert (self.rank[active] == rank).all(), "a barrier of a CTA met by several"
            self.turns.meet((rank, barrier), threads, int(active.sum()), waits)

    def cluster_arrive(self, active: np.ndarray) -> None:
        """Arrive at the barrier of the cluster."""
        assert (self.pending[active] < 0).all(), "a second arrival at the cluster's barrier without a wait"
        self.pending[active] = self.cluster_phase
        self.cluster_arrivals += int(active.sum())
        if self.cluster_arrivals == self.threads:
            self.cluster_phase, self.cluster_arrivals = self.cluster_phase + 1, 0

    def cluster_wait(self, active: np.ndarray) -> None:
        """Wait for all threads of the cluster to arrive."""
        assert (self.pending[active] >= 0).all(), "a wait at the cluster's barrier without an arrival"
        phase = int(self.pending[active].max())
        if self.turns is not None:
            self.turns.wait_until(lambda: self.cluster_phase > phase)
        assert self.cluster_phase > phase, "a wait that never ends"
        self.pending[active] = -1

    def call(self, func: ir.Operation, arguments: list, active: np.ndarray):
        """Run a function for the `active` threads; returns what it returns."""
        frame = Frame(self, func, active)
        frame.assign(frame.blocks[0].arguments, arguments, active)
        return frame.run()


class Frame:
    """One call: the values of its operations and where each thread is."""

    def __init__(self, simulator: Simulator, func: ir.Operation, active: np.ndarray) -> None:
        self.simulator = simulator
        self.blocks = list(func.regions[0].blocks)
        self.numbers = {block: i for i, block in enumerate(self.blocks)}
        self.values: dict[ir.Value, object] = {}
        self.place = np.where(active, 0, len(self.blocks))  # past the end: done
        self.returned = None
        #: Blocks with a barrier that the threads of a warp meet at: those elsewhere run first.
        self.meetings = [i for i, block in enumerate(self.blocks) if any(_meets(o.operation) for o in block.operations)]

    def run(self):
        while (number := int(self.place.min())) < len(self.blocks):
            if number in self.meetings:
                number = min((int(p) for p in np.unique(self.place) if p < len(self.blocks)), key=lambda p: (p in self.meetings, p))
            active = self.place == number
            for op in self.blocks[number].operations:
                self.step(op.operation, active)
        return self.returned

    def assign(self, targets: Sequence[ir.Value], values: Sequence, active: np.ndarray) -> None:
        for target, value in zip(targets, values, strict=True):
            old = self.values.get(target)
            self.values[target] = value if old is None else merge(active, value, old)

    def go(self, block: ir.Block, values: Sequence, active: np.ndarray) -> None:
        self.assign(block.arguments, values, active)
        self.place = np.where(active, self.numbers[block], self.place)

    def step(self, op: ir.Operation, active: np.ndarray) -> None:
        operands = [self.values[v] for v in op.operands]
        name = op.name
        if name == "llvm.br":
            self.go(op.successors[0], operands, active)
        elif name == "llvm.cond_br":
            condition, *rest = operands
            first = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[1]
            self.go(op.successors[0], rest[:first], active & condition)
            self.go(op.successors[1], rest[first:], active & ~condition)
        elif name == "llvm.return":
            if operands:
                self.returned = operands[0] if self.returned is None else merge(active, operands[0], self.returned)
            self.place = np.where(active, len(self.blocks), self.place)
        else:
            with np.errstate(all="ignore"):
                result = self.evaluate(op, name, operands, active)
            if len(op.results):
                self.assign(op.results, [result], active)

    def evaluate(self, op: ir.Operation, name: str, operands: list, active: np.ndarray):
        simulator = self.simulator
        if name == "llvm.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            return simulator.call(simulator.functions[callee], operands, active)
        if name == "llvm.call_intrinsic":
            intrinsic = ir.StringAttr(op.attributes["intrin"]).value
            if intrinsic == "llvm.nvvm.barrier.cta.sync.aligned.count":
                barrier, threads = (int(np.broadcast_to(x, simulator.threads)[active][0]) for x in operands)
                return simulator.meet(barrier, threads, active)
            if intrinsic == "llvm.nvvm.bar.warp.sync":
                return None  # the threads of a warp run in lockstep
            if "matrix" in intrinsic:
                return move_matrices(simulator, intrinsic, operands, active)
            if intrinsic == "llvm.nvvm.mapa.shared.cluster":
                return operands[0] % simulator.window + operands[1].astype(np.int64) * simulator.window
            return INTRINSICS[intrinsic](operands)
        if name == "llvm.inline_asm":
            return run_asm(simulator, op, operands, active)
        if name in ("llvm.load", "llvm.store") and "alignment" in op.attributes:
            address = operands[-1][active] if len(operands[-1]) > 1 else operands[-1]
            assert (address % ir.IntegerAttr(op.attributes["alignment"]).value == 0).all(), "misaligned access"
        if name == "llvm.load":
            count, element = element_of(op.results[0].type)
            return load(memory_of(simulator, op.operands[0]), operands[0], count, element, active)
        if name == "llvm.store":
            store(memory_of(simulator, op.operands[1]), operands[1], operands[0], element_of(op.operands[0].type)[1], active)
            return None
        if name == "nvvm.barrier0":
            return simulator.meet(0, simulator.cta_threads, active)
        if name == "llvm.mlir.addressof" and str(op.results[0].type) == "!llvm.ptr<3>":
            return simulator.rank.astype(np.int64) * simulator.window
        if name == "llvm.alloca":
            place = simulator.locals.setdefault(op.results[0], 8 * len(simulator.locals))
            return simulator.stack + place + LOCAL * np.arange(simulator.threads, dtype=np.int64)
        if name.startswith("nvvm."):
            return special_register(simulator, name)
        return OPS[name](op, *operands)


def _meets(op: ir.Operation) -> bool:
    return op.name == "llvm.inline_asm" and ir.StringAttr(op.attributes["asm_string"]).value == "barrier.cluster.arrive.release;"


def merge(active: np.ndarray, new: np.ndarray | list, old: np.ndarray | list) -> np.ndarray | list:
    if isinstance(new, list):
        return [b if a is None else a if b is None else merge(active, a, b) for a, b in zip(new, old, strict=True)]
    return np.where(active.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def memory_of(simulator: Simulator, pointer: ir.Value) -> np.ndarray:
    return simulator.shared if str(pointer.type) in ("!llvm.ptr<3>", "!llvm.ptr<7>") else simulator.memory


def load(memory: np.ndarray, address: np.ndarray, count: int, element: str, active: np.ndarray) -> np.ndarray:
    size = max(count, 1) * max(width_of(element) // 8, 1)
    places = np.where(active, address, 0)[:, None] + np.arange(size)
    if (places[active] >= len(memory)).any() or (places[active] < 0).any():
        raise ValueError("a load outside of memory")
    return from_bytes(memory[places], count, element)


def store(memory: np.ndarray, address: np.ndarray, value: np.ndarray, element: str, active: np.ndarray) -> None:
    data = to_bytes(value, element)
    data = np.broadcast_to(data, (len(active), data.shape[1]))
    places = np.broadcast_to(address, active.shape)[active][:, None] + np.arange(data.shape[1])
    if (places >= len(memory)).any() or (places < 0).any():
        raise ValueError("a store outside of memory")
    memory[places] = data[active]


def special_register(simulator: Simulator, name: str):
    register = name.removeprefix("nvvm.read.ptx.sreg.")
    if register == "tid.x":
        return np.arange(simulator.threads, dtype=np.int32) % simulator.cta_threads
    if register == "cluster.ctarank":
        return simulator.rank
    if register == "ctaid.x":
        return simulator.rank + np.int32(simulator.program[0] * (simulator.threads // simulator.cta_threads))
    if register.startswith(("ctaid.", "clusterid.")):
        return np.full(simulator.threads, simulator.program["xyz".index(register[-1])], np.int32)
    if register.startswith(("nctaid.", "nclusterid.")):
        ctas = simulator.threads // simulator.cta_threads if register == "nctaid.x" else 1
        return np.full(simulator.threads, simulator.grid["xyz".index(register[-1])] * ctas, np.int32)
    raise KeyError(name)


# LLVM ops: (op, operands) -> result


def cast(op: ir.Operation, values: np.ndarray) -> np.ndarray:
    name = element_of(op.results[0].type)[1]
    return round_bf16(values) if name == "bf16" else values.astype(dtype_of(name))


def unsigned(values: np.ndarray) -> np.ndarray:
    return values.astype(np.uint8) if values.dtype == bool else values.view(UNSIGNED[values.dtype.itemsize * 8])


def on_unsigned(function: Callable) -> Callable:
    return lambda op, a, b: function(unsigned(a), unsigned(b)).astype(UNSIGNED[a.dtype.itemsize * 8]).view(a.dtype)


def constant(op: ir.Operation) -> np.ndarray:
    attr = op.attributes["value"]
    count, name = element_of(op.results[0].type)
    if not count:
        return np.full(1, attr.value, np.float64 if name[0] in "bf" else np.int64).astype(dtype_of(name))
    if attr.is_splat:
        return np.full((1, count), attr.get_splat_value().value).astype(dtype_of(name))
    return np.array([[attr[i] for i in range(count)]]).astype(dtype_of(name))


def getelementptr(op: ir.Operation, base: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
    _, element = element_of(ir.TypeAttr(op.attributes["elem_type"]).value)
    fixed = ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"])[0]
    offset = fixed if index is None else index.astype(np.int64)
    return base + offset * max(width_of(element) // 8, 1)


def bitcast(op: ir.Operation, values: np.ndarray) -> np.ndarray:
    count, name = element_of(op.results[0].type)
    return from_bytes(to_bytes(values, element_of(op.operands[0].type)[1]), count, name)


def insertelement(op: ir.Operation, vector: np.ndarray, scalar: np.ndarray, index: np.ndarray) -> np.ndarray:
    rows = max(len(vector), len(scalar))
    out = np.broadcast_to(vector, (rows, vector.shape[1])).copy()
    out[:, index[0]] = scalar
    return out


def shufflevector(op: ir.Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    rows = max(len(a), len(b))
    both = np.concatenate([np.broadcast_to(x, (rows, x.shape[1])) for x in (a, b)], axis=1)
    return both[:, list(ir.DenseI32ArrayAttr(op.attributes["mask"]))]


def icmp(op: ir.Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    if number >= 6:
        a, b, number = unsigned(a), unsigned(b), number - 4
    return (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)[number](a, b)


FCMP = ("", "=", ">", ">=", "<", "<=", "<>", "<=>", "=?", ">?", ">=?", "<?", "<=?", "<>?", "?", "<=>?")  # LLVM::FCmpPredicate


def fcmp(op: ir.Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    wanted = FCMP[ir.IntegerAttr(op.attributes["predicate"]).value]
    outcomes = {"<": a < b, "=": a == b, ">": a > b, "?": np.isnan(a) | np.isnan(b)}
    return np.any([outcomes[c] for c in wanted], axis=0) if wanted else np.zeros_like(outcomes["<"])


def select(op: ir.Operation, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition.reshape(-1, *[1] * (a.ndim - condition.ndim), *condition.shape[1:]), a, b)


def insertvalue(op: ir.Operation, aggregate: list, value: np.ndarray) -> list:
    out = list(aggregate)
    out[ir.DenseI64ArrayAttr(op.attributes["position"])[0]] = value
    return out


def poison(op: ir.Operation) -> object:
    type = op.results[0].type
    if str(type).startswith("!llvm.struct"):
        return [None] * 64
    count, name = element_of(type)
    return np.zeros((1, count) if count else 1, dtype_of(name))


def toward_zero_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Division toward zero; a zero divisor counts as 1."""
    b = np.where(b == 0, 1, b)
    return ((a - np.fmod(a, b)) // b).astype(a.dtype)


def rounded(function: Callable) -> Callable:
    return lambda op, *operands: cast(op, function(*operands))


OPS: dict[str, Callable] = {
    "llvm.mlir.constant": constant,
    "llvm.mlir.poison": poison,
    "llvm.mlir.zero": poison,
    "llvm.mlir.addressof": lambda op: np.zeros(1, np.int64),
    "llvm.getelementptr": getelementptr,
    "llvm.bitcast": bitcast,
    "llvm.insertelement": insertelement,
    "llvm.extractelement": lambda op, vector, index: vector[:, index[0]],
    "llvm.shufflevector": shufflevector,
    "llvm.insertvalue": insertvalue,
    "llvm.extractvalue": lambda op, aggregate: aggregate[ir.DenseI64ArrayAttr(op.attributes["position"])[0]],
    "llvm.select": select,
    "llvm.icmp": icmp,
    "llvm.fcmp": fcmp,
    "llvm.add": lambda op, a, b: a + b,
    "llvm.sub": lambda op, a, b: a - b,
    "llvm.mul": lambda op, a, b: a * b,
    "llvm.sdiv": lambda op, a, b: toward_zero_quotient(a, b),
    "llvm.srem": lambda op, a, b: np.fmod(a, np.where(b == 0, 1, b)).astype(a.dtype),
    "llvm.udiv": on_unsigned(lambda a, b: a // np.where(b == 0, 1, b)),
    "llvm.urem": on_unsigned(lambda a, b: a % np.where(b == 0, 1, b)),
    "llvm.and": lambda op, a, b: a & b,
    "llvm.or": lambda op, a, b: a | b,
    "llvm.xor": lambda op, a, b: a ^ b,
    "llvm.shl": on_unsigned(np.left_shift),
    "llvm.lshr": on_unsigned(np.right_shift),
    "llvm.ashr": lambda op, a, b: a >> b,
    "llvm.intr.umin": on_unsigned(np.minimum),
    "llvm.intr.umax": on_unsigned(np.maximum),
    "llvm.intr.smax": lambda op, a, b: np.maximum(a, b),
    "llvm.intr.smin": lambda op, a, b: np.minimum(a, b),
    "llvm.zext": lambda op, a: cast(op, unsigned(a)),
    "llvm.sext": lambda op, a: cast(op, -a.astype(np.int8) if a.dtype == bool else a),
    "llvm.trunc": lambda op, a: (a & 1).astype(bool) if element_of(op.results[0].type)[1] == "i1" else cast(op, a),
    "llvm.fadd": rounded(np.add),
    "llvm.fsub": rounded(np.subtract),
    "llvm.fmul": rounded(np.multiply),
    "llvm.fdiv": rounded(np.divide),
    "llvm.intr.fma": lambda op, a, b, c: cast(op, a.astype(np.float64) * b + c),
    "llvm.ptrtoint": cast,
    "llvm.addrspacecast": cast,
    "llvm.inttoptr": cast,
    "llvm.fpext": cast,
    "llvm.fptrunc": cast,
    "llvm.sitofp": cast,
    "llvm.fptosi": cast,
    "llvm.intr.fabs": lambda op, a: np.abs(a),
    "llvm.fneg": lambda op, a: -a,
    "llvm.intr.maxnum": lambda op, a, b: np.fmax(a, b),
    "llvm.intr.minnum": lambda op, a, b: np.fmin(a, b),
    "llvm.intr.maximum": lambda op, a, b: np.maximum(a, b),
    "llvm.intr.vector.reduce.or": lambda op, a: a.any(axis=1),
}


# Intrinsics and inline assembly


def shuffle(lanes: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable:
    def run(operands: list) -> np.ndarray:
        _, value, lane, _ = operands
        if len(value) == 1:
            return value  # the same in all threads
        threads = np.arange(len(value))
        return value[(threads & ~(WARP - 1)) | lanes(threads & (WARP - 1), np.broadcast_to(lane, threads.shape)) & (WARP - 1)]

    return run


def vote_all(operands: list) -> np.ndarray:
    _, value = operands
    return value if len(value) == 1 else np.repeat(value.reshape(-1, WARP).all(1), WARP)


def toward_zero(values: np.ndarray) -> np.ndarray:
    nearest = values.astype(np.float32)
    return np.where(np.abs(nearest.astype(np.float64)) > np.abs(values), np.nextafter(nearest, np.float32(0)), nearest)


def flush(values: np.ndarray) -> np.ndarray:
    """Subnormal numbers become zeros."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


INTRINSICS: dict[str, Callable] = {
    "llvm.nvvm.shfl.sync.bfly.i32": shuffle(lambda own, lane: own ^ lane),
    "llvm.nvvm.shfl.sync.idx.i32": shuffle(lambda own, lane: lane),
    "llvm.nvvm.vote.all.sync": vote_all,
    "llvm.nvvm.ex2.approx.ftz.f": lambda operands: np.exp2(operands[0]),
    "llvm.nvvm.div.full": lambda operands: operands[0] / operands[1],
    "llvm.nvvm.rcp.approx.ftz.f": lambda operands: flush(1 / flush(operands[0])),
    "llvm.nvvm.sqrt.approx.ftz.f": lambda operands: np.sqrt(flush(operands[0])),
    "llvm.nvvm.rsqrt.approx.ftz.f": lambda operands: 1 / np.sqrt(flush(operands[0])),
    "llvm.nvvm.d2f.rz": lambda operands: toward_zero(operands[0]),
}

ACCESS = re.compile(r"@\$(\d+) (ld|st)\.\S*?(global|shared)\S*\.b(\d+) (.*);")
COPY = re.compile(r"(?:@\$(\d) )?cp\.async\.c[ag]\.shared\.global \[\$0\], \[\$1\], (\d+)(, \$2)?;")
REDUX = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
ATOMIC = re.compile(r"@\$(\d+) (atom|red)\.\w+\.\w+\.global\.(add|max|min|and|or|xor|exch)\.(?:\w)(\d+) (.*);")


def run_asm(simulator: Simulator, op: ir.Operation, operands: list, active: np.ndarray):
    """Inline assembly: memory accesses, asynchronous copies, integer atomics, redux, matrix instructions."""
    text = ir.StringAttr(op.attributes["asm_string"]).value
    constraints = ir.StringAttr(op.attributes["constraints"]).value
    outputs = constraints.count("=")

    def operand(number: str | int) -> np.ndarray:
        return np.broadcast_to(operands[int(number) - outputs], simulator.threads)

    if text.startswith("barrier.cluster."):
        (simulator.cluster_arrive if ".arrive" in text else simulator.cluster_wait)(active)
        return None
    if text.startswith("{ .reg .pred p; elect.sync"):
        return (np.arange(simulator.threads) % WARP == 0).astype(np.int32)
    if text == "mov.u32 $0, %nsmid;":
        return np.full(simulator.threads, 132, np.int32)
    if match := re.fullmatch(r"barrier\.(sync|arrive)\.aligned (\$0|\d+), (\d+);", text):
        barrier = int(operand(0)[active][0]) if match[2] == "$0" else int(match[2])
        simulator.meet(barrier, int(match[3]), active, waits=match[1] == "sync")
        return None
    if run_tma_asm(simulator, text, operand, active):
        return None
    if "mma" in text and (outputs or "mma_async" in text):
        return run_matrix(simulator, text, constraints, operands)
    if text.startswith(("cp.async.commit_group", "cp.async.wait_group", "fence", "wgmma", "setmaxnreg")):
        return None
    if match := re.fullmatch(r"redux\.sync\.(\w+)\.(\w)32 \$0, \$1, 0xffffffff;", text):
        groups = operand(1).reshape(-1, WARP).view(np.uint32 if match[2] == "u" else np.int32)
        return np.repeat(REDUX[match[1]].reduce(groups, axis=1, dtype=groups.dtype), WARP).view(np.int32)
    if text == COUNT_ON:
        return count_on(simulator, operand, active)
    if text == "@$1 red.shared.add.u32 [$0], 1;":
        np.add.at(simulator.shared.view(np.int32), operand(0)[active & operand(1)] // 4, 1)
        return None
    if match := COPY.fullmatch(text):
        return run_copy(simulator, match, operand, active)
    if match := ACCESS.fullmatch(text):
        return run_access(simulator, match, operands, operand, outputs, active)
    if match := ATOMIC.fullmatch(text):
        return run_atomic(simulator, match, operand, outputs, active)
    raise ValueError(f"assembly that the simulator does not know: {text}")


def run_matrix(simulator: Simulator, text: str, constraints: str, operands: list):
    """Matrix instructions, which see registers as unsigned numbers."""
    rows = [np.broadcast_to(x, simulator.threads) for x in operands]
    registers = [np.ascontiguousarray(x if x.dtype.kind == "f" else unsigned(x)) for x in rows]
    results = run_matrix_asm(simulator, text, constraints.split(","), registers, move_matrices)
    signed = [x.view(INTS[x.dtype.itemsize * 8]) if x.dtype.kind == "u" else x for x in (results[0] if len(results) == 1 else results)]
    return signed if len(signed) > 1 else signed[0]


def move_matrices(simulator: Simulator, name: str, operands: list, active: np.ndarray | None = None):
    """ldmatrix and stmatrix: row r of matrix i is at the address that lane 8 i + r gives."""
    count = int(re.search(r"\.x(\d)", name)[1])
    address = operands[0]
    if active is None:
        active = np.ones(simulator.threads, bool)
    assert (address[active] % 16 == 0).all(), "misaligned row"
    words = []
    for i in range(count):
        lanes = (np.arange(0, simulator.threads, WARP)[:, None] + 8 * i + np.arange(8)).ravel()
        if "stmatrix" in name:
            matrix = np.ascontiguousarray(np.broadcast_to(operands[1 + i], simulator.threads)).view(np.uint16).reshape(-1, 8, 8)
            rows = matrix.transpose(0, 2, 1) if ".trans" in name else matrix
            store(simulator.shared, address[lanes], np.ascontiguousarray(rows).reshape(-1, 8).view(np.int16), "i16", active[lanes])
            continue
        matrix = load(simulator.shared, address[lanes], 8, "i16", active[lanes]).reshape(-1, 8, 8)
        rows = matrix.transpose(0, 2, 1) if ".trans" in name else matrix
        words.append(np.ascontiguousarray(rows).reshape(-1, 2).view(np.int32)[:, 0])
    return None if not words else words if count > 1 else words[0]


def run_copy(simulator: Simulator, match: re.Match, operand: Callable, active: np.ndarray) -> None:
    """cp.async: bytes beyond the source size become zeros; a source size of 0 reads nothing."""
    size = int(match[2])
    chosen = active & operand(match[1]) if match[1] else active
    data = load(simulator.memory, operand(1), size, "i8", chosen & (operand(2) > 0) if match[3] else chosen)
    if match[3]:
        data = np.where(np.arange(size) < operand(2)[:, None], data, 0).astype(np.int8)
    store(simulator.shared, operand(0), data, "i8", chosen)


def run_access(simulator: Simulator, match: re.Match, operands: list, operand: Callable, outputs: int, active: np.ndarray):
    predicate, kind, bits, rest = operand(match[1]), match[2], int(match[4]), match[5]
    memory = simulator.memory if match[3] == "global" else simulator.shared
    numbers = [int(n) for n in re.findall(r"\$(\d+)", rest)]
    element = f"i{bits}"
    width = bits // 8
    if kind == "st":
        address, *words = [operand(n) for n in numbers]
        for i, word in enumerate(words):
            store(memory, address + i * width, word.astype(dtype_of(element)), element, active & predicate)
        return None
    address = operand(numbers[outputs])
    defaults = [np.broadcast_to(d, simulator.threads) for d in operands[-outputs:]]
    results = []
    for i, default in enumerate(defaults):
        here = active & predicate
        read = load(memory, address + i * width, 0, element, here).astype(default.dtype)
        results.append(np.where(here, read, default))
    return results[0] if outputs == 1 else results


def count_on(simulator: Simulator, operand: Callable, active: np.ndarray) -> np.ndarray:
    """What a thread that asks a queue for a program finds there."""
    address, last = operand(2), operand(3)
    cells, old = simulator.memory.view(np.int32), np.zeros(simulator.threads, np.int32)
    for thread in np.flatnonzero(active & (operand(1) == 0) & (address != 0)):
        cell = int(address[thread]) // 4
        old[thread] = cells[cell]
        cells[cell] = 0 if cells[cell] >= last[thread] else cells[cell] + 1
    return old


def run_atomic(simulator: Simulator, match: re.Match, operand: Callable, outputs: int, active: np.ndarray):
    predicate, operation, bits = operand(match[1]), match[3], int(match[4])
    numbers = [int(n) for n in re.findall(r"\$(\d+)", match[5])]
    address, value = (operand(n) for n in numbers[outputs:])
    cells = simulator.memory.view(INTS[bits])
    old = np.zeros(simulator.threads, INTS[bits])
    for thread in np.flatnonzero(active & predicate):
        cell = int(address[thread]) // (bits // 8)
        old[thread] = cells[cell]
        cells[cell] = value[thread] if operation == "exch" else REDUX[operation](cells[cell], value[thread])
    return old if outputs else None
