// What kernels take from here is in cuda.h.
