//! What the kernels do, on each arm that this machine has.

mod block_table;
mod defects;
mod eagle;
mod expansion;
mod fly;
mod streams;
mod support;
