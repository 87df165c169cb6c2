"""Random program 140649: the low byte of the bits of a float. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def kernel(a0, n0, a1, n1, a2, a3, n2, a4):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + pid * 128 + (tl.arange(0, 64)[:, None] * 2 + tl.arange(0, 1)[None, :] * 2), mask=tl.broadcast_to((tl.arange(0, 1)[None, :]) < n0, [64, 1]), other=7, cache_modifier='.ca')
    v2 = v1.to(tl.float64)
    v3 = tl.make_tensor_descriptor(a1, [8, 152], [160, 1], [1, 16])
    v4 = v3.load([pid - 2, -4])
    for v5 in range(n1):
        v4 = v4 + v3.load([v5 * 1, -4])
    v6 = tl.where(((tl.arange(0, 64)[:, None]) < n0), v4, v2)
    v7 = tl.where(v6 == v6, v6, 0.0).to(tl.int64, bitcast=True)
    v8 = v7.to(tl.uint8)
    tl.store(a2 + pid * 1024 + (tl.arange(0, 1024)), tl.reshape(v8, [1024]))
    tl.store(a3 + pid * 128 + (tl.arange(0, 64)[:, None] * 2 + tl.arange(0, 1)[None, :] * 2), v1, mask=((tl.arange(0, 64)[:, None] + tl.arange(0, 1)[None, :]) >= n2))
    tl.store(a4 + pid * 4099 + (tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 16)[None, :] * 4), v6, mask=((tl.arange(0, 16)[None, :]) < 59), cache_modifier='.cs')

GRID = (3,)
OPTIONS = {'num_warps': 8, 'num_stages': 2, 'enable_fp_fusion': False, 'num_ctas': 4}
ARGUMENTS = {'a0': Array(dtype='i32', size=384, fill='full', seed=1110274129),
 'n0': 5,
 'a1': Array(dtype='u16', size=1280, fill='special', seed=502757386),
 'n1': 2,
 'a2': Array(dtype='u8', size=3072, fill='pattern', seed=0),
 'a3': Array(dtype='i32', size=384, fill='pattern', seed=0),
 'n2': 16,
 'a4': Array(dtype='fp64', size=12297, fill='pattern', seed=0)}
