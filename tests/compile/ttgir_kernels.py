"""Small kernels in `ttgir` for tests of the lowering: text builders, with the NumPy result each must have.

They hold no allocation pass's work: offsets in shared memory are set by hand. The same texts run on a GPU (tests/language) and, through
`simt`, without one.
"""

from __future__ import annotations

from math import prod

from tilewright.compiler.layouts import LinearLayout, SharedLayout, default_blocked, reshape

BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f8E4M3FN": 1, "f8E5M2": 1}


def linear(layout: LinearLayout) -> str:
    """The attribute of a distributed layout."""
    parts = ", ".join(f"{name} = {[list(b) for b in layout.bases[name]]}" for name in layout.names)
    rank = "" if any(layout.flat) or layout.flat else f", rank = {layout.rank}"
    return f"#tilegpu.linear<{parts}{rank}>"


def tensor(layout: LinearLayout, element: str) -> str:
    """The type of a tensor."""
    return f"tensor<{'x'.join(map(str, layout.out_sizes))}x{element}, {linear(layout)}>"


def buffer(shared: SharedLayout, element: str, slots: int = 0) -> str:
    """The type of a buffer."""
    pad = f", pad = {list(shared.padding)}" if shared.padding else ""
    bases = [list(b) for b in shared.linear.bases["offset"]]
    tail = f", slots = {slots}" if slots else ""
    return f"!tilegpu.buffer<{'x'.join(map(str, shared.shape))}x{element}, #tilegpu.shared<offset = {bases}{pad}>{tail}>"


class Kernel:
    """Collects the lines of one kernel `@kernel` with pointer arguments %p0, %p1, … of the given elements."""

    def __init__(self, num_warps: int, *elements: str) -> None:
        self.num_warps, self.elements = num_warps, elements
        self.lines: list[str] = []
        self.count = 0

    def value(self, text: str) -> str:
        """Append an op with one result; returns its name."""
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def op(self, text: str) -> None:
        """Append an op without results."""
        self.lines.append(f"  {text}")

    def indices(self, layout: LinearLayout) -> str:
        """The row-major index of each element of a tensor."""
        size = prod(layout.out_sizes)
        flat = reshape(layout, (size,))
        indices = self.value(f"tile.range 0 to {size} : {tensor(flat, 'i32')}")
        if layout.rank == 1:
            return indices
        return self.value(f"tile.reshape {indices} : {tensor(flat, 'i32')} -> {tensor(layout, 'i32')}")

    def pointers(self, argument: int, layout: LinearLayout) -> str:
        """Row-major pointers to all elements of a tensor that argument `argument` points to."""
        indices = self.indices(layout)
        ptr = f"!tile.ptr<{self.elements[argument]}>"
        base = self.value(f"tile.splat %p{argument} : {ptr} -> {tensor(layout, ptr)}")
        return self.value(f"tile.addptr {base}, {indices} : {tensor(layout, ptr)}, {tensor(layout, 'i32')}")

    def load(self, argument: int, layout: LinearLayout) -> str:
        """Load the whole tensor of an argument."""
        pointers = self.pointers(argument, layout)
        return self.value(f"tile.load {pointers} : {tensor(layout, f'!tile.ptr<{self.elements[argument]}>')}")

    def store(self, argument: int, layout: LinearLayout, value: str) -> None:
        """Store the whole tensor of an argument."""
        pointers = self.pointers(argument, layout)
        self.op(f"tile.store {pointers}, {value} : {tensor(layout, f'!tile.ptr<{self.elements[argument]}>')}")

    def text(self, arch: int) -> str:
        """The module."""
        aligned = "{tile.divisibility = 16 : i32}"
        parameters = ", ".join(f"%p{i}: !tile.ptr<{e}> {aligned}" for i, e in enumerate(self.elements))
        attributes = (
            f'"tilegpu.target" = "cuda:{arch}", "tilegpu.num_warps" = {self.num_warps} : i32, "tilegpu.threads_per_warp" = 32 : i32'
        )
        body = "\n".join(self.lines)
        return f"module attributes {{{attributes}}} {{\nfunc.func public @kernel({parameters}) {{\n{body}\n  return\n}}\n}}\n"


