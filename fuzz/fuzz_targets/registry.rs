#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| tidelock_fuzz::generate_with("signatures/pick.yaml", content));
