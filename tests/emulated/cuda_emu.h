#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <vector>
#include <functional>
#include <ucontext.h>
#include <cfenv>
#include <algorithm>
using std::max; using std::min;
#define __device__
#define __global__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __CUDA_EMU__
struct dim3_ { unsigned x, y, z; };
struct int4 { int x,y,z,w; }; struct int2 { int x,y; };
struct __half { uint16_t b; __half(){} __half(float){ } }; struct __nv_bfloat16 { uint16_t b; __nv_bfloat16(){} __nv_bfloat16(float){} };
inline float __half2float(__half){return 0;} inline float __bfloat162float(__nv_bfloat16){return 0;}
// fibers
struct Fiber; 
extern dim3_ gridDim, blockDim;
struct Ctx { dim3_ threadIdx, blockIdx; };
extern thread_local Ctx* cur_;
struct TI { operator dim3_() const; };
#define threadIdx (cur_->threadIdx)
#define blockIdx (cur_->blockIdx)
void yield_();
void syncthreads_();
int syncthreads_or_(int);
inline void __syncthreads(){ syncthreads_(); }
inline int __syncthreads_or(int v){ return syncthreads_or_(v); }
inline void __threadfence(){}
uint64_t warp_exchange(uint64_t v, uint64_t* all); // returns after all 32 lanes gave theirs
inline void __syncwarp(unsigned=~0u){ uint64_t a[32]; warp_exchange(0,a); }
template<class T> inline uint64_t bits_(T v){ uint64_t b=0; memcpy(&b,&v,sizeof v); return b; }
template<class T> inline T from_(uint64_t b){ T v; memcpy(&v,&b,sizeof v); return v; }
template<class T> inline T __shfl_xor_sync(unsigned, T v, int m){ uint64_t a[32]; warp_exchange(bits_(v),a); return from_<T>(a[(threadIdx.x%32)^m]); }
template<class T> inline T __shfl_sync(unsigned, T v, int l){ uint64_t a[32]; warp_exchange(bits_(v),a); return from_<T>(a[l&31]); }
template<class T> inline T __shfl_up_sync(unsigned, T v, int d){ uint64_t a[32]; warp_exchange(bits_(v),a); int l=threadIdx.x%32; return l>=d?from_<T>(a[l-d]):v; }
inline int __reduce_max_sync(unsigned, int v){ uint64_t a[32]; warp_exchange(bits_(v),a); int m=INT32_MIN; for(int i=0;i<32;i++) m=max(m,from_<int>(a[i])); return m; }
inline unsigned __ballot_sync(unsigned, bool p){ uint64_t a[32]; warp_exchange(p,a); unsigned m=0; for(int i=0;i<32;i++) if(a[i]) m|=1u<<i; return m; }
inline bool __any_sync(unsigned m, bool p){ return __ballot_sync(m,p)!=0; }
inline unsigned __activemask(){ return 1u<<(threadIdx.x%32); }
inline unsigned __match_all_sync(unsigned, unsigned, int*same){ *same=0; return 0; }
inline int __ffs(unsigned v){ return __builtin_ffs(v); }
template<class T,class U> inline T atomicAdd(T*p,U v){ return __atomic_fetch_add(p,(T)v,__ATOMIC_SEQ_CST); }
inline int atomicMax(int*p,int v){ int o=*p; if(v>o)*p=v; return o; }
inline int __float_as_int(float f){ return from_<int>(bits_(f)); } inline float __int_as_float(int i){ return from_<float>(bits_(i)); }
inline long long __double_as_longlong(double d){ return from_<long long>(bits_(d)); } inline double __longlong_as_double(long long d){ return from_<double>(bits_(d)); }
template<class T> inline T __ldg(const T*p){ return *p; } inline float __ldcg(const float*p){ return *p; }
inline int __float2int_rd(float x){ if(x!=x) return 0; double f=floor((double)x); return f<=-2147483648.0?INT32_MIN:f>=2147483647.0?INT32_MAX:(int)f; }
inline float __fdividef(float a,float b){ return a/b; }
template<class F> inline float rounded(int mode,F f){ int o=fegetround(); fesetround(mode); volatile float r=f(); fesetround(o); return r; }
inline float __fsub_rd(volatile float a, volatile float b){ return rounded(FE_DOWNWARD,[&]{return a-b;}); }
inline float __fmul_ru(volatile float a, volatile float b){ return rounded(FE_UPWARD,[&]{return a*b;}); }
inline float __double2float_ru(volatile double a){ return rounded(FE_UPWARD,[&]{return (float)a;}); }
inline float emu_ex2(float x){ float r=exp2f(x); return r<1.17549435e-38f?0:r; }
inline float emu_lg2(float x){ return log2f(x); }
inline float emu_maxnan(float a,float b){ return a!=a||b!=b?NAN:(a>b?a:b); }
