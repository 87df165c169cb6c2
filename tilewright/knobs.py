"""Settings of the process, each backed by an environment variable: `knobs.cache.dir`, `knobs.runtime.debug`, ...

Reading a knob gives the value assigned in Python, else what the environment says at that moment, else the default. Assigning a knob
overrides the environment; assigning `knobs.env` (or deleting the knob) returns to it. A `TILEWRIGHT_X` variable wins over `TRITON_X`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_TRUE = ("1", "true", "on", "yes", "y")

#: Assign this to a knob to return it to its environment variable.
env = object()


def getenv(name: str, default: str | None = None) -> str | None:
    """The variable `TRITON_X` (or any other), with `TILEWRIGHT_X` in its place if that is set; an empty value counts as unset."""
    if name.startswith("TRITON_") and (value := os.environ.get("TILEWRIGHT_" + name[len("TRITON_") :])):
        return value
    return os.environ.get(name) or default


def _bool(text: str) -> bool:
    return text.strip().lower() in _TRUE


class Knob:
    """One setting: its environment variable, how the text converts, and the default (a value, or a function of the group)."""

    def __init__(self, variable: str | None, default: Any = None, convert: Callable[[str], Any] = str):
        self.variable, self.default, self.convert = variable, default, convert

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, group: Group | None, owner: type) -> Any:
        if group is None:
            return self
        if self.name in group._overrides:
            return group._overrides[self.name]
        text = getenv(self.variable) if self.variable else None
        if text is not None:
            return self.convert(text)
        return self.default(group) if callable(self.default) else self.default

    def __set__(self, group: Group, value: Any) -> None:
        if value is env:
            group._overrides.pop(self.name, None)
        else:
            group._overrides[self.name] = value

    def __delete__(self, group: Group) -> None:
        group._overrides.pop(self.name, None)


class Group:
    """A group of knobs; `scope()` undoes at its end every assignment made inside."""

    def __init__(self) -> None:
        self._overrides: dict[str, Any] = {}

    @property
    def knobs(self) -> dict[str, Any]:
        """Name -> current value."""
        return {name: getattr(self, name) for cls in type(self).__mro__ for name, knob in vars(cls).items() if isinstance(knob, Knob)}

    def reset(self) -> Group:
        """Return every knob to its environment variable."""
        self._overrides.clear()
        return self

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Undo at the end of the `with` block what it assigned."""
        saved = dict(self._overrides)
        try:
            yield
        finally:
            self._overrides.clear()
            self._overrides.update(saved)


class HookChain:
    """Functions that are all called with the same arguments, in order of addition (`reverse`: in the opposite order)."""

    def __init__(self, reverse: bool = False):
        self.calls: list[Callable[..., Any]] = []
        self.reverse = reverse

    def add(self, function: Callable[..., Any]) -> None:
        """Add `function` unless it is there."""
        if function not in self.calls:
            self.calls.append(function)

    def remove(self, function: Callable[..., Any]) -> None:
        """Remove `function` if it is there."""
        if function in self.calls:
            self.calls.remove(function)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for function in reversed(self.calls) if self.reverse else self.calls:
            function(*args, **kwargs)


class HookKnob:
    """A knob that holds a HookChain for good: assigning a function replaces what the chain calls, None empties it."""

    def __init__(self, reverse: bool = False):
        self.reverse = reverse

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_chain_" + name

    def __get__(self, group: Group | None, owner: type) -> Any:
        if group is None:
            return self
        chain = group.__dict__.get(self.name)
        if chain is None:
            chain = group.__dict__[self.name] = HookChain(self.reverse)
        return chain

    def __set__(self, group: Group, value: Any) -> None:
        chain = self.__get__(group, type(group))
        chain.calls[:] = value.calls if isinstance(value, HookChain) else [] if value is None or value is env else [value]


def _cache_path(name: str) -> Callable[[Group], str]:
    return lambda group: os.path.join(group.home_dir, ".tilewright", name)


class CacheKnobs(Group):
    home_dir = Knob("TRITON_HOME", lambda _: os.path.expanduser("~"))
    dir = Knob("TRITON_CACHE_DIR", _cache_path("cache"))
    dump_dir = Knob("TRITON_DUMP_DIR", _cache_path("dump"))
    override_dir = Knob("TRITON_OVERRIDE_DIR", _cache_path("override"))


class CompilationKnobs(Group):
    always_compile = Knob("TRITON_ALWAYS_COMPILE", False, _bool)
    disable_line_info = Knob("TRITON_DISABLE_LINE_INFO", False, _bool)
    front_end_debugging = Knob("TRITON_FRONT_END_DEBUGGING", False, _bool)
    allow_non_constexpr_globals = Knob("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", False, _bool)
    verify = Knob("TILEWRIGHT_VERIFY", False, _bool)
    listener = Knob(None)


class AutotuningKnobs(Group):
    cache = Knob("TRITON_CACHE_AUTOTUNING", False, _bool)
    print = Knob("TRITON_PRINT_AUTOTUNING", False, _bool)
    listener = Knob(None)


class LanguageKnobs(Group):
    fp32_default = Knob("TRITON_F32_DEFAULT")
    default_fp_fusion = Knob("TRITON_DEFAULT_FP_FUSION", True, _bool)


class NvidiaKnobs(Group):
    ptxas = Knob("TRITON_PTXAS_PATH")
    nvdisasm = Knob("TRITON_NVDISASM_PATH")
    disable_ptxas_opt = Knob("DISABLE_PTXAS_OPT", False, _bool)
    ptxas_options = Knob("PTXAS_OPTIONS")
    libdevice_path = Knob("TRITON_LIBDEVICE_PATH")
    libcuda_path = Knob("TRITON_LIBCUDA_PATH")


class RuntimeKnobs(Group):
    interpret = Knob("TRITON_INTERPRET", False, _bool)
    interpret_check = Knob("TILEWRIGHT_INTERPRET_CHECK", "")
    debug = Knob("TRITON_DEBUG", False, _bool)
    override_arch = Knob("TRITON_OVERRIDE_ARCH")
    default_backend = Knob("TRITON_DEFAULT_BACKEND")
    launch_enter_hook = HookKnob()
    launch_exit_hook = HookKnob(reverse=True)
    kernel_load_start_hook = HookKnob()
    kernel_load_end_hook = HookKnob(reverse=True)
    jit_cache_hook = Knob(None)
    jit_post_compile_hook = Knob(None)


cache = CacheKnobs()
compilation = CompilationKnobs()
autotuning = AutotuningKnobs()
language = LanguageKnobs()
nvidia = NvidiaKnobs()
runtime = RuntimeKnobs()
