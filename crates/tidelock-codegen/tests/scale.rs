//! The generator's cost grows with the number of kernels and no faster. `benches/scale.rs` says how much it is.

mod many;

use std::time::{Duration, Instant};

use tidelock_codegen::Project;

/// All kernels in one file, where anything that looks at a file once a kernel costs the most.
fn project(kernels: usize) -> Project {
    many::project(kernels, kernels)
}

fn generate(project: &Project) -> (String, Duration) {
    let start = Instant::now();
    match project.generate() {
        Ok(text) => (text, start.elapsed()),
        Err(found) => panic!("{}", found.render(&project.sources(), false)),
    }
}

#[test]
fn every_kernel_is_generated_in_the_order_of_the_registry() {
    let (text, _) = generate(&many::project(30, 7));
    let declared: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("static KERNEL_")).collect();
    let numbers: Vec<usize> = declared.iter().filter_map(|rest| rest.split(' ').next()?.parse().ok()).collect();
    assert_eq!(numbers, (0..30).collect::<Vec<_>>());
    assert!(syn::parse_file(&text).is_ok());
}

#[test]
fn four_times_the_kernels_take_less_than_eight_times_as_long() {
    let (few, many) = (project(50), project(200));
    // The least of some, in turn, since others use the machine as well.
    let times: Vec<_> = (0..4).map(|_| (generate(&few).1, generate(&many).1)).collect();
    let few = times.iter().map(|time| time.0).min().unwrap();
    let many = times.iter().map(|time| time.1).min().unwrap();
    assert!(many < 8 * few, "50 kernels took {few:?}, 200 took {many:?}");
}
