// One variant of a kernel as a library: EMULATED_SOURCE is its file, EMULATED_KERNEL its name, EMULATED_HEADER the registry's
// declaration, which it has to fit.
#include "cuda.h"

#include <atomic>
#include <utility>

#include EMULATED_HEADER
#include EMULATED_SOURCE

template <typename... Arguments, size_t... INDICES>
void call(void (*kernel)(Arguments...), void** slots, std::index_sequence<INDICES...>) {
    kernel(*static_cast<Arguments*>(slots[INDICES])...);
}

template <typename... Arguments>
void call(void (*kernel)(Arguments...), void** slots) {
    call(kernel, slots, std::index_sequence_for<Arguments...>());
}

// Runs a grid whose blocks have `threads` threads; a parameter slot holds what a launch gives. Where EMULATED_TURNS is a number, blocks
// take turns, in another order at each launch.
extern "C" __attribute__((visibility("default"))) void emulate(unsigned x, unsigned y, unsigned threads, void** slots) {
    gridDim = {x, y, 1};
    blockDim = {threads, 1, 1};
    body = [slots] { call(EMULATED_KERNEL, slots); };
    // As on a GPU, some blocks run at a time, the first ones first. Those of a row wait for each other, and there are no more of them.
    const unsigned AT_A_TIME = 64;
    unsigned at_a_time = min(AT_A_TIME, x * y);
    static unsigned launches = 0;
    std::unique_ptr<Turns> drawn;
    if (const char* seed = getenv("EMULATED_TURNS")) {
        std::mt19937 random(atoi(seed) + launches++);
        at_a_time = y < at_a_time ? y + random() % (at_a_time - y + 1) : at_a_time;
        drawn = std::make_unique<Turns>(random(), at_a_time);
    }
    turns = drawn.get();
    std::atomic<unsigned> next(0);
    std::vector<std::thread> processors;
    for (unsigned i = 0; i < at_a_time; i++) {
        processors.emplace_back([&, i] {
            seat = i;
            if (turns) turns->await(i);
            for (unsigned its = next++; its < x * y; its = next++) {
                if (turns) turns->start(i);
                run_block(its % x, its / x, threads);
            }
            if (turns) turns->leave(i);
        });
    }
    for (std::thread& processor : processors) processor.join();
    turns = nullptr;
}
