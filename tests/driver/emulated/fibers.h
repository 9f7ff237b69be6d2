// A block of a kernel on a CPU: a thread of the system, in which the block's threads take turns as fibers. Warps meet where they exchange
// something, blocks at barriers.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "turns.h"

struct Index {
    unsigned x, y, z;
};

const size_t STACK = 128 << 10;

// Where `size` fibers wait until all of them are there.
struct Barrier {
    unsigned size = 0, arrived = 0, round = 0;
};

struct Fiber {
    ucontext_t start;
    jmp_buf place; // once it has started, since a change of contexts asks the system for its signals
    std::unique_ptr<char[]> stack{new char[STACK]}; // of which little is ever touched
    Index index;
    const Barrier* barrier = nullptr; // that it came to
    unsigned round;                   // in which it did
    bool started = false, done = false, rests = false;

    bool can_go_on() const { return !done && !rests && (barrier == nullptr || barrier->round != round); }
};

struct Warp {
    Barrier barrier;
    uint64_t given[2][32];
};

struct Block {
    Index index;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Barrier barrier;
    std::vector<int> given;
    jmp_buf scheduler;
    Fiber* running;
};

inline Index gridDim, blockDim;
inline thread_local Block* block;

#define threadIdx (block->running->index)
#define blockIdx (block->index)

__attribute__((noinline)) inline void give_way() {
    if (_setjmp(block->running->place) == 0) _longjmp(block->scheduler, 1);
}

__attribute__((noinline)) inline void go_on(Fiber& fiber) {
    block->running = &fiber;
    if (_setjmp(block->scheduler) != 0) return;
    if (fiber.started) _longjmp(fiber.place, 1);
    fiber.started = true;
    setcontext(&fiber.start);
}

// Whether this fiber was the last to come.
inline bool wait(Barrier& barrier) {
    Fiber& mine = *block->running;
    mine.barrier = &barrier;
    mine.round = barrier.round;
    if (++barrier.arrived < barrier.size) {
        give_way();
        return false;
    }
    barrier.arrived = 0;
    barrier.round++;
    return true;
}

// Lets all the others of the block go on.
inline void rest() {
    block->running->rests = true;
    give_way();
}

inline std::function<void()> body;

inline void enter() {
    body();
    block->running->done = true;
    give_way();
}

// Lets a warp go on as far as it can, if it can: what one of its lanes sees, the others see, since no other warp comes between them.
inline bool run_warp(Fiber* lanes) {
    bool some_went_on = false;
    for (bool again = true; again; some_went_on |= again) {
        again = false;
        for (unsigned lane = 0; lane < 32; lane++) {
            if (!lanes[lane].can_go_on()) continue;
            go_on(lanes[lane]);
            again = true;
        }
    }
    return some_went_on;
}

inline void run_block(unsigned x, unsigned y, unsigned threads) {
    Block here;
    block = &here;
    here.index = {x, y, 0};
    here.barrier.size = threads;
    here.given.resize(threads);
    here.fibers.resize(threads);
    here.warps.resize(threads / 32);
    for (Warp& warp : here.warps) warp.barrier.size = 32;
    for (unsigned i = 0; i < threads; i++) {
        Fiber& fiber = here.fibers[i];
        fiber.index = {i, 0, 0};
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = fiber.stack.get();
        fiber.start.uc_stack.ss_size = STACK;
        fiber.start.uc_link = nullptr;
        makecontext(&fiber.start, enter, 0);
    }
    for (bool all_done = false; !all_done; std::this_thread::yield()) {
        unsigned first = turns ? turns->below(threads) / 32 * 32 : 0;
        bool some_went_on = false;
        for (unsigned i = 0; i < threads; i += 32) some_went_on |= run_warp(&here.fibers[(first + i) % threads]);
        all_done = true;
        for (Fiber& fiber : here.fibers) {
            fiber.rests = false;
            all_done &= fiber.done;
        }
        if (!all_done && !some_went_on) fail("threads of a block wait in different places");
    }
}
