"""Lowering of the layout level (`ttgir`) to the LLVM dialect: one file per family of ops, one rule per op."""
