"""The benchmark suite: cases, how they are compiled and measured, and what is written of them."""
