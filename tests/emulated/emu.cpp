#include "cuda_emu.h"
#include <thread>
#undef threadIdx
#undef blockIdx
dim3_ gridDim, blockDim;
thread_local Ctx* cur_;
struct Fiber { ucontext_t uc; Ctx ctx; int thread; bool done=false; std::vector<char> stack; };
struct Warp { uint64_t vals[2][32]; int arrived=0; unsigned gen=0; };
struct Block { int arrived=0; unsigned gen=0; int orv[2]={0,0}; std::vector<Warp> warps; ucontext_t main_uc; Fiber* running; std::vector<Fiber> fibers; };
static thread_local Block* blk;
__attribute__((noinline)) void yield_(){ Block*b=blk; swapcontext(&b->running->uc,&b->main_uc); }
void syncthreads_(){ Block& b=*blk; unsigned g=b.gen; if(++b.arrived==(int)blockDim.x){ b.arrived=0; b.gen++; } else while(b.gen==g) yield_(); }
int syncthreads_or_(int v){ Block& b=*blk; unsigned g=b.gen; b.orv[g&1]|=v!=0; if(++b.arrived==(int)blockDim.x){ b.arrived=0; b.orv[(g+1)&1]=0; b.gen++; } else while(b.gen==g) yield_(); return b.orv[g&1]; }
uint64_t warp_exchange(uint64_t v, uint64_t* all){ Block&b=*blk; Warp& w=b.warps[b.running->thread/32]; unsigned g=w.gen; w.vals[g&1][b.running->thread%32]=v; if(++w.arrived==32){ w.arrived=0; w.gen++; } else while(w.gen==g) yield_(); memcpy(all,w.vals[g&1],sizeof(uint64_t)*32); return 0; }
static std::function<void()> body;
static void entry(){ body(); Block*b=blk; b->running->done=true; swapcontext(&b->running->uc,&b->main_uc); }
void launch_(dim3_ grid, unsigned threads, std::function<void()> f){
  gridDim=grid; blockDim={threads,1,1}; body=f; int nb=grid.x*grid.y;
  std::vector<std::thread> ts;
  for(int k=0;k<nb;k++) ts.emplace_back([=]{
    Block b; blk=&b; b.warps.resize(threads/32); b.fibers.resize(threads);
    for(unsigned t=0;t<threads;t++){ Fiber&fb=b.fibers[t]; fb.stack.resize(64*1024); fb.thread=t; fb.ctx.threadIdx={t,0,0}; fb.ctx.blockIdx={(unsigned)k%grid.x,(unsigned)k/grid.x,0}; getcontext(&fb.uc); fb.uc.uc_stack.ss_sp=fb.stack.data(); fb.uc.uc_stack.ss_size=fb.stack.size(); fb.uc.uc_link=&b.main_uc; makecontext(&fb.uc,entry,0);}
    size_t left=threads;
    while(left){ size_t before=left; for(unsigned t=0;t<threads;t++){ Fiber&fb=b.fibers[t]; if(fb.done) continue; b.running=&fb; cur_=&fb.ctx; swapcontext(&b.main_uc,&fb.uc); if(fb.done) left--; } std::this_thread::yield(); }
  });
  for(auto&t:ts) t.join();
}
