# prep.sh SRC OUT : copies kernels with asm replaced
rm -rf $2; mkdir -p $2; cp $1/*.cuh $1/*.cu $2/
python3 - $2 <<'P'
import sys,re,glob
for f in glob.glob(sys.argv[1]+'/*.cu*'):
    s=open(f).read()
    s=re.sub(r'#include <cuda_\w+\.h>','',s)
    s=re.sub(r'asm\("\{ \.reg.*?\);','{ unsigned long long w_=(unsigned long long)a*b; lower=(unsigned)w_; upper=(unsigned)(w_>>32); }',s)
    s=re.sub(r'asm\("lg2.*?: "=f"\((\w+)\) : "f"\((.*?)\)\);',r'\1 = emu_lg2(\2);',s)
    s=re.sub(r'asm\("max\.NaN.*?\);','result = emu_maxnan(a, b);',s)
    s=re.sub(r'asm volatile\("ld\.acquire.*?\);','yield_(); seen = *(volatile unsigned*)arrived;',s)
    s=re.sub(r'asm\("ex2.*?: "=f"\((\w+)\) : "f"\((.*)\)\);',r'\1 = emu_ex2(\2);',s)
    open(f,'w').write(s)
P
