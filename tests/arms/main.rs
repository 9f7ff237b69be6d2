//! What the kernels do, on each arm that this machine has.

mod defects;
mod filter;
mod logprobs;
mod streams;
mod support;
