//! What the kernels do, on each arm that this machine has.

mod defects;
mod logits;
mod penalties;
mod processors;
mod streams;
mod support;
