"""Generated launch functions: the hot path of `kernel[grid](...)`.

For each kernel, a Python function is generated that has the kernel's own parameters, so that Python binds the arguments. Once a call has
been through the general path (`JITFunction.launch`), the function is generated again for the classes of the arguments seen: it reads each
array's address once, finds the compiled kernel, packs the arguments into a frame and calls the driver. The kernel of the call that the
function was generated for is found by comparing with what it is specialized on, others in a table by that as the key.
Whatever it was not made for (another class, a hook, an integer that does not fit) goes the general way.

    def add_kernel(_grid, x, y, o, n, B, *, num_warps=None, **_options):
        if type(n) is int and type(B) is int and not (enter_hooks or ...):
            p0 = x.data_ptr()
            ...
            pool, grids, function, make, kernel, queue, maps = (
                first
                if not (p0 | p1 | p2 | n) & 15 and x.dtype is float32 and x.get_device() == 0 and ... and B == 1024 and num_warps == 8
                else table[x.dtype, x.get_device(), not p0 & 15, ..., None if n == 1 else not n & 15, B, num_warps, ...]
            )
            pack(memory, 0, p0, p1, p2, n, grids[_grid], stream(0))
            launch(config, function, pointers, None)
            return kernel
        return miss(_grid, {"x": x, ...}, {"num_warps": num_warps, ...})
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import partial
from inspect import Parameter
from typing import Any

from tilewright import knobs
from tilewright.compiler.frontend.function import KernelFunction

from .argument_code import ArgumentCode
from .frames import Packing, address, attributes_of, make_frame, packing
from .grids import Grids, Queue, grids_and_queue
from .tensor_maps import MAX_CACHED, TensorMapError, TensorMaps

#: (free frames, grids, function, maker of a frame, kernel, its `Queue` if it has one, its tensor maps). In a table, the last one of a
#: kernel with tensor maps is a function that gives the entry for the values.
Entry = tuple[list, Grids, Any, Callable[[], tuple], Any, Queue | None, Any]

#: Options that a kernel may have parameters of the name of.
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def generate_binder(fn: KernelFunction, miss: Callable[..., Any]) -> Callable[..., Any]:
    """A function `(grid, *arguments, **options)` that calls `miss(grid, arguments by name, options)`."""
    return _generate(fn, (), [], {"_tw_miss": miss})


def _generate(fn: KernelFunction, named: Iterable[str], fast: list[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """Compile the launch function with the lines `fast` before the general path. Only options that calls give are parameters of it, those
    `named`: Python looks up each that a call does not give. Others are in `_tw_options`."""
    parameters, star = ["_tw_grid"], False
    for param in fn.params:
        default = f"=_tw_default{param.num}" if param.has_default else ""
        if param.has_default:
            scope[f"_tw_default{param.num}"] = _Unset(param.default) if param.name in OPTIONS else param.default
        if param.is_keyword_only and not star:
            parameters.append("*")
            star = True
        star = star or param.kind is Parameter.VAR_POSITIONAL
        parameters.append(("*" if param.is_varargs else "") + param.name + default)
    parameters += [] if star or not named else ["*"]
    parameters += [f"{name}=None" for name in named] + ["**_tw_options"]
    bound = ", ".join(f"{name!r}: {name}" for name in fn.arg_names)
    options = ", ".join([f"{name!r}: {name}" for name in named] + ["**_tw_options"])
    lines = [f"def _tw_launch({', '.join(parameters)}):", *("    " + line for line in fast)]
    lines.append(f"    return _tw_miss(_tw_grid, {{{bound}}}, {{{options}}})")
    _compile(lines, f"<launcher of {fn.__name__}>", scope)
    function = scope["_tw_launch"]
    function.__name__ = fn.__name__
    function.__qualname__ = fn.__qualname__
    return function


def _compile(lines: list[str], name: str, scope: dict[str, Any]) -> None:
    exec(compile("\n".join(lines), name, "exec"), scope)  # noqa: S102


class _Unset:
    """The default of a kernel parameter that has the name of an option, to tell it from a value that was given."""

    def __init__(self, value: Any):
        self.value = value


def split_options(fn: KernelFunction, bound: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options of a call: a parameter of the kernel named `num_warps` also sets the option if it was given. Fills in its default."""
    options = {name: value for name, value in options.items() if value is not None}
    for name in OPTIONS:
        if name in bound:
            if isinstance(bound[name], _Unset):
                bound[name] = bound[name].value
            else:
                options[name] = bound[name]
    return options


