/* Code that all kernels of a device share, before dot.cl and attend.cl.
 *
 * A work item has LANES adjacent numbers: 1 if each work item is a lane of the hardware, and the
 * width of a vector register on processors, which run one work item after the other. Integers are
 * exact in any order; floats are multiplied and added as written: no contraction, nothing flushed
 * (the host checks both with test vectors). */
#pragma OPENCL FP_CONTRACT OFF

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#if LANES == 1
typedef uint lanes_u;
typedef int lanes_i;
typedef float lanes_f;
#define LOAD_I8(p)       ((int)*(__global const signed char *)(p))
#define LOAD_U8(p)       ((uint) * (p))
#define LOAD_U16(p)      ((uint) * (__global const ushort *)(p))
#define LOAD_U32(p)      (*(__global const uint *)(p))
#define LOAD_F(p)        (*(p))
#define STORE_F(p, v)    (*(p) = (v))
#define AS_I(v)          as_int(v)
#define AS_U(v)          as_uint(v)
#define AS_F(v)          as_float(v)
#define TO_F(v)          convert_float_rte(v)
#define TO_I(v)          ((int)(v))
#define FIRST_LANE(v)    (v)
#else
typedef JOIN(uint, LANES) lanes_u;
typedef JOIN(int, LANES) lanes_i;
typedef JOIN(float, LANES) lanes_f;
#define LOAD_I8(p)                                                                                 \
    JOIN(convert_int, LANES)(JOIN(vload, LANES)(0, (__global const char *)(p)))
#define LOAD_U8(p)       JOIN(convert_uint, LANES)(JOIN(vload, LANES)(0, p))
#define LOAD_U16(p)                                                                                \
    JOIN(convert_uint, LANES)(JOIN(vload, LANES)(0, (__global const ushort *)(p)))
#define LOAD_U32(p)      JOIN(vload, LANES)(0, (__global const uint *)(p))
#define LOAD_F(p)        JOIN(vload, LANES)(0, p)
#define STORE_F(p, v)    JOIN(vstore, LANES)(v, 0, p)
#define AS_I(v)          JOIN(as_int, LANES)(v)
#define AS_U(v)          JOIN(as_uint, LANES)(v)
#define AS_F(v)          JOIN(as_float, LANES)(v)
#define TO_F(v)          JOIN(JOIN(convert_float, LANES), _rte)(v)
#define TO_I(v)          JOIN(convert_int, LANES)(v)
#define FIRST_LANE(v)    ((v).s0)
#endif

#ifndef DEVICE /* CUDA has other words (cuda_library.cu) */
#define DEVICE     inline
#define SHARED     __local
#define BARRIER    barrier(CLK_LOCAL_MEM_FENCE)
#define DOT_KERNEL __kernel
#define UNROLL_8
#endif

/* A finite half, exact: denormals become normal numbers by the product. */
DEVICE lanes_f half_to_float(lanes_u h)
{
    lanes_f v = AS_F((h & 0x7fffu) << 13u) * 0x1p112f;
    return AS_F(AS_U(v) | (h & 0x8000u) << 16u);
}
