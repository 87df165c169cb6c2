"""Random program 401310, minimised: a loop carries what it loads. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def kernel(a5, a6, a14):
    pid = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    v8 = tl.full([128, 4], 3, tl.uint64)
    for v12 in range(2):
        v13 = tl.where(tl.broadcast_to((tl.arange(0, 128)[:, None]) < 9, [128, 4]), a5 + (tl.arange(0, 128)[:, None] * 8 + tl.arange(0, 4)[None, :] * 2), a6 + (tl.arange(0, 128)[:, None] * 8 + tl.arange(0, 4)[None, :] * 2))
        v14 = tl.load(v13)
        v8 = v14
    tl.store(a14 + pid * 512 + (tl.arange(0, 128)[:, None] * 4 + tl.arange(0, 4)[None, :]), v8)

GRID = (1,)
OPTIONS = {'num_warps': 1, 'num_stages': 2}
ARGUMENTS = {'a5': Array(dtype='u64', size=1024, fill='small', seed=619391938),
 'a6': Array(dtype='u64', size=1024, fill='small', seed=862831446),
 'a14': Array(dtype='u64', size=2048, fill='pattern', seed=0)}
