//! Makes `kernels.rs` from `signatures/`, after checking it against `ptx/`, `kernels/` and `src/cpu/`.

fn main() {
    tidelock_codegen::build();
}
