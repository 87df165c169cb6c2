"""`autotune`, `heuristics`, `Config`, timing arithmetic; with a driver that records launches."""

from __future__ import annotations

import pickle

import pytest
from fake_gpu import Tensor, active_gpu

import tilewright.language as tl
from tilewright import knobs
from tilewright.errors import AutotunerError, OutOfResources
from tilewright.runtime.autotuner import Config, autotune, heuristics
from tilewright.runtime.benchmark import quantile, summarize
from tilewright.runtime.jit import jit


def add(x, y, n, B: tl.constexpr):
    pass


CONFIGS = [Config({"B": 32}, num_warps=1), Config({"B": 64}, num_warps=2), Config({"B": 128}, num_warps=4)]


@pytest.fixture
def gpu(monkeypatch):
    yield from active_gpu(monkeypatch)


def bench_that_likes(gpu, size: int):
    """A `do_bench` for which the kernel with B == size is fastest."""

    def do_bench(call, quantiles):
        call()
        used = gpu.compiled[-1][0].constants[(3,)]
        return [abs(used - size) + 1.0] * 3

    return do_bench


def launch(kernel, n=8, dtype="float32"):
    return kernel[lambda meta: (meta["B"],)](Tensor(4096, dtype), Tensor(8192), n)


def test_the_fastest_configuration_is_kept_per_key(gpu):
    kernel = autotune(CONFIGS, key=["n"], do_bench=bench_that_likes(gpu, 64))(jit(add))
    launch(kernel)
    assert kernel.best_config is CONFIGS[1] and gpu.launches[-1]["grid"] == (64, 1, 1) and gpu.launches[-1]["block"] == (64, 1, 1)
    assert set(kernel.configs_timings) == set(CONFIGS) and len(gpu.launches) == 4
    launch(kernel)
    assert len(gpu.launches) == 5
    launch(kernel, n=9)
    assert len(gpu.launches) == 9 and len(kernel.cache) == 2
    launch(kernel, dtype="float16")
    assert len(kernel.cache) == 3


def test_launches_are_generated_for_the_fastest_configuration(gpu):
    kernel = autotune(CONFIGS, key=["n"], do_bench=bench_that_likes(gpu, 64))(jit(add))
    launch(kernel)
    (launcher,) = kernel.fn._launchers.values()
    assert launcher.first[0] in launcher.tables[0] and len(launcher.tables[0]) == 1
    launch(kernel)
    assert launcher.scope["_tw_first"][4] is gpu.launches[-1]["kernel"]


def test_one_configuration_is_not_measured(gpu):
    kernel = autotune(CONFIGS[:1], key=[], do_bench=lambda *_, **__: pytest.fail("measured"))(jit(add))
    launch(kernel)
    assert gpu.launches[-1]["grid"] == (32, 1, 1)


def test_what_does_not_fit_is_never_chosen(gpu):
    def do_bench(call, quantiles):
        call()
        if gpu.compiled[-1][0].constants[(3,)] == 32:
            raise OutOfResources(2, 1, "shared memory")
        return [1.0] * 3

    kernel = autotune(CONFIGS, key=[], do_bench=do_bench)(jit(add))
    launch(kernel)
    assert kernel.best_config is CONFIGS[1] and kernel.configs_timings[CONFIGS[0]] == [float("inf")] * 3


def test_meta_parameters_that_are_tuned_cannot_be_given(gpu):
    kernel = autotune(CONFIGS, key=[], do_bench=bench_that_likes(gpu, 64))(jit(add))
    with pytest.raises(ValueError, match="Conflicting meta-parameters: B. Make sure"):
        kernel[(1,)](Tensor(), Tensor(), 8, B=16)


@pytest.mark.parametrize("what", ["key", "reset_to_zero", "restore_value"])
def test_unknown_names(what):
    with pytest.raises(ValueError, match=f"{what} contains names that are not kernel arguments: .'z'"):
        autotune(CONFIGS, **{"key": [], what: ["z"]})(jit(add))


def test_pruning(gpu):
    prune = {"early_config_prune": lambda configs, args, **_: [c for c in configs if c.kwargs["B"] > args["n"]]}
    kernel = autotune(CONFIGS, key=["n"], prune_configs_by=prune, do_bench=bench_that_likes(gpu, 0))(jit(add))
    launch(kernel, n=40)
    assert kernel.best_config is CONFIGS[1] and len(kernel.configs_timings) == 2
    with pytest.raises(AutotunerError, match="No valid autotuner configs after pruning"):
        launch(kernel, n=1000)


