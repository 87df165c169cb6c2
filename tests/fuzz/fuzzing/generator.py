"""`generate(seed)`: the random program of a seed."""

from __future__ import annotations

import random

from .control import add_statements
from .program import Program, Statement
from .types import FP8S, Type
from .writer import Writer, default_dtypes

# Each program is about something: which makers are likelier.
THEMES = {
    "mixed": {},
    "integers": {"integer_division": 4, "bits": 5, "high_product": 4, "function": 0.1, "dot": 0},
    "floats": {"function": 4, "extremum": 3, "remainder_of_floats": 3, "bits": 0.2},
    "casts": {"conversion": 6, "comparison": 2},
    "reductions": {"reduction": 5, "scan": 5, "sorting": 4},
    "shapes": {"shape": 5, "gather": 4, "indexed_load": 2},
    "control": {"branch": 4, "loop": 4, "while_loop": 4, "early_return": 4, "helper_call": 2},
    "products": {
        "dot": 8,
        "product_loop": 8,
        "attention": 6,
        "strided_product": 8,
        "scaled_product": 6,
        "integer_product": 5,
        "shape": 0.5,
    },
    "kernels": {"descriptor": 8, "block_pointer": 6, "softmax": 6, "attention": 4, "random_numbers": 5, "choice_of_pointers": 5},
    "memory": {"indexed_load": 5, "atomic": 6, "histogram": 5, "pointer_loop": 5, "read_back": 6, "loop_over_array": 5, "old_values": 4},
}


def generate(seed: int) -> Program:
    """The random program of a seed: the same one for the same version of this package."""
    rng = random.Random(seed)
    grid = rng.choice([(1,), (1,), (2,), (3,), (4,), (2, 2)])
    programs = grid[0] * (grid[1] if len(grid) > 1 else 1)
    w = Writer(rng, programs)
    theme = rng.choice(list(THEMES))
    w.weights = THEMES[theme]
    w.special = rng.random() < 0.25
    w.shapes = _shapes(rng)
    w.dtypes = default_dtypes(rng)
    if theme == "casts":
        w.dtypes.append(rng.choice(FP8S))
    w.block.append(Statement("pid = tl.program_id(0)" + (" + tl.program_id(1) * tl.num_programs(0)" if len(grid) > 1 else "")))
    for _ in range(rng.randrange(1, 4)):
        w.load(_typed(w))
    add_statements(w, rng.randrange(3, 14))
    _store_results(w)
    options = {"num_warps": rng.choice([1, 2, 4, 4, 8, 16, 32]), "num_stages": rng.choice([1, 2, 3, 3, 4])}
    if rng.random() < 0.5:
        options["enable_fp_fusion"] = False
    if (ctas := min(rng.choice([1, 1, 1, 2, 4, 8]), w.most_ctas)) > 1:
        options["num_ctas"] = ctas
    if rng.random() < 0.3:
        options["persistent"] = True
    return Program(seed, tuple(w.block), w.arguments, w.constexprs, tuple(w.helpers), grid, options)


def _typed(w: Writer) -> Type:
    return Type(w.rng.choice(w.dtypes), w.rng.choice(w.shapes))


def _shapes(rng: random.Random) -> list[tuple[int, ...]]:
    """A few shapes that combine with one another."""
    rank = rng.choice([1, 1, 1, 2, 2, 2, 2, 3, 3, 4])
    if rank == 1:
        n = 2 ** rng.randrange(0, 12)
        return [(n,), (n,), ()]
    if rank == 2:
        m = 2 ** rng.randrange(0, 8)
        n = 2 ** rng.randrange(0, 12 - m.bit_length())
        return [(m, n), (m, n), (m, 1), (1, n), (n,), (m,), ()]
    if rank == 4:
        dims = tuple(2 ** rng.randrange(0, 4) for _ in range(4))
        return [dims, dims, (1, *dims[1:]), dims[:2], ()]
    if rng.random() < 0.3:  # square in the last two dimensions
        n = 2 ** rng.randrange(1, 5)
        return [(2, n, n), (n, n), (n, n), (n,), ()]
    dims = tuple(2 ** rng.randrange(0, 5) for _ in range(3))
    return [dims, dims, (dims[0], 1, dims[2]), (1, *dims[1:]), dims[1:], ()]


def _store_results(w: Writer) -> None:
    """Store what nothing uses, and some of the rest."""
    used = set()

    def visit(statements) -> None:
        for s in statements:
            used.update(s.uses - {name for name, _ in s.targets})
            visit(s.body)
            visit(s.orelse)

    visit(w.block)
    names = w.candidates()
    unused = [n for n in names if n not in used]
    others = [n for n in names if n in used]
    w.rng.shuffle(others)
    for name in [*unused[-6:], *others[:2]] or names[-1:]:
        w.store(name)
