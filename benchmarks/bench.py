"""Runs the benchmark kernels on the GPU under TW_IMPL; prints one table. Usage: bench.py [group ...]"""

import json
import os
import sys
import time

import torch
from kernels import (
    IMPL,
    add_kernel,
    attn_kernel,
    attn_tma_kernel,
    layernorm_kernel,
    matmul_kernel,
    matmul_tma_kernel,
    softmax_kernel,
    triton,
)

dev = "cuda"
OUT = {}


def alloc(size, align, stream):
    return torch.empty(size, dtype=torch.int8, device=dev)


try:
    triton.set_allocator(alloc)
except Exception as e:
    print("set_allocator:", e)


def bench(fn, n=None, flush=True):
    """median ms, L2 flushed between runs, cuda events"""
    fn()
    torch.cuda.synchronize()
    cache = torch.empty(128 * 1024 * 1024, dtype=torch.int8, device=dev)
    s = torch.cuda.Event(enable_timing=True)
    e = torch.cuda.Event(enable_timing=True)
    s.record()
    [fn() for _ in range(5)]
    e.record()
    torch.cuda.synchronize()
    est = s.elapsed_time(e) / 5
    n = n or max(10, min(200, int(150 / max(est, 1e-3))))
    for _ in range(max(3, int(40 / max(est, 1e-3))) if est < 10 else 3):
        fn()
    ev = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(n)]
    for a, b in ev:
        if flush:
            cache.zero_()
        a.record()
        fn()
        b.record()
    torch.cuda.synchronize()
    t = sorted(a.elapsed_time(b) for a, b in ev)
    return t[len(t) // 2]


def rec(name, ms, unit, val, extra=""):
    OUT[name] = {"ms": ms, unit: val, "extra": extra}
    print(f"{name:46s} {ms * 1e3:10.1f} us {val:9.1f} {unit} {extra}", flush=True)


def err(o, r):
    o, r = o.double(), r.double()
    return ((o - r).norm() / r.norm()).item()


def g_mem():
    for n in (1 << 24, 1 << 28):
        x = torch.randn(n, device=dev)
        y = torch.randn(n, device=dev)
        o = torch.full_like(x, float("nan"))
        f = lambda: add_kernel[(triton.cdiv(n, 1024),)](x, y, o, n, B=1024)
        f()
        assert torch.equal(o, x + y)
        ms = bench(f)
        rec(f"add fp32 n=2^{n.bit_length() - 1} {IMPL}", ms, "GB/s", 12 * n / ms / 1e6)
        ms = bench(lambda: torch.add(x, y, out=o))
        rec(f"add fp32 n=2^{n.bit_length() - 1} torch", ms, "GB/s", 12 * n / ms / 1e6)
    for M, N in ((8192, 1024), (8192, 4096), (8192, 8192), (4096, 16384), (4096, 12000)):
        x = torch.randn(M, N, device=dev, dtype=torch.bfloat16)
        o = torch.empty_like(x)
        B = triton.next_power_of_2(N)
        nw = 4 if B <= 2048 else 8 if B <= 8192 else 16
        f = lambda: softmax_kernel[(M,)](o, x, N, N, N, B=B, num_warps=nw)
        f()
        e = err(o, torch.softmax(x.float(), 1))
        ms = bench(f)
        rec(f"softmax bf16 {M}x{N} {IMPL}", ms, "GB/s", 4 * M * N / ms / 1e6, f"err={e:.1e}")
        ms = bench(lambda: torch.softmax(x, 1))
        rec(f"softmax bf16 {M}x{N} torch", ms, "GB/s", 4 * M * N / ms / 1e6)
        w = torch.randn(N, device=dev)
        b = torch.randn(N, device=dev)
        f = lambda: layernorm_kernel[(M,)](x, o, w, b, N, 1e-5, B=B, num_warps=nw)
        f()
        e = err(o, torch.nn.functional.layer_norm(x.float(), (N,), w, b))
        ms = bench(f)
        rec(f"layernorm bf16 {M}x{N} {IMPL}", ms, "GB/s", 4 * M * N / ms / 1e6, f"err={e:.1e}")


def best(cfgs, mk):
    res = []
    for c in cfgs:
        try:
            f, chk = mk(c)
            f()
            e = chk()
            if not e < 2e-2:
                print("   wrong", c, e)
                continue
            res.append((bench(f, n=15), c, e))
        except Exception as ex:
            print("   failed", c, type(ex).__name__, str(ex)[:160].replace("\n", " "))
    return min(res, key=lambda r: r[0]) if res else None


def g_matmul(dt=torch.bfloat16, sizes=((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (8192, 8192, 1024), (512, 8192, 8192))):
    for M, N, K in sizes:
        a = torch.randn(M, K, device=dev, dtype=dt)
        b = torch.randn(K, N, device=dev, dtype=dt)
        bt = b.t().contiguous()
        c = torch.empty(M, N, device=dev, dtype=dt)
        ref = (a.float() @ b.float()) if M * N * K < 1e12 else (a @ b).float()
        fl = 2 * M * N * K

        def mk(cf):
            BM, BN, BK, nw, ns = cf
            g = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
            c.fill_(float("nan"))
            return (lambda: matmul_kernel[g](a, b, c, M, N, K, K, 1, N, 1, N, 1, BM=BM, BN=BN, BK=BK, G=8, num_warps=nw, num_stages=ns)), (
                lambda: err(c, ref)
            )

        r = best(
            [
                (128, 256, 64, 8, 3),
                (128, 256, 64, 8, 4),
                (128, 128, 64, 4, 4),
                (128, 128, 64, 8, 4),
                (256, 128, 64, 8, 3),
                (64, 256, 64, 4, 4),
            ],
            mk,
        )
        if r:
            rec(f"matmul {M}x{N}x{K} {IMPL} ptr", r[0], "TFLOP/s", fl / r[0] / 1e9, f"{r[1]} err={r[2]:.1e}")

        def mk2(cf):
            BM, BN, BK, nw, ns, ws = cf
            ns_m = torch.cuda.get_device_properties(0).multi_processor_count
            c.fill_(float("nan"))
            return (
                lambda: matmul_tma_kernel[(min(ns_m, triton.cdiv(M, BM) * triton.cdiv(N, BN)),)](
                    a, bt, c, M, N, K, BM=BM, BN=BN, BK=BK, G=8, NSM=ns_m, WS=ws, num_warps=nw, num_stages=ns
                )
            ), (lambda: err(c, ref))

        r = best(
            [
                (128, 256, 64, 8, 3, False),
                (128, 256, 64, 8, 4, False),
                (128, 128, 64, 4, 4, False),
                (128, 256, 64, 8, 3, True),
                (128, 128, 128, 8, 3, False),
            ],
            mk2,
        )
        if r:
            rec(f"matmul {M}x{N}x{K} {IMPL} tma", r[0], "TFLOP/s", fl / r[0] / 1e9, f"{r[1]} err={r[2]:.1e}")
        ms = bench(lambda: torch.matmul(a, b, out=c))
        rec(f"matmul {M}x{N}x{K} cublas", ms, "TFLOP/s", fl / ms / 1e9)
        ms = bench(lambda: torch.matmul(a, bt.t(), out=c))
        rec(f"matmul {M}x{N}x{K} cublas nt", ms, "TFLOP/s", fl / ms / 1e9)


def g_attn():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for D, S, causal in ((128, 8192, False), (128, 8192, True), (64, 8192, False), (64, 8192, True), (128, 2048, False)):
        Z, H = (2, 16) if S == 8192 else (8, 16)
        q, k, v = (torch.randn(Z, H, S, D, device=dev, dtype=torch.bfloat16) for _ in range(3))
        o = torch.empty_like(q)
        sm = D**-0.5
        fl = 4 * Z * H * S * S * D * (0.5 if causal else 1)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            ref = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal).float()
        for kind, kern in (("ptr", attn_kernel), ("tma", attn_tma_kernel)):

            def mk(cf):
                BM, BN, nw, ns, ws = cf
                o.fill_(float("nan"))
                g = (S // BM, Z * H)
                if kind == "ptr":
                    return (lambda: kern[g](q, k, v, o, sm, H, S, D=D, BM=BM, BN=BN, CAUSAL=causal, num_warps=nw, num_stages=ns)), (
                        lambda: err(o, ref)
                    )
                return (lambda: kern[g](q, k, v, o, sm, Z, H, S, D=D, BM=BM, BN=BN, CAUSAL=causal, WS=ws, num_warps=nw, num_stages=ns)), (
                    lambda: err(o, ref)
                )

            cf = [(128, 128, 8, 2, False), (128, 64, 8, 3, False), (128, 64, 4, 3, False), (64, 64, 4, 3, False), (128, 128, 8, 3, False)]
            if kind == "tma":
                cf += [(128, 128, 8, 2, True)]
            r = best(cf, mk)
            if r:
                rec(
                    f"attn fwd D{D} S{S} {'causal' if causal else 'full'} {IMPL} {kind}",
                    r[0],
                    "TFLOP/s",
                    fl / r[0] / 1e9,
                    f"{r[1]} err={r[2]:.1e}",
                )
        for nm, be in (("flash2", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
            try:
                with sdpa_kernel(be):
                    ms = bench(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), n=15)
                rec(f"attn fwd D{D} S{S} {'causal' if causal else 'full'} {nm}", ms, "TFLOP/s", fl / ms / 1e9)
            except Exception as ex:
                print("   ", nm, str(ex)[:100])


def g_fp8():
    M = N = K = 8192
    a = torch.randn(M, K, device=dev).to(torch.float8_e4m3fn)
    bt = torch.randn(N, K, device=dev).to(torch.float8_e4m3fn)
    c = torch.empty(M, N, device=dev, dtype=torch.bfloat16)
    fl = 2 * M * N * K
    ref = a.float() @ bt.float().t()

    def mk2(cf):
        BM, BN, BK, nw, ns = cf
        c.fill_(float("nan"))
        return (
            lambda: matmul_tma_kernel[(132,)](a, bt, c, M, N, K, BM=BM, BN=BN, BK=BK, G=8, NSM=132, WS=False, num_warps=nw, num_stages=ns)
        ), (lambda: err(c, ref))

    r = best([(128, 256, 128, 8, 3), (128, 128, 128, 8, 4), (128, 256, 128, 8, 4)], mk2)
    if r:
        rec(f"matmul fp8 {M} {IMPL} tma", r[0], "TFLOP/s", fl / r[0] / 1e9, f"{r[1]} err={r[2]:.1e}")
    one = torch.ones((), device=dev)
    ms = bench(lambda: torch._scaled_mm(a, bt.t(), one, one, out_dtype=torch.bfloat16))
    rec(f"matmul fp8 {M} cublas", ms, "TFLOP/s", fl / ms / 1e9)


def g_host():
    n = 1024
    x = torch.randn(n, device=dev)
    y = torch.randn(n, device=dev)
    o = torch.empty_like(x)
    a = torch.randn(512, 512, device=dev, dtype=torch.bfloat16)
    b = torch.randn(512, 512, device=dev, dtype=torch.bfloat16)
    c = torch.empty_like(a)
    q = torch.randn(1, 1, 512, 128, device=dev, dtype=torch.bfloat16)
    oq = torch.empty_like(q)
    cases = {
        "add": lambda i: add_kernel[(1,)](x, y, o, n, B=1024 << i),
        "softmax": lambda i: softmax_kernel[(512,)](c, a, 512, 512, 512, B=512 << i),
        "matmul": lambda i: matmul_kernel[(16,)](
            a, b, c, 512, 512, 512, 512, 1, 512, 1, 512, 1, BM=128, BN=128, BK=64, G=8 + i, num_warps=8, num_stages=3
        ),
        "attn": lambda i: attn_kernel[(4, 1)](q, q, q, oq, 1.0, 1, 512, D=128, BM=128, BN=64 << i, CAUSAL=True, num_warps=8, num_stages=2),
    }
    for k, f in cases.items():
        ts = []
        for i in range(2):
            t = time.perf_counter()
            f(i)
            torch.cuda.synchronize()
            ts.append((time.perf_counter() - t) * 1e3)
        OUT[f"compile {k}"] = ts
        print(f"compile {k:10s} {IMPL} ms first={ts[0]:.1f} second-variant={ts[1]:.1f}", flush=True)
    for nm, f in (
        ("add(5 args)", lambda: add_kernel[(1,)](x, y, o, n, B=1024)),
        (
            "matmul(16 args)",
            lambda: matmul_kernel[(16,)](
                a, b, c, 512, 512, 512, 512, 1, 512, 1, 512, 1, BM=128, BN=128, BK=64, G=8, num_warps=8, num_stages=3
            ),
        ),
    ):
        for _ in range(200):
            f()
        torch.cuda.synchronize()
        best_ = 1e9
        for _ in range(20):
            t = time.perf_counter()
            for _ in range(200):
                f()
            best_ = min(best_, (time.perf_counter() - t) / 200 * 1e6)
            torch.cuda.synchronize()
        OUT[f"launch {nm}"] = best_
        print(f"launch {nm} {IMPL}: {best_:.2f} us host", flush=True)


if __name__ == "__main__":
    gs = sys.argv[1:] or ["host", "mem", "matmul", "attn", "fp8"]
    print(IMPL, getattr(triton, "__version__", "?"), torch.__version__, torch.cuda.get_device_name())
    for g in gs:
        try:
            globals()["g_" + g]()
        except Exception:
            import traceback

            traceback.print_exc()
    if os.environ.get("OUT"):
        json.dump(OUT, open(os.environ["OUT"] + f"/bench_{IMPL}.json", "w"), indent=1)
