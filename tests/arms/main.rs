//! What the kernels do, on each arm that this machine has.

mod bad_words;
mod defects;
mod logit_bias;
mod logits;
mod penalties;
mod processors;
mod streams;
mod support;