def convert(src: LinearLayout, dst: LinearLayout, element: str, num_warps: int) -> Kernel:
    """Copy %p0 to %p1 through a layout conversion."""
    k = Kernel(num_warps, element, element)
    value = k.load(0, src)
    moved = k.value(f'tilegpu.convert_layout {value} {{"tilegpu.offset" = 0 : i32}} : {tensor(src, element)} -> {tensor(dst, element)}')
    k.store(1, dst, moved)
    return k


def through_buffer(src: LinearLayout, dst: LinearLayout, shared: SharedLayout, element: str, num_warps: int) -> Kernel:
    """Copy %p0 to %p1 through a buffer."""
    k = Kernel(num_warps, element, element)
    value = k.load(0, src)
    kind = buffer(shared, element)
    memory = k.value(f'tilegpu.local_alloc : {kind} {{"tilegpu.offset" = 1024 : i32}}')
    k.op(f"tilegpu.local_store {value}, {memory} : {tensor(src, element)}, {kind}")
    k.op("tilegpu.barrier")
    k.store(1, dst, k.value(f"tilegpu.local_load {memory} : {kind} -> {tensor(dst, element)}"))
    return k


def async_copy(
    layout: LinearLayout,
    dst: LinearLayout,
    shared: SharedLayout,
    element: str,
    num_warps: int,
    below: int | None = None,
    other: str | None = None,
) -> Kernel:
    """Copy %p0 to %p1 through slot 1 of two of a buffer that cp.async fills.

    Elements whose row-major index is `below` or more are masked to `other`.
    """
    k = Kernel(num_warps, element, element)
    ring, kind = buffer(shared, element, 2), buffer(shared, element)
    memory = k.value(f'tilegpu.local_alloc : {ring} {{"tilegpu.offset" = 0 : i32}}')
    one = k.value("arith.constant 1 : i32")
    slot = k.value(f"tilegpu.slot {memory}[{one}] : {ring}")
    pointers = k.pointers(0, layout)
    guard = ""
    if below is not None:
        flat, bits = k.indices(layout), tensor(layout, "i1")
        bound = k.value(f"arith.constant dense<{below}> : {tensor(layout, 'i32')}")
        mask = k.value(f"arith.cmpi slt, {flat}, {bound} : {tensor(layout, 'i32')}")
        guard = f" mask = {mask} : {bits}"
    if other is not None:
        value = k.value(f"arith.constant dense<{other}> : {tensor(layout, element)}")
        guard += f" other = {value} : {tensor(layout, element)}"
    token = k.value(f"tilegpu.async_copy {pointers}, {slot}{guard} : {tensor(layout, f'!tile.ptr<{element}>')}, {kind}")
    token = k.value(f"tilegpu.async_commit({token})")
    token = k.value(f"tilegpu.async_wait {token} num = 0")
    k.op("tilegpu.barrier")
    k.store(1, dst, k.value(f"tilegpu.local_load {slot} token {token} : {kind} -> {tensor(dst, element)}"))
    return k


def convert_flags_and_pointers(src: LinearLayout, dst: LinearLayout, num_warps: int) -> Kernel:
    """%p1[i] = %p0[i] if %p0[i] > 7 else 0, with the comparison and the pointers made in `src` and used in `dst`."""
    k = Kernel(num_warps, "i32", "i32")
    offsets = '{"tilegpu.offset" = 0 : i32}'
    value = k.load(0, src)
    seven = k.value(f"arith.constant dense<7> : {tensor(src, 'i32')}")
    flag = k.value(f"arith.cmpi sgt, {value}, {seven} : {tensor(src, 'i32')}")
    flag = k.value(f"tilegpu.convert_layout {flag} {offsets} : {tensor(src, 'i1')} -> {tensor(dst, 'i1')}")
    k.op("tilegpu.barrier")
    kind = "!tile.ptr<i32>"
    pointers = k.pointers(0, src)
    pointers = k.value(f"tilegpu.convert_layout {pointers} {offsets} : {tensor(src, kind)} -> {tensor(dst, kind)}")
    k.op("tilegpu.barrier")
    zero = k.value(f"arith.constant dense<0> : {tensor(dst, 'i32')}")
    loaded = k.value(f"tile.load {pointers} : {tensor(dst, kind)}")
    k.store(1, dst, k.value(f"arith.select {flag}, {loaded}, {zero} : {tensor(dst, 'i1')}, {tensor(dst, 'i32')}"))
    return k