@pytest.mark.parametrize(("top_k", "measured"), [(1, 1), (2, 2), (0.34, 1), (0.7, 2), (0.01, 1)])
def test_performance_model(gpu, top_k, measured):
    prune = {"perf_model": lambda **arguments: -arguments["B"], "top_k": top_k}
    kernel = autotune(CONFIGS, key=[], prune_configs_by=prune, do_bench=bench_that_likes(gpu, 0))(jit(add))
    launch(kernel)
    assert len(kernel.configs_timings) == measured and CONFIGS[2] in kernel.configs_timings


class Counted(Tensor):
    def __init__(self):
        super().__init__()
        self.log = []

    def zero_(self):
        self.log.append("zero")

    def clone(self):
        self.log.append("clone")
        return self

    def copy_(self, other):
        self.log.append("copy")


def test_tensors_are_reset_and_restored(gpu):
    kernel = autotune(CONFIGS[:2], key=[], reset_to_zero=["x"], restore_value=["y"], do_bench=bench_that_likes(gpu, 0))(jit(add))
    x, y = Counted(), Counted()
    kernel[(1,)](x, y, 8)
    assert x.log == ["zero"] * 3 and y.log == ["clone", "copy"] * 2


def test_hooks_of_configurations(gpu):
    seen = []
    config = Config({"B": 32}, pre_hook=lambda arguments: seen.append(arguments["B"]))
    kernel = autotune([config], key=[])(jit(add))
    launch(kernel)
    assert seen == [32]


def test_warmup_compiles_every_configuration(gpu):
    kernel = autotune(CONFIGS, key=[])(jit(add))
    assert len(kernel.warmup(Tensor(), Tensor(), 8, grid=(1,))) == 3
    assert len(gpu.compiled) == 3 and not gpu.launches


def test_timings_are_kept_on_disk(gpu, tmp_path):
    with knobs.cache.scope(), knobs.autotuning.scope():
        knobs.cache.dir, heard = str(tmp_path), []
        knobs.autotuning.listener = lambda **facts: heard.append(facts["cache_hit"])
        for _ in range(2):
            kernel = autotune(CONFIGS, key=["n"], do_bench=bench_that_likes(gpu, 64), cache_results=True)(jit(add))
            launch(kernel)
            assert kernel.best_config == CONFIGS[1]
        assert heard == [False, True] and len(gpu.launches) == 5
        next(tmp_path.rglob("add.autotune.json")).write_text("{")
        launch(autotune(CONFIGS, key=["n"], do_bench=bench_that_likes(gpu, 64), cache_results=True)(jit(add)))
        hooked = [Config({"B": 32}, pre_hook=lambda _: None), *CONFIGS[1:]]
        launch(autotune(hooked, key=["n"], do_bench=bench_that_likes(gpu, 64), cache_results=True)(jit(add)))
        assert heard == [False, True, False, False]


def test_heuristics_see_the_arguments_and_each_other(gpu):
    kernel = heuristics({"n": lambda args: 12, "B": lambda args: args["n"] * 2})(jit(add))
    kernel[(1,)](Tensor(), Tensor())
    assert gpu.compiled[0][0].constants == {(3,): 24} and gpu.launches[0]["values"] == [4096, 4096, 12]


def test_heuristics_and_autotune_stack(gpu):
    inner = heuristics({"n": lambda args: args["B"]})(jit(add))
    kernel = autotune(CONFIGS, key=[], do_bench=bench_that_likes(gpu, 128))(inner)
    kernel[(1,)](Tensor(), Tensor())
    assert gpu.launches[-1]["values"] == [4096, 4096, 128] and kernel.base_fn is inner.fn


def test_config():
    config = Config({"B": 32}, num_warps=8, maxnreg=128)
    assert config.all_kwargs() == {"B": 32, "num_warps": 8, "num_ctas": 1, "num_stages": 3, "maxnreg": 128}
    assert str(config) == "B: 32, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: 128"
    assert config == Config({"B": 32}, num_warps=8, maxnreg=128) != Config({"B": 32})
    assert pickle.loads(pickle.dumps(config)) == config and hash(pickle.loads(pickle.dumps(config))) == hash(config)


def test_deprecated_settings_warn():
    with pytest.warns(DeprecationWarning):
        autotune(CONFIGS, key=[], warmup=1)(jit(add))


def test_quantiles():
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0 and quantile([0.0, 1.0], 0.25) == 0.25
    assert summarize([1.0, 2.0, 9.0], None, "median") == 2.0 and summarize([1.0, 2.0, 9.0], None, "max") == 9.0
    assert summarize([1.0, 2.0, 9.0], (0.0, 1.0), "mean") == [1.0, 9.0] and summarize([1.0, 3.0], (0.5,), "mean") == 2.0
    assert summarize([1.0, 2.0], None, "all") == [1.0, 2.0]
    with pytest.raises(ValueError, match="range"):
        quantile([1.0], 2)