class FastLauncher:
    """The launch function of a kernel for arguments like those that `code` was made from, and its table of compiled kernels. The one for
    the call with these arguments and `options` on `device` must be added first."""

    def __init__(self, fn: KernelFunction, code: ArgumentCode, options: dict[str, Any], device: int, miss: Callable[..., Any], driver: Any):
        self.code = code
        self.named = tuple(options)
        self.layout: Packing = packing(code.formats)
        self.tables: dict[int, dict[tuple, tuple]] = {device: {}}
        self.variants: dict[tuple, _Variants] = {}
        self.scope: dict[str, Any] = {}
        self.function = self._build(fn, options, device, miss, driver)
        self.first: tuple[tuple, int] | None = None

    def _build(self, fn: KernelFunction, options: dict[str, Any], device: int, miss: Callable[..., Any], driver: Any) -> Callable[..., Any]:
        scope = self.scope
        scope |= {
            "_tw_type": type,
            "_tw_tuple": tuple,
            "_tw_len": len,
            "_tw_callable": callable,
            "_tw_error": struct.error,
            "_tw_miss": miss,
            "_tw_pack": struct.Struct(self.layout.format).pack_into,
            "_tw_launch_ex": driver.launch_function(),
            "_tw_failed": driver.launch_failed,
            "_tw_hooks": fn.pre_run_hooks,
            "_tw_enter": knobs.runtime.launch_enter_hook.calls,
            "_tw_exit": knobs.runtime.launch_exit_hook.calls,
            **self.code.scope,
        }
        guards = [*self.code.guards, *_captured(fn, scope), "not (_tw_options or _tw_hooks or _tw_enter or _tw_exit)"]
        values = "".join(f"{value}, " for value in self.code.values)
        key = "".join(f"{part}, " for part in [*self.code.key, *self.named])
        parameters = [*fn.arg_names, *self.named]
        describe = [f"def _tw_key({', '.join(parameters)}):", *(f"    {line}" for line in self.code.reads)]
        _compile([*describe, f"    return ({key})"], "<key>", scope)
        self._key = scope["_tw_key"]
        current, stream = driver.device_and_stream(scope, self.tables)
        same = [*(f"{name} == _tw_given_{name}" for name in self.named), *self.code.conditions()] or ["True"]
        scope |= {f"_tw_given_{name}": value for name, value in options.items()}
        if current:
            scope["_tw_first_table"] = self.tables[device]
            same.insert(0, "_tw_table is _tw_first_table")
        mapping = ", ".join(f"{name!r}: {name}" for name in fn.arg_names)
        fast = [
            f"if {' and '.join(guards)}:",
            "    try:",
            *(f"        {line}" for line in self.code.reads),
            *(f"        {line}" for line in current),
            "        _tw_pool, _tw_grids, _tw_function, _tw_make, _tw_kernel, _tw_queue, _tw_maps = (",
            f"            _tw_first if {' and '.join(same)} else _tw_table[({key})]",
            "        )",
            "        if _tw_maps is not None:",
            f"            _tw_pool, _tw_grids, _tw_function, _tw_make, _tw_kernel, _tw_queue, _tw_maps = _tw_maps({values})",
            "        if _tw_type(_tw_grid) is not _tw_tuple:",
            f"            _tw_grid = _tw_tuple(_tw_grid({{{mapping}}}) if _tw_callable(_tw_grid) else _tw_grid)",
            "        try:",
            "            _tw_frame = _tw_pool.pop()",
            "        except IndexError:",
            "            _tw_frame = _tw_make()",
            "        _tw_memory, _tw_config, _tw_pointers = _tw_frame",
            f"        _tw_pack(_tw_memory, 0, {values}_tw_grids[_tw_grid], {stream})",
            "        if _tw_queue is not None:",
            "            _tw_queue(_tw_memory, _tw_grid)",
            "        if _tw_maps is not None:",
            "            _tw_memory[-_tw_len(_tw_maps):] = _tw_maps",
            "    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, _tw_error):",
            "        pass",  # the general path finds out what is wrong, if anything
            "    else:",
            "        _tw_status = _tw_launch_ex(_tw_config, _tw_function, _tw_pointers, None)",
            "        if _tw_status:",
            "            _tw_status = _tw_failed(_tw_status, _tw_kernel, _tw_frame, _tw_grid, _tw_function)",
            "        _tw_pool.append(_tw_frame)",
            "        return _tw_kernel",
        ]
        return _generate(fn, self.named, fast, scope)

    def key(self, bound: dict[str, Any], options: dict[str, Any]) -> tuple:
        """The key that the generated function makes of these arguments and options, which must all be `named`."""
        return self._key(**bound, **{name: options.get(name) for name in self.named})

    def has(self, key: tuple, device: int, plain: bool) -> bool:
        """Whether the generated function finds a kernel under this key: with `plain`, the one without TMA."""
        if key not in self.tables.get(device, ()):
            return False
        variants = self.variants.get((key, device))
        return variants is None or not plain or variants.plain is not None

    def add(self, key: tuple, passed: list[int], kernel: Any, device: int, plain: Any = None) -> None:
        """Enter a loaded kernel that takes the values number `passed`, and, once it is needed, the `plain` one that takes its place for
        arguments that TMA cannot access."""
        table = self.tables.setdefault(device, {})
        if len(table) > MAX_CACHED:  # a constant that never repeats: start over
            table.clear()
            self.variants.clear()
        maps, entry = kernel.run.maps, self._entry(passed, kernel)
        if maps is not None:
            variants = self.variants.get((key, device))
            if variants is None:
                variants = self.variants[key, device] = _Variants(maps, entry)
            if plain is not None:
                variants.plain = self._entry(passed, plain)
            entry = (*entry[:-1], _selector(variants, len(self.code.formats), [passed[number] for number in maps.used]))
        table[key] = entry
        self.first = self.first or (key, device)
        if self.first == (key, device):
            self.scope["_tw_first"] = entry

    def _entry(self, passed: list[int], kernel: Any) -> Entry:
        """What the generated function launches a kernel with; the tensor maps, if it takes any, are left out."""
        metadata, run, maps = kernel.metadata, kernel.run, kernel.run.maps
        count = len(maps.descriptors) if maps is not None else 0
        make = partial(make_frame, self.layout, passed, attributes_of(metadata), count, run.axes, run.queue)
        grids, queue = grids_and_queue(run, self.layout)
        return [], grids, address(kernel.function), make, kernel, queue, None


