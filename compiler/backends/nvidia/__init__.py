"""NVIDIA GPUs: sm_80 to sm_90, sm_100 and sm_120."""
