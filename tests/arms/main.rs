//! What the kernels do, on each arm that this machine has.

mod defects;
mod streams;
mod support;
