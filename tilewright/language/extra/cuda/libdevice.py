"""NVIDIA's libdevice."""

from ..libdevice import functions

globals().update(functions("cuda"))
