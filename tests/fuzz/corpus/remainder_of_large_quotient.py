"""Random program 33: `python tests/fuzz/run.py --file` this one. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def kernel(a0, n0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + (pid * 128 + tl.arange(0, 128)[:, None] + tl.arange(0, 1)[None, :] + 1), mask=((tl.arange(0, 128)[:, None] + tl.arange(0, 1)[None, :]) < n0), other=1)
    v2 = tl.load(a1 + pid)
    v3 = tl.load(a2 + (pid * 256 + tl.arange(0, 128)[:, None] * 2 + tl.arange(0, 2)[None, :]))
    v4 = v1 + 2147483647
    v5 = tl.maximum(v4, v4)
    v6 = tl.load(a3 + (pid * 256 + tl.arange(0, 128)[:, None] * 2 + tl.arange(0, 2)[None, :]), eviction_policy='evict_last')
    v7 = tl.floor(v6)
    v8 = tl.maximum(v4, v5)
    v9 = tl.fma(v7, v7, v7)
    v10 = v9 % 0.75
    v11 = pid
    v12 = tl.cat(v8, v5, dim=0)
    tl.store(a4 + pid, v2)
    tl.store(a5 + pid * 384 + (tl.arange(0, 128)[:, None] * 3 + tl.arange(0, 2)[None, :]), v3)
    tl.store(a6 + pid * 256 + (tl.arange(0, 128)[:, None] * 2 + tl.arange(0, 2)[None, :]), v10, mask=((tl.arange(0, 128)[:, None]) < 105))
    tl.store(a7 + pid, v11)
    tl.store(a8 + pid * 256 + (tl.arange(0, 256)[:, None] + tl.arange(0, 1)[None, :]), v12)
    tl.store(a9 + pid * 128 + (tl.arange(0, 128)[:, None] + tl.arange(0, 1)[None, :]), v5)
    tl.store(a10 + pid * 256 + (tl.arange(0, 128)[:, None] * 2 + tl.arange(0, 2)[None, :]), v7)

GRID = (4,)
OPTIONS = {'num_warps': 4, 'num_stages': 3, 'enable_fp_fusion': False}
ARGUMENTS = {'a0': Array(dtype='i32', size=513, fill='full', seed=1372077257),
 'n0': 7,
 'a1': Array(dtype='i64', size=4, fill='full', seed=1171263063),
 'a2': Array(dtype='i64', size=1024, fill='full', seed=531896839),
 'a3': Array(dtype='fp32', size=1024, fill='full', seed=2076175633),
 'a4': Array(dtype='i64', size=4, fill='pattern', seed=0),
 'a5': Array(dtype='i64', size=1536, fill='pattern', seed=0),
 'a6': Array(dtype='fp32', size=1024, fill='pattern', seed=0),
 'a7': Array(dtype='i32', size=4, fill='pattern', seed=0),
 'a8': Array(dtype='i32', size=1024, fill='pattern', seed=0),
 'a9': Array(dtype='i32', size=512, fill='pattern', seed=0),
 'a10': Array(dtype='fp32', size=1024, fill='pattern', seed=0)}

