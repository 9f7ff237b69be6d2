// Racing a row once more without reading it: what was noted of its groups of 32 tokens says in which the winner may be.
#pragma once

#include "race.cuh"

// What is noted of a group: its largest logit, and the logit of its first token.
struct Group {
    float most, first;
};

// What is known of a stretch of groups before their tokens are looked at.
struct Leads {
    static const int ROOM = 2560;
    int count;
    unsigned short groups[ROOM];
    float bounds[ROOM];
};

// Finds the columns from `begin` up to `end`, which are whole groups, that may win. All threads of the block are here, and see the groups.
// The next note or token is on its way while one is looked at.
template <typename Race, typename Runners, typename Source>
__device__ __noinline__ void look_again(Race race, Runners runners, Source source, const Group* groups, int begin,
                                        int end, Contenders& contenders, Leads& leads) {
    const float LOWEST = -3e38f; // of a bound that is above nothing
    const int groups_end = (int)(((long long)end + GROUP - 1) / GROUP), lane = threadIdx.x % 32;
#pragma unroll 1
    for (int start = begin / (int)GROUP; start < groups_end; start += Leads::ROOM) {
        int number = min(Leads::ROOM, groups_end - start);
        if (threadIdx.x == 0) leads.count = 0;
        // What first tokens reach dismisses most groups.
        auto note = [&](int i) { return i < number ? __ldcg(reinterpret_cast<const float2*>(groups + start + i)) : float2{-INF, -INF}; };
        float reached = -INF;
        float2 next = note(threadIdx.x);
#pragma unroll 1
        for (int i = threadIdx.x; i < number; i += blockDim.x) {
            Group group = {next.x, next.y};
            next = note(i + (int)blockDim.x);
            int column = (start + i) * (int)GROUP;
            Times times = {race.stream.group_words(race.token(column) / GROUP)};
            int its = column + (int)first_lane(times.group);
            float first = runners.runs(group.first, its) ? group.first : -INF;
            bool none = !(group.most > -INF) || !runners.runs(group.most, column);
            leads.bounds[i] = none ? -INF : fmaxf(fmaxf(race.bound(first, times.first()), race.bound(group.most, times.second())), LOWEST);
            if (first > -INF) reached = fmaxf(reached, race.reached(first, times.latest(race.token(its), 0)));
        }
        int highest = __reduce_max_sync(~0u, ordered(reached));
        if (lane == 0) atomicMax(&contenders.least, highest);
        __syncthreads();
        float least = contenders.bound();
#pragma unroll 1
        for (int i = threadIdx.x; i < number; i += blockDim.x) {
            if (leads.bounds[i] > -INF && !(leads.bounds[i] < least)) leads.groups[atomicAdd(&leads.count, 1)] = (unsigned short)i;
        }
        __syncthreads();
        // Each warp looks at the tokens of a group, one a lane, and keeps those that may win.
        auto token = [&](int i) {
            int column = i < leads.count ? (start + leads.groups[i]) * (int)GROUP + lane : end;
            return column < end ? source.at(column) : -INF;
        };
        float ahead = token(threadIdx.x / 32);
#pragma unroll 1
        for (int i = threadIdx.x / 32; i < leads.count; i += NUM_WARPS) {
            float x = ahead;
            ahead = token(i + NUM_WARPS);
            int group = leads.groups[i];
            // Other warps raise the bound meanwhile, so one lane may see what another does not.
            if (__any_sync(~0u, leads.bounds[group] < contenders.bound())) continue;
            int column = (start + group) * (int)GROUP + lane;
            unsigned its = race.token(column), word = race.stream.high_word(its);
            Times times = {race.stream.group_words(its / GROUP)};
            if (x > -INF && runners.runs(x, column) && !(race.bound(x, times.earliest(its, word)) < contenders.bound()))
                contenders.add(race, x, times.group, word, column);
            __syncwarp();
        }
        __syncthreads();
    }
}
