"""Random kernels in the Triton language: making them, running them in two ways, comparing, and making failing ones small."""
