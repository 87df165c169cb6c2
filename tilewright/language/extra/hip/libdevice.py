"""AMD's device libraries under libdevice's names."""

from ..libdevice import functions

globals().update(functions("hip"))
