//! What the kernels and the layers above them do, on each arm that this machine has.

mod defects;
mod sampling;
mod statistics;
mod streams;
mod support;
