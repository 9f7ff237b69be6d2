//! What the kernels and the layers above them do, on each arm that this machine has.

mod bad_words;
mod block_table;
mod cubins;
mod defects;
mod eagle;
mod expansion;
mod filter;
mod fly;
mod graph;
mod gumbel;
mod gumbel_draws;
mod logit_bias;
mod logits;
mod logprobs;
mod penalties;
mod precision;
mod prepared;
mod processors;
mod race;
mod sampling;
mod sampling_refusals;
mod statistics;
mod streams;
mod support;
