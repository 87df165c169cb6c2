"""Enum attributes of the tile dialect as Python values.

Builders take the plain string (`tile.load(ptr, cache="cg")`); reading an attribute gives an `EnumAttr` with `.value`.
"""

from mlir import ir

from tilewright.dialects import _library

# ODS class of the attribute -> its mnemonic.
_MNEMONICS = {
    "Tile_CacheAttr": "cache",
    "Tile_EvictAttr": "evict",
    "Tile_RMWAttr": "rmw",
    "Tile_SemAttr": "sem",
    "Tile_ScopeAttr": "scope",
    "Tile_RoundingAttr": "rounding",
    "Tile_PaddingAttr": "padding",
    "Tile_PrecisionAttr": "precision",
}

_cache: dict[tuple[str, str], ir.Attribute] = {}
_values: dict[ir.Attribute, str] = {}


def enum_attr(mnemonic: str, value: str) -> ir.Attribute:
    """The enum attribute `#tile<mnemonic value>`. Raises ValueError where the enum has no such value."""
    attr = _cache.get((mnemonic, value))
    if attr is None:
        pointer = _library.library().tilewrightEnumAttr(_library.context_address(), mnemonic.encode(), value.encode())
        if not pointer:
            raise ValueError(f"'{value}' is no value of the enum '{mnemonic}'")
        attr = _cache[mnemonic, value] = _library.attribute_at(pointer)
        _values[attr] = value
    return attr


def enum_value(attr: ir.Attribute | None, default: str | None = None) -> str | None:
    """The value of an enum attribute as a string; `default` where the attribute is absent."""
    if attr is None:
        return default
    value = _values.get(attr)
    if value is None:
        value = _values[attr] = str(attr).rstrip(">").rsplit(" ", 1)[1]
    return value


def _register(ods_class: str, mnemonic: str) -> None:
    def build(value: str, context: ir.Context | None = None) -> ir.Attribute:
        return enum_attr(mnemonic, value)

    ir.register_attribute_builder(ods_class)(build)


for _ods_class, _mnemonic in _MNEMONICS.items():
    _register(_ods_class, _mnemonic)
