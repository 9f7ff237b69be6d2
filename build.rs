//! Makes `src/generated.rs` from `signatures/`, after checking it against `ptx/`, `kernels/` and `src/cpu/`.

fn main() {
    #[cfg(feature = "sampling")]
    tidelock_codegen::build();
}
