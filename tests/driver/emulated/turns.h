// Blocks that take turns, one at a time, in an order drawn from a seed: what goes wrong where one block is slower than another does so
// here, and again with the same seed.
//
// Of the blocks that can go on, the one of the highest rank does, until it waits for another or ranks change. So the block of the lowest is
// as slow as a block can be: the others are ahead of it by all that they don't need it for. Ranks are drawn where a block starts, and now
// and then where it has done what others may see. After Burckhardt and others, "A randomized scheduler with probabilistic guarantees of
// finding bugs", 2010.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <vector>

[[noreturn]] inline void fail(const char* why) {
    fprintf(stderr, "a kernel hangs: %s\n", why);
    abort();
}

class Turns {
    // Of a thread of the system, which has one block after the other.
    struct Seat {
        unsigned rank = 0;
        bool left = false;
        const unsigned* counter = nullptr; // that it waits for
        unsigned seen = 0;
        std::condition_variable called;

        bool can_go_on() const { return !left && (counter == nullptr || __atomic_load_n(counter, __ATOMIC_SEQ_CST) != seen); }
    };

    std::mutex mutex;
    std::mt19937 random;
    unsigned seldom; // how many events there are for each that changes a rank
    std::vector<Seat> seats;
    unsigned here;     // who have not left
    unsigned turn = 0; // whose it is

    // Whose turn is next; the one of `mine` if none is before it.
    unsigned next(unsigned mine) const {
        unsigned best = mine;
        for (unsigned i = 0; i < seats.size(); i++) {
            if (seats[i].can_go_on() && (!seats[best].can_go_on() || seats[i].rank > seats[best].rank)) best = i;
        }
        return best;
    }

    void pass(unsigned mine) {
        unsigned other = next(mine);
        if (!seats[other].can_go_on() && here > 0) fail("each block waits for another");
        if (other == mine) return;
        {
            std::lock_guard<std::mutex> lock(mutex);
            turn = other;
            seats[other].called.notify_one();
        }
        if (!seats[mine].left) await(mine);
    }

  public:
    Turns(unsigned seed, unsigned number) : random(seed), seldom(8u << random() % 5), seats(number), here(number) {
        for (Seat& seat : seats) seat.rank = random();
        turn = next(0);
    }

    unsigned below(unsigned end) { return random() % end; }

    // Waits for the turn of a seat: before anything else there.
    void await(unsigned mine) {
        std::unique_lock<std::mutex> lock(mutex);
        seats[mine].called.wait(lock, [&] { return turn == mine; });
    }

    void start(unsigned mine) {
        seats[mine].counter = nullptr;
        seats[mine].rank = random();
        pass(mine);
    }

    // Something is done that others may see, or may have changed.
    void event(unsigned mine) {
        seats[mine].counter = nullptr;
        if (below(seldom) == 0) seats[mine].rank = random();
        pass(mine);
    }

    // Looks at a counter. Who looks again, having done nothing, waits until it changes.
    unsigned look(unsigned mine, const unsigned* counter) {
        if (seats[mine].counter != counter) seats[mine].counter = nullptr;
        pass(mine);
        seats[mine].counter = counter;
        return seats[mine].seen = __atomic_load_n(counter, __ATOMIC_SEQ_CST);
    }

    void leave(unsigned mine) {
        seats[mine].left = true;
        here--;
        pass(mine);
    }
};

inline Turns* turns = nullptr; // where blocks take them
inline thread_local unsigned seat;

inline void event() {
    if (turns) turns->event(seat);
}
