"""GPU drivers: finding a device, loading a binary, launching."""