def mma(
    a: LinearLayout,
    b: LinearLayout,
    acc: LinearLayout,
    instr: tuple[int, int, int],
    element: str,
    out: str,
    num_warps: int,
    shared: tuple[SharedLayout, SharedLayout] | None = None,
) -> Kernel:
    """%p2 = %p0 @ %p1 by mma.sync; with `shared` the operands come from buffers."""
    k = Kernel(num_warps, element, element, out)
    zero = k.value(f"arith.constant dense<{'0' if out == 'i32' else '0.0'}> : {tensor(acc, out)}")
    if shared is None:
        left, right = k.load(0, a), k.load(1, b)
    else:
        loads, offset = [], 0
        for i, (where, layout) in enumerate(zip(shared, (a, b), strict=True)):
            source = default_blocked(layout.out_sizes, num_warps)
            kind = buffer(where, element)
            place = f'{{"tilegpu.offset" = {offset} : i32}}'
            memory = k.value(f"tilegpu.local_alloc {k.load(i, source)} : {tensor(source, element)} -> {kind} {place}")
            loads.append(f"tilegpu.local_load {memory} : {kind} -> {tensor(layout, element)}")
            offset += max(1024, prod(where.shape) * BYTES[element])
        k.op("tilegpu.barrier")
        left, right = k.value(loads[0]), k.value(loads[1])
    types = f"{tensor(a, element)}, {tensor(b, element)} -> {tensor(acc, out)}"
    k.store(2, acc, k.value(f"tilegpu.mma {left}, {right}, {zero} instr = {list(instr)} precision = tf32 : {types}"))
    return k


def wgmma(
    blocked: tuple[LinearLayout, LinearLayout],
    shared: tuple[SharedLayout | LinearLayout, SharedLayout],
    acc: LinearLayout,
    instr: tuple[int, int, int],
    element: str,
    out: str,
    num_warps: int,
    trans_b: bool = False,
) -> Kernel:
    """%p2 = %p0 @ %p1 by wgmma, twice into the same accumulator; A comes from registers if its `shared` entry is a distributed layout.

    With `trans_b` %p1 holds B transposed ([N, K]) and a view turns it.
    """
    from tilewright.compiler.layouts import trans

    k = Kernel(num_warps, element, element, out)
    loads = [k.load(0, blocked[0] if isinstance(shared[0], SharedLayout) else shared[0]), k.load(1, blocked[1])]
    offset = 0
    operands, types = [], []
    for value, where, source in zip(loads, shared, blocked, strict=True):
        if isinstance(where, LinearLayout):
            operands.append(value)
            types.append(tensor(where, element))
            continue
        kind = buffer(where, element)
        memory = k.value(f'tilegpu.local_alloc {value} : {tensor(source, element)} -> {kind} {{"tilegpu.offset" = {offset} : i32}}')
        operands.append(memory)
        types.append(kind)
        offset += max(1024, prod(where.shape) * BYTES[element])
    if trans_b:
        turned = buffer(SharedLayout(trans(shared[1].linear, (1, 0))), element)
        operands[1] = k.value(f"tilegpu.view {operands[1]} order = [1, 0] : {types[1]} -> {turned}")
        types[1] = turned
    k.op("tilegpu.fence_async")
    k.op("tilegpu.barrier")
    zero = k.value(f"arith.constant dense<{'0' if out == 'i32' else '0.0'}> : {tensor(acc, out)}")
    signature = f"{types[0]}, {types[1]} -> {tensor(acc, out)}"
    pending = zero
    for _ in range(2):
        pending = k.value(f"tilegpu.wgmma {operands[0]}, {operands[1]}, {pending} instr = {list(instr)} precision = tf32 : {signature}")
    k.store(2, acc, k.value(f"tilegpu.wgmma_wait num = 0 ({pending} : {tensor(acc, out)})"))
    return k
