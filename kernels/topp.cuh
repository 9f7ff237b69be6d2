// Drawing from a row without top-k, by all of its blocks; see topk_topp.cu.
//
// All tokens race while they are read once. Meanwhile the blocks take notes: what the tokens weigh in bins, and two logits of each group. With
// these they agree on where top-p cuts the row, and mostly know whether the winner is kept without reading the row again. If it is not, the
// tokens before it race, which no one else can win: the race's order is the same whoever runs. That needs the notes and a few groups.
#pragma once

#include "weigh.cuh"

const int MOST_PARTS = 16;

// What a block found, for the other blocks of the row. Of what is found more than once the blocks use two places in turn: when one of them
// is a meeting ahead, others may still look at the place before.
struct Slot {
    Found found[2];
    Sums<double> about[2];
    Sums<long long> exact[2];
    float top;
    int sound; // whether the part's masses hold
};

// The blocks of a row, with the row's scratch: counters, a slot and the masses of each part, and two logits of each group.
struct Team {
    static const int SLOTS = 8, MASSES = SLOTS + 17 * MOST_PARTS, GROUPS = MASSES + Masses::ENTRIES / 2 * MOST_PARTS; // in words
    static_assert(sizeof(Slot) == 17 * 8, "a slot is so many words");
    int64_t* scratch;
    int part, parts;

    __device__ static long long words(int vocab_size) { return ((long long)vocab_size + 31) / 32 + GROUPS; }

    __device__ Counters* counters() const { return reinterpret_cast<Counters*>(scratch); }
    __device__ Slot* slots() const { return reinterpret_cast<Slot*>(scratch + SLOTS); }
    __device__ Masses* masses() const { return reinterpret_cast<Masses*>(scratch + MASSES); }
    __device__ Group* groups() const { return reinterpret_cast<Group*>(scratch + GROUPS); }
    __device__ const volatile Slot& other(int its) const { return slots()[its]; }
    __device__ Slot& mine() const { return slots()[part]; }
    __device__ void meet() const { ::meet(&counters()->arrived, parts); }

    // The sum over the parts, in all lanes.
    template <typename Value>
    __device__ auto sum(Value value) const {
        int lane = threadIdx.x % 32;
        auto sum = value(other(lane < parts ? lane : 0));
        if (lane >= parts) sum = 0;
        for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
        return sum;
    }
};

// What one block works in.
struct Notes {
    Histogram histogram;
    Leads leads;
};

// A part of a row that has been read once, and what its block knows of the whole. All threads of all blocks of the row ask the same of it.
struct Known {
    Row row;
    Team team;
    int begin, end;
    Steps steps;
    const Histogram& histogram;
    float below, top = -INF; // what is below the bins of the part, and the row's largest logit
    bool is_cut = false;     // by the bins
    Cut cut;
    int turn = 0;

    // What the block finds of its part, and the others of theirs, together.
    template <typename Number>
    __device__ Sums<Number> together(const Sums<Number>& found, Sums<Number> (Slot::*sums)[2]) {
        int its = turn++ % 2;
        if (threadIdx.x == 0) (team.mine().*sums)[its] = found;
        team.meet();
        return {team.sum([=](const volatile Slot& slot) { return (slot.*sums)[its].total; }),
                team.sum([=](const volatile Slot& slot) { return (slot.*sums)[its].before; })};
    }

    // Whether top-p keeps a token. What one way leaves open is told by the next, which costs more.
    __device__ bool keeps(Before place) {
        Verdict its = UNCLEAR;
        if (is_cut) {
            int entry = steps.entry(place.logit);
            if (entry >= cut.kept || entry <= cut.dropped) return entry >= cut.kept;
            Sums<double> bin = together(weigh_bin(histogram, below, steps.bin(place.logit)), &Slot::about);
            its = verdict(bin.before, bin.before + bin.total, cut.total, row.top_p, DOUBT);
        }
        if (its == UNCLEAR && top < INF) {
            Sums<double> about = together(weigh(row, top, place, begin, end), &Slot::about);
            its = verdict(about.before, about.before, about.total, row.top_p, DOUBT_READ);
        }
        if (its != UNCLEAR) return its == KEPT;
        Sums<long long> exact = together(weigh_exactly(row, top, place, begin, end), &Slot::exact);
        return exact.before < part_of(exact.total, row.top_p);
    }
};

