#!/bin/sh
# Instructions of one call of each benchmark in cpu_sampling.rs on one row, by callgrind: those of eleven calls less those
# of one, by ten. Valgrind knows AVX2, not AVX-512, so AVX2 is what is counted, on one thread.
set -eu
cd "$(dirname "$0")/.."
binary=${1:-$(cargo bench --bench cpu_sampling --no-run 2>&1 | sed -n 's/.*(\(.*\))$/\1/p')}
count() {
    RAYON_NUM_THREADS=1 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$binary" --bench --exact "cpu_sampling::$1::1" --sample-count 1 --sample-size "$2" 2>&1 |
        sed -n 's/.*Collected : //p'
}
for name in $("$binary" --list | sed -n "s|^[^a-z]*||p" | grep -v cpu_sampling); do
    echo "$name $((($(count "$name" 11) - $(count "$name" 1)) / 10))"
done
