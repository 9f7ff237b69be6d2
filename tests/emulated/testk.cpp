#include "cuda_emu.h"
#define __shared__ static thread_local
#define T_logits float
#define T_sampled_noise double
#define NUM_WARPS 8
#ifndef DIVISIBLE_BY_16
#define DIVISIBLE_BY_16 true
#endif
#define USE_FP64_GUMBEL true
#include KERNEL
#include <random>
void launch_(dim3_ grid, unsigned threads, std::function<void()> f);
int main(int argc,char**argv){
  int rows_total=atoi(argv[1]); unsigned seed=atoi(argv[2]);
  std::mt19937_64 g(seed);
  for(int it=0; it<rows_total; it++){
    int V = (int[]){4096, 20000, 40000, 33333/4*4, 1024*33}[g()%5]; int parts = 1+g()%5; int rows=1+g()%2;
    std::vector<float> logits((size_t)rows*V); std::vector<float> T(rows),P(rows),M(rows); std::vector<int> K(rows); std::vector<int64_t> S(rows),Pos(rows);
    for(int r=0;r<rows;r++){ std::normal_distribution<float> nd(0, (float[]){1,3,0.1f,8}[g()%4]); int kind=g()%8;
      for(int i=0;i<V;i++){ float x=nd(g); if(kind==1) x=roundf(x); if(kind==2 && i<1024) x=-INFINITY; if(kind==3 && g()%3) x=-INFINITY; if(kind==4 && g()%5000==0) x+=30; if(kind==5) x=0.5f; logits[(size_t)r*V+i]=x; }
      if(kind==6&&g()%4==0) logits[(size_t)r*V+g()%V]=INFINITY; if(kind==7&&g()%4==0) logits[(size_t)r*V+g()%V]=NAN;
      T[r]=(float[]){1,0.7f,0.1f,1.5f,1e-6f,INFINITY,1e-30f,0.3f}[g()%8]; if(g()%3) T[r]=1; P[r]=(float[]){0.9f,0.5f,0.99f,0.1f,0.999f,0.7f}[g()%6]; M[r]=(g()%5==0)?0.05f:0; K[r]=(g()%2==0)?(int[]){1,5,50,128,129,400,1024,2000}[g()%8]:0; S[r]=g(); Pos[r]=g()%1000; }
    std::vector<int> tok(rows,-7); std::vector<float> lg(rows,-7); std::vector<double> nz(rows,-7); std::vector<int64_t> scratch((size_t)rows*((V+63)/64+136),0);
    launch_({(unsigned)rows,(unsigned)parts,1},256,[&]{ top_k_top_p_sample_kernel(tok.data(),lg.data(),nz.data(),scratch.data(),logits.data(),T.data(),K.data(),P.data(),M.data(),S.data(),Pos.data(),0,V,V); });
    for(int r=0;r<rows;r++){ printf("%d.%d V=%d parts=%d T=%g p=%g min=%g k=%d -> %d %a %a\n",it,r,V,parts,T[r],P[r],M[r],K[r],tok[r],lg[r],nz[r]); }
    fflush(stdout);
  }
}