class _Variants(dict):
    """The entries of a kernel that takes tensor maps, by the values that these depend on: its own with the maps for these, or, where there
    can be none, `plain`. They are made when they are looked up."""

    def __init__(self, maps: TensorMaps, entry: Entry):
        super().__init__()
        self.maps, self.entry = maps, entry
        self.plain: Entry | None = None

    def __missing__(self, key: tuple[int, ...]) -> Entry:
        try:
            found = (*self.entry[:-1], b"".join(self.maps.of_key(key)))
        except TensorMapError:
            if self.plain is None:
                raise KeyError(key) from None
            found = self.plain
        if len(self) >= MAX_CACHED:
            self.clear()
        self[key] = found
        return found


def _captured(fn: KernelFunction, scope: dict[str, Any]) -> list[str]:
    """Checks that the constants which the kernel captures are the objects that they were."""
    checks = []
    for i, ((name, _), (_, holder)) in enumerate(fn.used_global_vals.items()):
        value = holder.get(name) if hasattr(holder, "get") else None
        if value is None:
            continue
        cell = hasattr(value, "cell_contents")
        scope[f"_tw_scope{i}"] = value if cell else holder
        scope[f"_tw_object{i}"] = value.cell_contents if cell else value
        checks.append(f"_tw_scope{i}{'.cell_contents' if cell else f'[{name!r}]'} is _tw_object{i}")
    return checks


def _selector(variants: _Variants, count: int, used: list[int]) -> Callable[..., Entry]:
    """A function of `count` values that looks `variants` up by those of the numbers `used`; it raises KeyError."""
    parameters = ", ".join(f"v{i}" for i in range(count))
    key = "".join(f"v{i}, " for i in used)
    return eval(f"lambda {parameters}: variants[({key})]", {"variants": variants})
