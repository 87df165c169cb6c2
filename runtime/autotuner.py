"""`@autotune` and `@heuristics`: choosing a kernel's meta-parameters by measuring, or by a function of the arguments."""

from __future__ import annotations

import builtins
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import knobs
from tilewright.compiler.backends import make_backend
from tilewright.compiler.fingerprint import environment
from tilewright.errors import AutotunerError, CompileTimeAssertionFailure, OutOfResources, PTXASError

from .cache import FileCacheManager, triton_key
from .driver import driver
from .jit import KernelInterface

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")


class Config:
    """One candidate: values of meta-parameters, and launch options. `pre_hook(arguments)` runs before each launch with it."""

    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
    ):
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state.get("kwargs", {}), **{name: state[name] for name in (*_OPTIONS, "pre_hook") if name in state})

    def all_kwargs(self) -> dict[str, Any]:
        """Meta-parameters and the options that are set, as keywords of a launch."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return {**self.kwargs, **{name: value for name, value in options.items() if value is not None}}

    def __str__(self) -> str:
        shown = [f"{name}: {value}" for name, value in self.kwargs.items()]
        shown += [f"{name}: {getattr(self, name)}" for name in ("num_warps", "num_ctas", "num_stages", "maxnreg")]
        return ", ".join(shown)

    def __hash__(self) -> int:
        return hash((*self.all_kwargs().items(), self.pre_hook))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return (*self.all_kwargs().items(), self.pre_hook) == (*other.all_kwargs().items(), other.pre_hook)


def _run_once(call: Callable[[], None], quantiles: tuple[float, ...]) -> list[float]:
    """Stands for a benchmark in the interpreter, where times say nothing: the first configuration that runs is taken."""
    call()
    return [0.0] * len(quantiles)


class Autotuner(KernelInterface):
    """A kernel whose configuration is measured once per key and kept: `cache[key]` is the best Config, `best_config` the last one used."""

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Callable | None = None,
        post_hook: Callable | None = None,
        prune_configs_by: dict[str, Any] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable | None = None,
        cache_results: bool = False,
    ):
        self.fn = fn
        self.base_fn = _innermost(fn)
        self.__name__ = getattr(self.base_fn, "__name__", "kernel")
        self.configs = list(configs) or [Config({}, num_warps=4, num_stages=3, num_ctas=1)]
        self.keys = list(key)
        self.arg_names = list(arg_names)
        self.cache: dict[tuple, Config] = {}
        self.configs_timings: dict[Config, Any] = {}
        self.cache_results = cache_results
        self.best_config: Config | None = None
        self.bench_time = 0.0
        self.nargs: dict[str, Any] | None = None
        self.reset_to_zero = list(reset_to_zero or [])
        self.restore_value = list(restore_value or [])
        for what, names in (("key", self.keys), ("reset_to_zero", self.reset_to_zero), ("restore_value", self.restore_value)):
            unknown = [name for name in names if name not in self.arg_names]
            if unknown:
                raise ValueError(f"{what} contains names that are not kernel arguments: {unknown}; the arguments are {self.arg_names}")
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook = pre_hook or self._prepare
        self.post_hook = post_hook or self._restore
        self.restore_copies: dict[str, Any] = {}
        prune = prune_configs_by or {}
        self.early_config_prune = prune.get("early_config_prune")
        self.perf_model, self.configs_top_k = prune.get("perf_model"), prune.get("top_k", 1.0)
        if not isinstance(self.configs_top_k, int | float):
            raise TypeError(f"top_k must be a number of configs or a fraction of them, not {self.configs_top_k!r}")
        self.num_warmups, self.num_reps, self.use_cuda_graph, self._do_bench = warmup, rep, use_cuda_graph, do_bench
        if warmup is not None or rep is not None or use_cuda_graph:
            warnings.warn("warmup, rep and use_cuda_graph are deprecated: pass do_bench=", DeprecationWarning, stacklevel=3)

    def _prepare(self, kwargs: dict[str, Any], reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            kwargs[name].zero_()
        if not reset_only:
            self.restore_copies = {name: kwargs[name].clone() for name in self.restore_value}

    def _restore(self, kwargs: dict[str, Any], exception: BaseException | None) -> None:
        for name in self.restore_value:
            kwargs[name].copy_(self.restore_copies[name])
        self.restore_copies = {}

    @property
    def do_bench(self) -> Callable[..., Any]:
        """The function that times one configuration: `do_bench(call, quantiles=...)`."""
        if self._do_bench is not None:
            return self._do_bench
        if knobs.runtime.interpret:
            return _run_once
        if self.use_cuda_graph:
            from .benchmark import do_bench_cudagraph

            return lambda call, quantiles: do_bench_cudagraph(call, rep=self.num_reps or 100, quantiles=quantiles)
        benchmark = driver.active.get_benchmarker()
        if self.num_warmups is None and self.num_reps is None:
            return benchmark
        return lambda call, quantiles: benchmark(call, warmup=self.num_warmups or 25, rep=self.num_reps or 100, quantiles=quantiles)

    def _bench(self, args: tuple, config: Config, meta: dict[str, Any]) -> list[float]:
        """Times of a configuration at the quantiles 0.5, 0.2, 0.8; infinite if it cannot be compiled or does not fit."""
        self._check_conflicts(config, meta)
        current = {**meta, **config.all_kwargs()}
        arguments = {**self.nargs, **current}

        def call() -> None:
            if config.pre_hook:
                config.pre_hook(arguments)
            self.pre_hook(arguments)
            try:
                self.fn.run(*args, **current)
            except BaseException as e:
                self.post_hook(arguments, exception=e)
                raise
            self.post_hook(arguments, exception=None)

        if knobs.autotuning.print:
            print(f"Autotuning kernel {self.__name__} with config {config}")
        try:
            return self.do_bench(call, quantiles=(0.5, 0.2, 0.8))
        except (OutOfResources, CompileTimeAssertionFailure, PTXASError) as e:
            if knobs.autotuning.print:
                print(f"Autotuning failed with {e}")
            return [float("inf")] * 3

    @staticmethod
    def _check_conflicts(config: Config, meta: dict[str, Any]) -> None:
        conflicts = sorted(meta.keys() & config.kwargs.keys())
        if conflicts:
            raise ValueError(f"Conflicting meta-parameters: {', '.join(conflicts)}. Make sure that you don't re-define auto-tuned symbols.")

    def _key(self) -> tuple:
        values = [self.nargs[name] for name in self.keys if name in self.nargs]
        dtypes = [str(value.dtype) for value in self.nargs.values() if hasattr(value, "dtype")]
        return (*values, *dtypes)

    def _tune(self, key: tuple, args: tuple, kwargs: dict[str, Any]) -> None:
        configs = self.prune_configs(kwargs)
        start = time.time()
        store = _TimingStore(self.base_fn, key, configs) if self._keeps_timings(configs) else None
        timings = store.load() if store else None
        known = timings is not None
        if timings is None:
            timings = {config: self._bench(args, config, kwargs) for config in configs}
            if store:
                store.save(timings)
        self.bench_time = time.time() - start
        self.cache[key] = builtins.min(timings, key=lambda config: _first(timings[config]))
        self.configs_timings = timings
        if hasattr(self.base_fn, "generate_again"):
            self.base_fn.generate_again()  # for the best, not for the one that was measured first
        self.pre_hook({**self.nargs, **kwargs, **self.cache[key].all_kwargs()}, reset_only=True)
        if knobs.autotuning.print:
            print(
                f"Triton autotuning for function {self.__name__},\nwith key as {key},\nfinished after {self.bench_time:.2f}s,\n"
                f"best config selected: {self.cache[key]};"
            )
        if knobs.autotuning.listener is not None:
            knobs.autotuning.listener(
                fn=self, key=key, best_config=self.cache[key], configs_timings=timings, duration=self.bench_time, cache_hit=known
            )

    def _keeps_timings(self, configs: list[Config]) -> bool:
        """Whether timings are kept on disk: if that is asked for, and no configuration has a hook, which has no identity there."""
        wanted = self.cache_results or knobs.autotuning.cache
        return wanted and not knobs.runtime.interpret and not any(config.pre_hook for config in configs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration for these arguments, measuring all of them the first time."""
        self.nargs = {**dict(zip(self.arg_names, args, strict=False)), **{k: v for k, v in kwargs.items() if k in self.arg_names}}
        if len(self.configs) > 1:
            key = self._key()
            if key not in self.cache:
                self._tune(key, args, kwargs)
            config = self.cache[key]
        else:
            config = self.configs[0]
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **kwargs, **config.all_kwargs()})
        self._check_conflicts(config, kwargs)
        result = self.fn.run(*args, **kwargs, **config.all_kwargs())
        self.nargs = None
        return result

    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]:
        """The configurations that are worth measuring for these arguments. Raises AutotunerError if none is left."""
        configs = self.configs
        if self.early_config_prune:
            configs = list(self.early_config_prune(self.configs, self.nargs, **kwargs))
            if not configs:
                raise AutotunerError("No valid autotuner configs after pruning. `early_config_prune` should return at least one config.")
        if self.perf_model:
            top_k = self.configs_top_k
            if isinstance(top_k, float):
                if top_k > 1.0:
                    raise TypeError("top_k as a float is a fraction of the configs: at most 1.0")
                top_k = max(1, int(len(self.configs) * top_k))
            if len(configs) > top_k:
                estimates = {c: self.perf_model(**self.nargs, **kwargs, **c.all_kwargs()) for c in configs}
                configs = sorted(estimates, key=lambda c: estimates[c])[:top_k]
        return configs

    def warmup(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Compile every configuration that would be measured."""
        self.nargs = {**dict(zip(self.arg_names, args, strict=False)), **{k: v for k, v in kwargs.items() if k in self.arg_names}}
        kernels = [self.fn.warmup(*args, **kwargs, **config.all_kwargs()) for config in self.prune_configs(kwargs)]
        self.nargs = None
        return kernels


class _TimingStore:
    """Timings of the configurations of a kernel for one tuning key, in the disk cache: `<kernel>.autotune.json`."""

    def __init__(self, fn: Any, key: tuple, configs: list[Config]):
        target = driver.active.get_current_target()
        backend = make_backend(target)
        parts = (triton_key(), backend.hash(), fn.cache_key, str(sorted(environment().items())), str(key), *map(str, configs))
        self.manager = FileCacheManager(hashlib.sha256("-".join(parts).encode()).hexdigest())
        self.file = f"{fn.__name__[:150]}.autotune.json"
        self.key, self.configs = key, configs

    def load(self) -> dict[Config, Any] | None:
        """Timings by configuration, None if they are not there or damaged."""
        data = self.manager.read(self.file)
        if data is None:
            return None
        try:
            stored = {Config(**config): timing for config, timing in json.loads(data)["configs_timings"]}
        except (ValueError, KeyError, TypeError):
            return None
        return stored if stored.keys() == set(self.configs) else None

    def save(self, timings: dict[Config, Any]) -> None:
        """Keep the timings, if the cache can be written."""
        listed = [({"kwargs": c.kwargs, **{name: getattr(c, name) for name in _OPTIONS}}, timing) for c, timing in timings.items()]
        self.manager.put(json.dumps({"key": self.key, "configs_timings": listed}, default=str), self.file)


def _first(timing: Any) -> float:
    return timing[0] if isinstance(timing, list | tuple) else timing


def _innermost(fn: Any) -> Any:
    while isinstance(fn, Autotuner | Heuristics):
        fn = fn.fn
    return fn


class Heuristics(KernelInterface):
    """A kernel some of whose meta-parameters are functions of its arguments."""

    def __init__(self, fn: Any, arg_names: Sequence[str], values: dict[str, Callable[[dict[str, Any]], Any]]):
        self.fn = fn
        self.values = values
        self.arg_names = list(arg_names)
        self.__name__ = getattr(_innermost(fn), "__name__", "kernel")

    def _fill(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        known = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        for name, function in self.values.items():
            kwargs[name] = known[name] = function(known)
        return kwargs

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the values filled in."""
        return self.fn.run(*args, **self._fill(args, kwargs))

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Compile with the values filled in."""
        return self.fn.warmup(*args, **self._fill(args, kwargs))


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: dict[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable | None = None,
    post_hook: Callable | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable | None = None,
    cache_results: bool = False,
) -> Callable[[Any], Autotuner]:
    """Measure `configs` whenever the values of the arguments named in `key`, or the dtypes of tensors, are new, and use the fastest.

    `reset_to_zero` and `restore_value` name tensors that are zeroed before, or put back after, each measured run; `prune_configs_by` is a
    dict with `early_config_prune(configs, arguments, **keywords)`, or `perf_model(**arguments)` (estimated ms) and `top_k`.
    """

    def decorate(fn: Any) -> Autotuner:
        return Autotuner(
            fn,
            fn.arg_names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
            cache_results=cache_results,
        )

    return decorate


def heuristics(values: dict[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Compute meta-parameters from the arguments: name -> function of the dict of arguments known so far, in order."""

    def decorate(fn: Any) -> Heuristics:
        return Heuristics(fn, fn.arg_names, values)

    return decorate
