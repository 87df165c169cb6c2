"""What a multiprocessor of NVIDIA's has, the same on every target of `backends.nvidia`."""

#: 32-bit registers: of a multiprocessor, and the most that a thread can address.
REGISTERS = 65536
THREAD_REGISTERS = 255
#: Threads: the most of a multiprocessor (1,536 on sm_86, sm_89 and sm_120), and of a CTA.
THREADS = 2048
CTA_THREADS = 1024
