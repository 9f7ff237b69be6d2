#define main main_
#include "test.cpp"
#undef main
int main(){ std::mt19937_64 g(5); int V=151936,parts=4,rows=1; std::vector<float> l(V); std::normal_distribution<float> nd(0,3); std::vector<int64_t> scratch((size_t)((V+63)/64+136),0);
 for(int it=0;it<40;it++){ for(auto&x:l)x=nd(g); float T=1,P=0.9f,M=0; int K=0; int64_t S=g(),Pos=3; int tok; float lg; double nz; launch_({1,(unsigned)parts,1},256,[&]{ top_k_top_p_sample_kernel(&tok,&lg,&nz,scratch.data(),l.data(),&T,&K,&P,&M,&S,&Pos,0,V,V); }); printf("%d %a\n",tok,lg); } }
