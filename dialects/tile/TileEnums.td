//===- TileEnums.td - Enumerations of the tile dialect ---------------------===//

#ifndef TILEWRIGHT_TILE_ENUMS_TD
#define TILEWRIGHT_TILE_ENUMS_TD

include "tile/TileBase.td"

class Tile_I32Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_CacheEnum : Tile_I32Enum<"Cache", "cache operator of a load or store", [
  I32EnumAttrCase<"CA", 0, "ca">, I32EnumAttrCase<"CG", 1, "cg">, I32EnumAttrCase<"CS", 2, "cs">,
  I32EnumAttrCase<"CV", 3, "cv">, I32EnumAttrCase<"WB", 4, "wb">, I32EnumAttrCase<"WT", 5, "wt">]>;
def Tile_CacheAttr : EnumAttr<Tile_Dialect, Tile_CacheEnum, "cache">;

def Tile_EvictEnum : Tile_I32Enum<"Evict", "eviction priority of a cached line", [
  I32EnumAttrCase<"Normal", 0, "evict_normal">, I32EnumAttrCase<"First", 1, "evict_first">,
  I32EnumAttrCase<"Last", 2, "evict_last">]>;
def Tile_EvictAttr : EnumAttr<Tile_Dialect, Tile_EvictEnum, "evict">;

def Tile_RMWEnum : Tile_I32Enum<"RMW", "read-modify-write operation", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"FAdd", 1, "fadd">, I32EnumAttrCase<"Max", 2, "max">,
  I32EnumAttrCase<"Min", 3, "min">, I32EnumAttrCase<"UMax", 4, "umax">, I32EnumAttrCase<"UMin", 5, "umin">,
  I32EnumAttrCase<"And", 6, "and">, I32EnumAttrCase<"Or", 7, "or">, I32EnumAttrCase<"Xor", 8, "xor">,
  I32EnumAttrCase<"Xchg", 9, "xchg">]>;
def Tile_RMWAttr : EnumAttr<Tile_Dialect, Tile_RMWEnum, "rmw">;

def Tile_SemEnum : Tile_I32Enum<"Sem", "memory ordering of an atomic", [
  I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
  I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcqRel", 3, "acq_rel">]>;
def Tile_SemAttr : EnumAttr<Tile_Dialect, Tile_SemEnum, "sem">;

def Tile_ScopeEnum : Tile_I32Enum<"Scope", "threads that an atomic's ordering holds for", [
  I32EnumAttrCase<"CTA", 0, "cta">, I32EnumAttrCase<"GPU", 1, "gpu">, I32EnumAttrCase<"SYS", 2, "sys">]>;
def Tile_ScopeAttr : EnumAttr<Tile_Dialect, Tile_ScopeEnum, "scope">;

def Tile_RoundingEnum : Tile_I32Enum<"Rounding", "rounding of a narrowing conversion", [
  I32EnumAttrCase<"RTNE", 0, "rtne">, I32EnumAttrCase<"RTZ", 1, "rtz">]>;
def Tile_RoundingAttr : EnumAttr<Tile_Dialect, Tile_RoundingEnum, "rounding">;

def Tile_PaddingEnum : Tile_I32Enum<"Padding", "value of elements outside a described tensor", [
  I32EnumAttrCase<"Zero", 0, "zero">, I32EnumAttrCase<"NaN", 1, "nan">]>;
def Tile_PaddingAttr : EnumAttr<Tile_Dialect, Tile_PaddingEnum, "padding">;

def Tile_PrecisionEnum : Tile_I32Enum<"Precision", "how f32 operands of a matrix product are multiplied", [
  I32EnumAttrCase<"IEEE", 0, "ieee">, I32EnumAttrCase<"TF32", 1, "tf32">, I32EnumAttrCase<"TF32x3", 2, "tf32x3">,
  I32EnumAttrCase<"BF16x3", 3, "bf16x3">, I32EnumAttrCase<"BF16x6", 4, "bf16x6">]>;
def Tile_PrecisionAttr : EnumAttr<Tile_Dialect, Tile_PrecisionEnum, "precision">;

#endif // TILEWRIGHT_TILE_ENUMS_TD
