//! What the kernels do, on each arm that this machine has.

mod defects;
mod gumbel;
mod race;
mod statistics;
mod streams;
mod support;
