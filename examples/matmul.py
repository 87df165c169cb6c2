"""A matrix product: blocks of two dimensions, tl.dot, and an order of programs that the L2 cache likes.

Each program computes one BM x BN block of C and walks along K. The compiler turns the loop into a pipeline: `num_stages` blocks of A and B
are on their way through shared memory at a time, and tl.dot becomes the matrix instructions of the target.
"""

import device
import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    # Programs that run at the same time share rows of A and columns of B: go down GROUP blocks of rows before the next block of columns.
    program = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = program // (GROUP * blocks_n)
    first = group * GROUP
    rows_in_group = min(blocks_m - first, GROUP)
    block_m = first + program % (GROUP * blocks_n) % rows_in_group
    block_n = program % (GROUP * blocks_n) // rows_in_group

    rows = block_m * BM + tl.arange(0, BM)
    columns = block_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * K + k[None, :]
    b = b_ptr + k[:, None] * N + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inside = k < K - start
        x = tl.load(a, mask=(rows < M)[:, None] & inside[None, :], other=0.0)
        y = tl.load(b, mask=inside[:, None] & (columns < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK
        b += BK * N
    c = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(c, acc.to(tl.float16), mask=(rows < M)[:, None] & (columns < N)[None, :])


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b for float16 matrices, summed in float32."""
    (M, K), N = a.shape, b.shape[1]
    c = device.to_device(np.empty((M, N), np.float16))

    def grid(arguments):
        return (triton.cdiv(M, arguments["BM"]) * triton.cdiv(N, arguments["BN"]),)

    blocks = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8}
    matmul_kernel[grid](device.to_device(a), device.to_device(b), c, M, N, K, **blocks, num_warps=8, num_stages=3)
    return device.to_host(c)


if __name__ == "__main__":
    random = np.random.default_rng(0)
    a = random.standard_normal((300, 200), dtype=np.float32).astype(np.float16)
    b = random.standard_normal((200, 260), dtype=np.float32).astype(np.float16)
    device.report("matmul", matmul(a, b), a.astype(np.float32) @ b.astype(np.float32), 1e-3)
