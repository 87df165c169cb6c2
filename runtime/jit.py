"""`@jit`: a Python function as a kernel: specialization, compilation on first use, launch."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple, TypeVar, overload

from tilewright import knobs
from tilewright.compiler.backends import GPUTarget, make_backend
from tilewright.compiler.driver import compile
from tilewright.compiler.frontend.function import KernelFunction, KernelParam
from tilewright.compiler.kernel import CompiledKernel, evaluate_grid
from tilewright.compiler.source import ASTSource
from tilewright.errors import CompilationError

from .argument_code import ArgumentCode, NotGenerated, structure
from .arrays import MockTensor, TensorWrapper, reinterpret
from .async_compile import FutureKernel, active_mode
from .driver import driver
from .launcher import OPTIONS, FastLauncher, generate_binder, split_options
from .specialize import collect, key_text, specialize_param, specialize_value

__all__ = [
    "JITFunction",
    "JitFunctionInfo",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "TensorWrapper",
    "jit",
    "reinterpret",
    "specialize_impl",
]

T = TypeVar("T")

specialize_impl = specialize_value


class JitFunctionInfo(NamedTuple):
    """What a compile hook is told of the kernel."""

    module: str
    name: str
    jit_function: JITFunction


class KernelInterface:
    """Anything that is launched as `kernel[grid](*arguments, **options)`."""

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.run")

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile without launching. A dtype of torch stands for an aligned tensor of it."""
        return self.run(*map(MockTensor.wrap_dtype, args), grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def launch(*args: Any, **kwargs: Any) -> Any:
            return self.run(*args, grid=grid, warmup=False, **kwargs)

        return launch


class _Cache(defaultdict):
    """What a kernel's launches find compiled; clearing it calls `forget`, since generated launch functions keep kernels too."""

    def __init__(self, forget: Callable[[], None], make: Callable[[], Any] | None = None):
        super().__init__(make)
        self.forget = forget

    def clear(self) -> None:
        super().clear()
        self.forget()


class JITFunction(KernelInterface, KernelFunction):
    """A kernel. `kernel[grid](*arguments, **options)` launches it on the current device and stream and returns the CompiledKernel.

    `device_caches[device]` holds what is compiled for a device, by the text of what it is specialized on.
    """

    def __init__(self, fn: FunctionType, **options: Any):
        super().__init__(fn, **options)
        for param in self.params:
            if param.is_constexpr and (param.do_not_specialize or param.do_not_specialize_on_alignment):
                listed = "do_not_specialize" if param.do_not_specialize else "do_not_specialize_on_alignment"
                text = f"{param.name} marked as constexpr and listed in {listed}: remove it from one"
                raise CompilationError(
                    self.src, self.ast(), text, file_name=self.file_name, first_line=self.def_line, function=self.__name__
                )
        self.device_caches: defaultdict[int, tuple[dict[str, Any], dict, GPUTarget, Any, Callable]]
        self.device_caches = _Cache(self.generate_again, self._device_cache)
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self._lock = threading.RLock()
        self._bind: Callable[..., Any] | None = None
        self._launchers: dict[tuple, FastLauncher] = {}
        self._current: FastLauncher | None = None
        self._fast: Callable[..., Any] = self._first

    # Launching

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return MethodType(self._fast, () if grid is None else grid)  # None cannot be bound; both are refused

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> CompiledKernel | None:
        """Launch, or with `warmup` only compile. Returns None if a compile hook refused to compile."""
        if not warmup:
            return self._fast(grid, *args, **kwargs)
        return self.binder(grid, *args, **kwargs)

    @property
    def binder(self) -> Callable[..., Any]:
        """`(grid, *arguments, **options)`: compile for these arguments."""
        if self._bind is None:
            self._bind = generate_binder(self, self._warm)
        return self._bind

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(*arguments, **options)` before each launch."""
        if not callable(hook):
            raise TypeError(f"a pre-run hook must be a function, not {hook!r}")
        self.pre_run_hooks.append(hook)

    def _unsafe_update_src(self, new_src: str) -> None:
        super()._unsafe_update_src(new_src)
        self.device_caches.clear()

    def generate_again(self) -> None:
        """Have the launch function generated for the next call: it finds the kernel of that one quickest."""
        with self._lock:
            self._launchers.clear()
            self._current, self._fast = None, self._first

    def _first(self, grid: Any, *args: Any, **kwargs: Any) -> Any:
        """The first launch: from then on `_fast` is generated code."""
        if self._fast == self._first:
            self._fast = generate_binder(self, self._miss)
        return self._fast(grid, *args, **kwargs)

    def _miss(self, grid: Any, bound: dict[str, Any], options: dict[str, Any]) -> Any:
        """A launch that the current generated function was not made for: the one for these classes, or the general path."""
        found = self._launchers.get(tuple(map(structure, bound.values())))
        if found is not None and found is not self._current:
            self._current, self._fast = found, found.function
            positional: list[Any] = []
            for param in self.params:
                if not param.is_keyword_only:
                    positional += bound[param.name] if param.is_varargs else (bound[param.name],)
            keywords = {p.name: bound[p.name] for p in self.params if p.is_keyword_only}
            return found.function(grid, *positional, **keywords, **{k: v for k, v in options.items() if v is not None})
        return self.launch(grid, bound, options)

    def launch(self, grid: Any, bound: dict[str, Any], given: dict[str, Any]) -> CompiledKernel | None:
        """The general path: check and specialize every argument, compile if need be, launch, and prepare the fast path."""
        options = split_options(self, bound, given)
        for hook in self.pre_run_hooks:
            hook(*bound.values(), **options)
        device = driver.active.get_current_device()
        kernel, kinds = self._compiled(device, bound, options, warmup=False)
        if kernel is None or isinstance(kernel, FutureKernel):
            return kernel
        size = evaluate_grid(grid, bound, self.__name__)
        run = kernel.run
        stream = driver.active.get_current_stream(device)
        values = list(bound.values())
        preferred = kernel
        if not run.takes(values):
            kernel = self._compiled(device, bound, {**options, "tma": False}, warmup=False)[0]
            if kernel is None or isinstance(kernel, FutureKernel):
                return kernel
            run = kernel.run
        enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
        if enter.calls or leave.calls:
            metadata = kernel.launch_metadata(size, stream, *values)
            run(*size, stream, kernel.function, kernel.packed_metadata, metadata, enter, leave, *values)
        else:
            run(*size, stream, kernel.function, kernel.packed_metadata, None, None, None, *values)
            self._prepare_fast(bound, given, kinds, device, preferred, None if kernel is preferred else kernel)
        return kernel

    def _prepare_fast(
        self,
        bound: dict[str, Any],
        options: dict[str, Any],
        kinds: list[Any],
        device: int,
        kernel: CompiledKernel,
        plain: CompiledKernel | None,
    ) -> None:
        """Generate the launch function for arguments like these, or enter the kernel in the one that there is; and the `plain` kernel that
        takes its place for arguments that TMA cannot access."""
        if not hasattr(driver.active, "launch_function") or not set(OPTIONS).isdisjoint(self.arg_names):
            return
        if getattr(kernel.metadata, "global_scratch_size", 0):
            return  # each launch takes memory
        try:
            code = ArgumentCode(self, bound, kinds)
            hash(tuple(options.values()))
        except (NotGenerated, TypeError):
            return
        classes = tuple(map(structure, bound.values()))
        with self._lock:
            found = self._launchers.get(classes)
            named, stale = options, True
            if found is not None and found.code.lines() == code.lines():
                named = {**dict.fromkeys(found.named), **options}
                # A launcher that knows the key and yet missed was made for captured constants that have been replaced by equal ones.
                stale = len(named) > len(found.named) or (
                    bool(self.used_global_vals) and found.has(found.key(bound, options), device, plain is not None)
                )
            if stale:
                found = self._launchers[classes] = FastLauncher(self, code, named, device, self._miss, driver.active)
            found.add(found.key(bound, options), code.passed, kernel, device, plain)
            self._current, self._fast = found, found.function

    # Compiling

    def _warm(self, grid: Any, bound: dict[str, Any], options: dict[str, Any]) -> CompiledKernel | None:
        device = driver.active.get_current_device()
        return self._compiled(device, bound, split_options(self, bound, options), warmup=True)[0]

    def _device_cache(self) -> tuple[dict[str, Any], dict, GPUTarget, Any, Callable]:
        target = driver.active.get_current_target()
        return _Cache(self.generate_again), {}, target, make_backend(target), self.binder

    def _compiled(
        self, device: int, bound: dict[str, Any], options: dict[str, Any], warmup: bool
    ) -> tuple[CompiledKernel | None, list[Any]]:
        """(kernel for these arguments, types of the arguments); the kernel is None if the compile hook refused."""
        if self.used_global_vals:
            self.check_globals()
        options = dict(options)
        debug = options.pop("debug", None)
        if debug or (debug is None and (self.debug or knobs.runtime.debug)):
            options["debug"] = True
        try:
            pairs = [specialize_param(param, bound[param.name]) for param in self.params]
        except (TypeError, OverflowError):
            self._explain(bound)
            raise
        kernels, _, target, backend, _ = self.device_caches[device]
        key = key_text(pairs, sorted(options.items()))
        kinds = [kind for kind, _ in pairs]
        found = kernels.get(key)
        if found is None:
            mode = active_mode.get()
            if mode is not None:
                arguments = (key, pairs, options, device, target, backend, warmup)
                return mode.submit((self, device, key), lambda: self._compile(*arguments), partial(kernels.__setitem__, key)), kinds
            with self._lock:
                found = kernels.get(key) or self._compile(key, pairs, options, device, target, backend, warmup)
                if found is not None:
                    kernels[key] = found
        return found, kinds

    def _explain(self, bound: dict[str, Any]) -> None:
        """Raise the TypeError or OverflowError of the argument that cannot be specialized, with its name."""
        for param in self.params:
            try:
                specialize_param(param, bound[param.name])
            except (TypeError, OverflowError) as e:
                raise type(e)(f"argument {param.name} of {self.__name__}: {e}") from e

    def _compile(
        self, key: str, pairs: list, options: dict[str, Any], device: int, target: GPUTarget, backend: Any, warmup: bool
    ) -> CompiledKernel | None:
        parsed = backend.parse_options(options)
        signature, constants, attrs = collect(self.arg_names, pairs, backend.parse_attr)
        src = ASTSource(self, signature, constants, attrs)
        hook, after = knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook
        facts = self._hook_facts(key, src, parsed, device, target, warmup) if hook or after else {}
        if hook is not None and hook(**facts):
            return None
        kernel = compile(src, target=target, options=options)
        if after is not None:
            after(**facts)
        return kernel

    def _hook_facts(self, key: str, src: ASTSource, options: Any, device: int, target: GPUTarget, warmup: bool) -> dict[str, Any]:
        """The keyword arguments of the compile hooks."""
        shown = ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion", "launch_cooperative_grid")
        settings = {name: getattr(options, name, None) for name in shown}
        arguments = ", ".join(f"{name}: {kind}" for name, kind in src.signature.items())
        text = f"{self._fn_name}[{', '.join(f'{n}={v}' for n, v in settings.items())}]({arguments})"
        compiled = {
            "key": key,
            "signature": src.signature,
            "device": device,
            "constants": src.constants,
            **settings,
            "extern_libs": options.extern_libs,
            "configs": [src.attrs],
            "specialization_data": specialization_data(self._fn_name, src, options, key, target),
            "is_warmup": warmup,
        }
        return {
            "key": key,
            "repr": text,
            "fn": JitFunctionInfo(self.module, self.__name__, self),
            "compile": compiled,
            "is_manual_warmup": warmup,
            "already_compiled": False,
        }

    def preload(self, data: str) -> CompiledKernel:
        """Compile what a compile hook's `specialization_data` describes, for launches to find. Raises ValueError for another kernel's."""
        facts = json.loads(data)
        if facts["name"] != self._fn_name:
            raise ValueError(f"Specialization data is for {facts['name']} but trying to preload for {self._fn_name}")
        device = driver.active.get_current_device()
        kernels, _, target, _, _ = self.device_caches[device]
        if tuple(facts["target"]) != tuple(target):
            raise ValueError(f"Specialization data is for {tuple(facts['target'])} but trying to preload for {tuple(target)}")
        constants = {tuple(path): value for path, value in facts["constants"]}
        attrs = {tuple(path): value for path, value in facts["attrs"]}
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in facts["options"].items()}
        kernel = compile(ASTSource(self, facts["signature"], constants, attrs), target=target, options=options)
        kernels[facts["key"]] = kernel
        return kernel


def specialization_data(name: str, src: ASTSource, options: Any, key: str, target: GPUTarget) -> str:
    """JSON that `JITFunction.preload` compiles from; constants that JSON cannot hold are kept as text."""
    return json.dumps(
        {
            "name": name,
            "signature": src.signature,
            "constants": [[path, value] for path, value in src.constants.items()],
            "attrs": [[path, value] for path, value in src.attrs.items()],
            "options": {field: getattr(options, field) for field in options.__dataclass_fields__},
            "key": key,
            "target": list(target),
        },
        default=str,
    )


@overload
def jit(fn: T) -> JITFunction: ...


@overload
def jit(
    *,
    version: object = None,
    repr: Callable | None = None,
    launch_metadata: Callable | None = None,
    do_not_specialize: list[int | str] | None = None,
    do_not_specialize_on_alignment: list[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[T], JITFunction]: ...


def jit(
    fn: Any = None,
    *,
    version: object = None,
    repr: Callable | None = None,
    launch_metadata: Callable | None = None,
    do_not_specialize: list[int | str] | None = None,
    do_not_specialize_on_alignment: list[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Any:
    """Make a kernel of a Python function; with TRITON_INTERPRET=1 at decoration, one that the interpreter runs.

    `do_not_specialize` names parameters (or gives their indices) on whose values the kernel is not specialized,
    `do_not_specialize_on_alignment` those whose divisibility by 16 does not count; `noinline` keeps a device function a call;
    `repr` makes the kernel's name from (constants, signature); `launch_metadata(grid, metadata, arguments)` adds to what hooks are told.
    """

    def decorate(function: Any) -> Any:
        if not callable(function):
            raise TypeError(f"@jit takes a Python function, not {function!r}")
        options = {
            "version": version,
            "repr": repr,
            "launch_metadata": launch_metadata,
            "do_not_specialize": do_not_specialize,
            "do_not_specialize_on_alignment": do_not_specialize_on_alignment,
            "debug": debug,
            "noinline": noinline,
        }
        if knobs.runtime.interpret:
            from .interpreter import InterpretedFunction

            return InterpretedFunction(function, **options)
        return JITFunction(function, **options)

    return decorate if fn is None else decorate(fn)
