"""The active driver: `driver.active`, chosen when first used."""

from __future__ import annotations

import importlib

from tilewright import knobs

from .drivers.base import DriverBase

#: backend -> "module:class"
DRIVERS: dict[str, str] = {"cuda": "tilewright.runtime.drivers.cuda:CudaDriver"}

_ALIASES = {"nvidia": "cuda"}


def _driver_class(name: str) -> type[DriverBase]:
    module, _, attribute = DRIVERS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _find_driver() -> DriverBase:
    chosen = knobs.runtime.default_backend
    if chosen:
        name = _ALIASES.get(chosen, chosen)
        if name not in DRIVERS:
            raise RuntimeError(f"TRITON_DEFAULT_BACKEND={chosen} is no backend; there are {', '.join(DRIVERS)}")
        return _driver_class(name)()
    active = [cls for name in DRIVERS if (cls := _driver_class(name)).is_active()]
    if len(active) != 1:
        missing = "no GPU or no driver was found; pass target= to compile without one, or set TRITON_INTERPRET=1"
        advice = "set TRITON_DEFAULT_BACKEND" if active else missing
        raise RuntimeError(f"{len(active)} active drivers ({[cls.__name__ for cls in active]}). There should only be one: {advice}")
    return active[0]()


class DriverConfig:
    """Holds the driver in use; `set_active` replaces it (for tests and other kinds of GPUs), `reset_active` undoes that."""

    def __init__(self) -> None:
        self._default: DriverBase | None = None
        self._active: DriverBase | None = None

    @property
    def default(self) -> DriverBase:
        """The driver of the GPUs of this machine; raises RuntimeError if there is none or more than one kind."""
        if self._default is None:
            self._default = _find_driver()
        return self._default

    @property
    def active(self) -> DriverBase:
        """The driver in use."""
        return self._active if self._active is not None else self.default

    def set_active(self, driver: DriverBase) -> None:
        self._active = driver

    def reset_active(self) -> None:
        self._active = None


driver = DriverConfig()


def __getattr__(name: str) -> object:
    """`runtime.driver` is this module or the object above, depending on how it was imported: both offer the same."""
    if name in ("active", "default", "set_active", "reset_active"):
        return getattr(driver, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