// `batch` holds the first batch of this warp, at column `first`.
__device__ inline void draw_by_top_p(const Row& row, const Race<Noise>& race, const Team& team, Batch<Logits<T_logits>>& batch, int first,
                                     int begin, int end, Notes& notes, Contenders& contenders, const Output& output) {
    __shared__ float of_warps[NUM_WARPS], below, row_top;
    __shared__ int unsound;
    __shared__ bool is_cut;
    __shared__ Found winner;
    notes.histogram.clear();
    if (threadIdx.x == 0) unsound = 0;
    Noting noting(notes.histogram, team.groups(), end, reference(row), row);
    contenders.clear();
    float top = largest_of_block(scan<DIVISIBLE_BY_16>(race, row.logits, batch, first, begin, end, contenders, noting));
    if (noting.counting) {
        for (int lanes = 16; lanes > 0; lanes /= 2) noting.below += __shfl_xor_sync(~0u, noting.below, lanes);
        if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = noting.below;
        atomicAdd(&unsound, -noting.counted);
    }
    __syncthreads();
    Known known = {row, team, begin, end, noting.steps, notes.histogram};
    Before before = {-INF, 0}; // everyone
    for (bool again = false;; again = true) {
        int its = known.turn++ % 2;
        if (threadIdx.x < 32) {
            Best best = contenders.finish(race, before, row.logits, begin, end);
            if (threadIdx.x == 0) team.mine().found[its].set(best);
        } else if (!again && noting.counting) {
            float sum = 0;
            for (int warp = 0; warp < NUM_WARPS; warp++) sum += of_warps[warp];
            if (threadIdx.x == 32) below = sum;
            atomicAdd(&unsound, weigh_bins(notes.histogram, sum, team.masses()[team.part]));
        }
        __syncthreads();
        if (threadIdx.x == 0 && !again) {
            team.mine().top = top;
            team.mine().sound = noting.counting && unsound == 0 && noting.steps.bin(top) < Histogram::BINS;
        }
        team.meet();
        if (threadIdx.x < 32) {
            Best best;
            float most = -INF;
            bool sound = true;
            if (threadIdx.x < team.parts) {
                const volatile Slot& other = team.other(threadIdx.x);
                best = other.found[its].get();
                most = other.top;
                sound = other.sound;
            }
            best.contend_warp();
            for (int lanes = 16; lanes > 0; lanes /= 2) most = larger(most, __shfl_xor_sync(~0u, most, lanes));
            sound = __all_sync(~0u, sound);
            if (threadIdx.x == 0) {
                winner.set(best);
                row_top = most;
                is_cut = sound && most < INF;
            }
        }
        __syncthreads();
        Best best = winner.get();
        if (!again) {
            known.below = below;
            known.top = row_top;
            known.is_cut = is_cut;
            if (is_cut) known.cut = cut_of_row(row.top_p, team.masses(), team.parts);
        }
        Before place = {best.weight, best.column};
        if (!(known.top > -INF) || (row.passes_min_p(best.weight, known.top) && (row.top_p >= 1 || known.keeps(place)))) {
            if (team.part == 0 && threadIdx.x == 0) output.write(best, known.top == known.top);
            return;
        }
        // Those that are dropped for certain don't run either.
        float dropped = known.cut.dropped >= 0 ? known.steps.end_of_entry(known.cut.dropped) : -INF;
        before = dropped > best.weight ? Before{dropped, 0} : place;
        contenders.clear();
        look_again(race, before, row.logits, team.groups(), begin, end, contenders, notes.leads);
    }
}
