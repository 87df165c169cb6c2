"""An illegal instruction: cp.async with an L2 policy, into a slot whose place is uniform (seed 400842)."""

import tilewright.language as tl


@jit
def kernel(a0, a1):
    pid = tl.program_id(0)
    x = tl.load(a0 + pid * 16 + tl.arange(0, 16), eviction_policy="evict_last")
    tl.store(a1 + pid * 16 + tl.arange(0, 16), x + tl.sum(x, 0))


GRID = (3,)
OPTIONS = {"num_warps": 4, "num_stages": 3, "persistent": True}
ARGUMENTS = {"a0": Array(dtype="fp32", size=48, fill="small", seed=1), "a1": Array(dtype="fp32", size=48, fill="pattern", seed=0)}
