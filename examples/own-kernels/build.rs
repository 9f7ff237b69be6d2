//! Makes `kernels.rs` from `signatures/`, after checking it against `ptx/`, `kernels/`, `src/cpu/` and `cpu/`; and compiles the
//! CPU arms in C++.

fn main() {
    tidelock_codegen::build();
    let mut compiler = cc::Build::new();
    // Each step rounded by itself, as on the GPU. `cc` says which compiler it looked for where there is none.
    compiler.cpp(true).file("cpu/quantize.cpp").flag_if_supported("-ffp-contract=off");
    if let Err(error) = compiler.try_compile("own_kernels_cpu") {
        eprintln!("cpu/quantize.cpp needs a C++ compiler (install g++ or clang, or name one in CXX): {error}");
        std::process::exit(1);
    }
}
