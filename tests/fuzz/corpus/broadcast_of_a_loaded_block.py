"""A block that is loaded in three dimensions and broadcast: its layout says nothing about that of the larger block."""

import tilewright.language as tl


@jit
def kernel(a0, a1):
    pid = tl.program_id(0)
    v = tl.load(a0 + pid * 31 + (tl.arange(0, 4)[:, None, None] * 7))
    w = tl.broadcast_to(v, [4, 16, 2])
    tl.store(a1 + pid * 256 + tl.arange(0, 128) * 2, tl.reshape(w + w, [128]))


GRID = (2,)
OPTIONS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
ARGUMENTS = {
    "a0": Array(dtype="u32", size=78, fill="full", seed=1033944686),
    "a1": Array(dtype="u32", size=512, fill="pattern", seed=0),
}
