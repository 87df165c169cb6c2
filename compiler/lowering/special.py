"""Ops with code of their own: inline assembly and scalar functions per element, histogram, gather."""

import re

from mlir import ir

from . import access, linear, vectors
from .asm import inline_asm, inline_asm_multi, operand_counts
from .branches import when
from .context import LoweringContext
from .registry import rule

#: What a constraint of inline assembly may ask for: a predicate, and registers of 16, 32, 64 and 128 bits and of floats.
REGISTER_CLASSES = ("b", "h", "r", "l", "q", "f", "d")
_OPERAND = re.compile(r"\$(?:\$|(\d+|\{\d+\})|\S?)")
_CONSTRAINT = re.compile(rf"=?&?[{''.join(REGISTER_CLASSES)}]")


@rule("tile.inline_asm")
def inline_asm_op(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Instances of the assembly, each on `pack` neighbouring registers; elements below 32 bits share 32-bit registers."""
    text = ir.StringAttr(op.attributes["asm_string"]).value
    constraints = ir.StringAttr(op.attributes["constraints"]).value
    pack = ir.IntegerAttr(op.attributes["pack"]).value
    pure = "pure" in op.attributes
    arguments = ctx.operands(op)
    types = [ctx.type(r.type) for r in op.results]
    is_scalar = ctx.types.parts(types[0])[0] == 0
    if is_scalar:
        arguments = [ctx.splat(a, 1) for a in arguments]
        types = [ctx.types.vector(1, t) for t in types]
    count = ctx.types.parts(types[0])[0]
    letters = [c.strip("=&+ ") for c in constraints.split(",")]
    pieces: list[list[ir.Value]] = [[] for _ in types]
    for start in range(0, count, pack):
        registers = [min(start + i, count - 1) for i in range(pack)]  # past the end the last element repeats
        outputs = [packed_types(ctx, ctx.types.parts(t)[1], pack) for t in types]
        number = sum(len(o) for o in outputs)
        operands: list[ir.Value] = []
        for argument in arguments:
            group = vectors.shuffle(ctx, argument, registers)
            operands += packed_words(ctx, group)
        if start == 0:
            check_assembly(text, constraints, number, len(operands))
        operands = [to_class(ctx, w, letters[number + i]) for i, w in enumerate(operands)]
        flat = [word for words in outputs for word in words]
        declared = [class_type(ctx, letters[i], word) for i, word in enumerate(flat)]
        results = inline_asm_multi(ctx, text, constraints, operands, declared, not pure)
        results = [from_class(ctx, r, word) for r, word in zip(results, flat, strict=True)]
        for i, (words, type) in enumerate(zip(outputs, types, strict=True)):
            mine, results = results[: len(words)], results[len(words) :]
            pieces[i].append(unpacked(ctx, mine, pack, ctx.types.parts(type)[1]))
    joined = [vectors.slice_of(ctx, vectors.concat(ctx, p), 0, count) for p in pieces]
    return [vectors.extract(ctx, v, 0) for v in joined] if is_scalar else joined


def check_assembly(text: str, constraints: str, outputs: int, inputs: int) -> None:
    """Raise ValueError for constraints or operand numbers that LLVM does not know: it would end the process."""
    written, read = operand_counts(constraints)
    if (written, read) != (outputs, inputs):
        raise ValueError(
            f"constraints '{constraints}' name {written} outputs and {read} inputs, "
            f"but there are {outputs} and {inputs} (32-bit registers, for types narrower than that)"
        )
    for part in map(str.strip, constraints.split(",")):
        if part.startswith("~{"):
            continue
        tied = part.isdigit() and int(part) < outputs
        if not tied and not _CONSTRAINT.fullmatch(part):
            raise ValueError(f"constraint '{part}' is not known: use {', '.join(REGISTER_CLASSES)}, or the number of an output")
    for named in _OPERAND.finditer(text):
        if named[0] != "$$" and (not named[1] or int(named[1].strip("{}")) >= outputs + inputs):
            raise ValueError(
                f"'{named[0]}' in the assembly is not one of the {outputs + inputs} operands $0, $1, ...; `$$` is a dollar sign"
            )


def packed_types(ctx: LoweringContext, element: ir.Type, pack: int) -> list[ir.Type]:
    """The integer words that hold `pack` elements."""
    bits = ctx.types.widths[element]
    if bits >= 32:
        return [ctx.types.int(bits)] * pack
    total = max(bits, 8) * pack
    return [ctx.types.i32] * (total // 32) if total >= 32 else [ctx.types.int(total)]


def packed_words(ctx: LoweringContext, group: ir.Value) -> list[ir.Value]:
    """The elements of a group in the words of `packed_types`."""
    t = ctx.types
    count, element = t.parts(group.type)
    if element in t.pointers:
        group = ctx.emit("llvm.ptrtoint", t.vector(count, t.i64), (group,))
    elif element == t.i1:
        group = ctx.emit("llvm.zext", t.vector(count, t.i8), (group,))
    words = packed_types(ctx, element, count)
    return vectors.to_words(ctx, group, t.widths[words[0]])


def unpacked(ctx: LoweringContext, words: list[ir.Value], count: int, element: ir.Type) -> ir.Value:
    """The inverse of `packed_words`."""
    t = ctx.types
    if element in t.pointers:
        return ctx.emit("llvm.inttoptr", t.vector(count, element), (vectors.from_words(ctx, words, count, t.i64),))
    if element == t.i1:
        return ctx.emit("llvm.trunc", t.vector(count, t.i1), (vectors.from_words(ctx, words, count, t.i8),))
    return vectors.from_words(ctx, words, count, element)


def class_type(ctx: LoweringContext, letter: str, word: ir.Type) -> ir.Type:
    """The type of an operand of a register class: f and d are floats, r, h and l integers; other classes keep the word."""
    t = ctx.types
    type = {"f": t.f32, "d": t.f64, "r": t.i32, "h": t.i16, "l": t.i64}.get(letter, word)
    if type in t.floats and t.widths[type] != t.widths[word]:
        raise ValueError(f"constraint '{letter}' takes values of {t.widths[type]} bits, not of {t.widths[word]}")
    return type


def to_class(ctx: LoweringContext, word: ir.Value, letter: str) -> ir.Value:
    """A word as an operand of a register class."""
    t = ctx.types
    type = class_type(ctx, letter, word.type)
    if type in t.floats or t.widths[type] == t.widths[word.type]:
        return vectors.bitcast(ctx, word, type)
    return ctx.emit("llvm.zext" if t.widths[type] > t.widths[word.type] else "llvm.trunc", type, (word,))


def from_class(ctx: LoweringContext, value: ir.Value, word: ir.Type) -> ir.Value:
    """The inverse of `to_class`."""
    t = ctx.types
    have, want = t.widths[value.type], t.widths[word]
    if have == want:
        return vectors.bitcast(ctx, value, word)
    return ctx.emit("llvm.trunc" if have > want else "llvm.zext", word, (value,))


@rule("tile.map_elementwise")
def map_elementwise(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """The region becomes a function on `pack` elements of each source, called for each group of registers."""
    pack = ir.IntegerAttr(op.attributes["pack"]).value
    if len(op.regions[0].blocks) != 1:
        raise ValueError("the region of tile.map_elementwise must have one block")
    block = op.regions[0].blocks[0]
    sources = [vectors.unpack(ctx, v) for v in ctx.operands(op)]
    elements = [ctx.tensor(r).element for r in op.results]
    outputs = [e for e in elements for _ in range(pack)]
    struct = ctx.types.struct(*outputs)
    key = f"map.{len(ctx.module.symbols)}"

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        terminator = inner.lower_block(block, arguments)
        packed = inner.poison(struct)
        for i, value in enumerate(inner.operands(terminator)):
            packed = inner.emit("llvm.insertvalue", struct, (packed, value), inner.types.position(i))
        return packed

    pieces: list[list[ir.Value]] = [[] for _ in elements]
    count = len(sources[0])
    for start in range(0, count, pack):
        registers = [min(start + i, count - 1) for i in range(pack)]
        arguments = [source[r] for source in sources for r in registers]
        packed = ctx.helper(key, struct, arguments, build)
        for i, type in enumerate(outputs):
            pieces[i // pack].append(ctx.emit("llvm.extractvalue", type, (packed,), ctx.types.position(i)))
    return [vectors.pack(ctx, p[:count]) for p in pieces]


@rule("tile.histogram")
def histogram(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Count in shared memory: clear, add, read. Scratch: 4 bytes a bin."""
    t = ctx.types
    source, *mask = op.operands
    values, masks = ctx.value(source), ctx.value(mask[0]) if mask else None
    bins = ctx.tensor(op.results[0]).shape[0]
    base = ctx.scratch(op)
    threads = ctx.facts.threads_per_warp * ctx.facts.num_warps
    for start in range(0, bins, threads):
        index = ctx.emit("llvm.add", t.i32, (ctx.thread_id, ctx.i32(start)))
        place = ctx.emit("llvm.getelementptr", t.ptr3, (base, index), t.gep_attrs(t.i32))
        inside = None if start + threads <= bins else ctx.emit("llvm.icmp", t.i1, (index, ctx.i32(bins)), t.icmp("ult"))
        when(ctx, inside, lambda place=place: ctx.emit_void("llvm.store", (ctx.i32(0), place)))
    ctx.barrier()
    layout = ctx.layout(source)
    owner = access.owner(ctx, layout)
    free = layout.free_masks()["register"]
    for register in range(layout.in_size("register")):
        if register & free:
            continue
        value = vectors.extract(ctx, values, register)
        wanted = ctx.emit("llvm.icmp", t.i1, (value, ctx.constant(value.type, bins)), t.icmp("ult"))
        wanted = access.both(ctx, access.both(ctx, owner, wanted), None if masks is None else vectors.element(ctx, masks, register))
        place = ctx.emit("llvm.getelementptr", t.ptr3, (base, value), t.gep_attrs(t.i32))
        inline_asm(ctx, "@$1 red.shared.add.u32 [$0], 1;", "r,b,~{memory}", (place, wanted), None)
    ctx.barrier()
    bins_here = linear.coordinates(ctx, ctx.layout(op.results[0]), 0)
    places = [ctx.emit("llvm.getelementptr", t.ptr3, (base, i), t.gep_attrs(t.i32)) for i in vectors.unpack(ctx, bins_here)]
    return [vectors.pack(ctx, [ctx.emit("llvm.load", t.i32, (p,)) for p in places])]


@rule("tile.gather")
def gather(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Write the source to shared memory in row-major order and read it where the indices say. Scratch: the size of the source."""
    t = ctx.types
    values, indices = ctx.operands(op)
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    source, result = ctx.tensor(op.operands[0]), ctx.tensor(op.results[0])
    memory = t.i8 if source.element == t.i1 else source.element
    if source.element == t.i1:
        values = ctx.emit("llvm.zext", t.vector(source.registers, t.i8), (values,))
    base = ctx.scratch(op)
    free = source.layout.free_masks()["register"]
    for register, index in enumerate(vectors.unpack(ctx, linear.linear_indices(ctx, source.layout))):
        if not register & free:
            place = ctx.emit("llvm.getelementptr", t.ptr3, (base, index), t.gep_attrs(memory))
            ctx.emit_void("llvm.store", (vectors.extract(ctx, values, register), place))
    ctx.barrier()
    positions = source_positions(ctx, indices, source.layout, result.layout, axis)
    places = [ctx.emit("llvm.getelementptr", t.ptr3, (base, i), t.gep_attrs(memory)) for i in vectors.unpack(ctx, positions)]
    read = vectors.pack(ctx, [ctx.emit("llvm.load", memory, (p,)) for p in places])
    return [ctx.emit("llvm.trunc", result.vector, (read,)) if source.element == t.i1 else read]


def source_positions(ctx: LoweringContext, indices: ir.Value, source, result, axis: int) -> ir.Value:
    """Row-major position in the source of each element of the result: its coordinates, with the index along `axis`."""
    t = ctx.types
    count, element = t.parts(indices.type)
    type = t.vector(count, t.i32)
    if t.widths[element] != 32:
        indices = ctx.emit("llvm.trunc" if t.widths[element] > 32 else "llvm.zext", type, (indices,))
    # keeping the index inside of the dimension keeps the access inside of the scratch memory
    indices = ctx.emit("llvm.and", type, (indices, ctx.constant(type, source.out_sizes[axis] - 1)))
    total = ctx.emit("llvm.shl", type, (indices, ctx.constant(type, source.shifts[axis])))
    for dim in range(source.rank):
        if dim != axis and source.out_sizes[dim] > 1:
            part = ctx.emit("llvm.shl", type, (linear.coordinates(ctx, result, dim), ctx.constant(type, source.shifts[dim])))
            total = ctx.emit("llvm.or", type, (total, part), t.disjoint)
    return total
