// Racing a row once more without reading it: what was noted of its groups of 32 tokens says in which the winner may be.
#pragma once

#include "race.cuh"

// What is noted of a group: its largest logit, and the logit of its first token.
struct Group {
    float most, first;
};

// What is known of a stretch of groups before their tokens are looked at.
struct Leads {
    static const int EACH = 5, ROOM = EACH * 32 * NUM_WARPS;
    int count;
    int groups[ROOM];
    float bounds[ROOM];
};

// Looks at the tokens of a group, one a lane, and keeps those that may win.
template <typename Race, typename Runners, typename Source>
__device__ void visit(const Race& race, const Runners& runners, const Source& source, int group, int end, Contenders& contenders) {
    int column = group * (int)GROUP + (int)threadIdx.x % 32;
    unsigned token = race.token(column), word = race.stream.high_word(token);
    Times times = {race.stream.group_words(token / GROUP)};
    float x = column < end ? source.at(column) : -INF;
    if (x > -INF && runners.runs(x, column) && !(race.bound(x, times.earliest(token, word)) < contenders.bound()))
        contenders.add(race, x, times.group, word, column);
    __syncwarp();
}

// Finds the columns from `begin` up to `end`, which are whole groups, that may win. All threads of the block are here, and see the groups.
template <typename Race, typename Runners, typename Source>
__device__ __noinline__ void look_again(Race race, Runners runners, Source source, const Group* groups, int begin,
                                        int end, Contenders& contenders, Leads& leads) {
    const float LOWEST = -3e38f; // of a bound that is above nothing
    const int groups_end = (int)(((long long)end + GROUP - 1) / GROUP);
#pragma unroll 1
    for (int start = begin / (int)GROUP; start < groups_end; start += Leads::ROOM) {
        int number = min(Leads::ROOM, groups_end - start);
        if (threadIdx.x == 0) leads.count = 0;
        // What first tokens reach dismisses most groups.
        float reached = -INF;
        float2 noted[Leads::EACH];
#pragma unroll
        for (int j = 0; j < Leads::EACH; j++) {
            int i = j * 32 * NUM_WARPS + threadIdx.x;
            noted[j] = {-INF, -INF};
            if (i < number) noted[j] = __ldcg(reinterpret_cast<const float2*>(groups + start + i));
        }
#pragma unroll
        for (int j = 0; j < Leads::EACH; j++) {
            int i = j * 32 * NUM_WARPS + threadIdx.x;
            if (i >= number) break;
            Group group = {noted[j].x, noted[j].y};
            int column = (start + i) * (int)GROUP;
            Times times = {race.stream.group_words(race.token(column) / GROUP)};
            int its = column + (int)first_lane(times.group);
            float first = runners.runs(group.first, its) ? group.first : -INF;
            bool none = !(group.most > -INF) || !runners.runs(group.most, column);
            leads.bounds[i] = none ? -INF : fmaxf(fmaxf(race.bound(first, times.first()), race.bound(group.most, times.second())), LOWEST);
            if (first > -INF) reached = fmaxf(reached, race.reached(first, times.latest(race.token(its), 0)));
        }
        int highest = __reduce_max_sync(~0u, ordered(reached));
        if (threadIdx.x % 32 == 0) atomicMax(&contenders.least, highest);
        __syncthreads();
        float least = contenders.bound();
#pragma unroll 1
        for (int i = threadIdx.x; i < number; i += blockDim.x) {
            if (leads.bounds[i] > -INF && !(leads.bounds[i] < least)) leads.groups[atomicAdd(&leads.count, 1)] = i;
        }
        __syncthreads();
#pragma unroll 1
        for (int i = threadIdx.x / 32; i < leads.count; i += NUM_WARPS) {
            int its = leads.groups[i];
            if (!(leads.bounds[its] < contenders.bound())) visit(race, runners, source, start + its, end, contenders);
        }
        __syncthreads();
    }
}
