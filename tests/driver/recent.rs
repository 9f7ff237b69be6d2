//! A launch that is like an earlier one is no other launch: the driver sees what it would see without the earlier one, and what is
//! wrong with it is said alike.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cudarc::driver::CudaContext;
use tidelock::kernel::ByValue;
use tidelock::{Argument, AsView, Device, Element, Result, Scalar, View, ViewMut, f16};
use tidelock_parity::{Case, Inputs, standard};

use crate::mixed::{First, MIXED, Second};
use crate::{Call, REGISTRY, alone, log, say, seen};

/// What the driver sees of `launch`, or what is wrong with it.
fn outcome(log: &Path, launch: impl FnOnce() -> Result<()>) -> String {
    fs::write(log, "").expect("the log can be written");
    match launch() {
        Ok(()) => fs::read_to_string(log).expect("it is there"),
        Err(error) => format!("{error}\n"),
    }
}

/// The same on a thread that has launched nothing.
fn first_outcome(log: &Path, launch: impl FnOnce() -> Result<()> + Send) -> String {
    std::thread::scope(|scope| scope.spawn(|| outcome(log, launch)).join()).expect("nothing panics")
}

/// Arguments of `MIXED`, at addresses that nothing is read from.
#[derive(Clone, Copy)]
struct Mixed {
    values: Values,
    mask: Option<(u64, usize, usize)>,
    scale: Scalar,
    columns: Option<i32>,
    limit: Option<i32>,
    first: &'static ByValue,
    /// Of the arguments this many are passed.
    passed: usize,
}

#[derive(Clone, Copy)]
struct Values {
    is_half: bool,
    is_writable: bool,
    is_vector: bool,
    is_scalar: bool,
    shape: (usize, usize, usize),
    address: u64,
    ordinal: usize,
}

impl Default for Mixed {
    fn default() -> Mixed {
        let shape = (2, 16, 16);
        let address = 0x1000;
        let values = Values {
            is_half: false,
            is_writable: true,
            is_vector: false,
            is_scalar: false,
            shape,
            address,
            ordinal: 0,
        };
        let (scale, first) = (Scalar::F32(0.0), &First([1, 2]));
        Mixed { values, mask: Some((0x2000, 2, 0)), scale, columns: None, limit: None, first, passed: 8 }
    }
}

impl Values {
    fn argument<'a, T: Element>(self) -> Argument<'a> {
        let (rows, columns, stride) = self.shape;
        let length = if rows == 0 { 0 } else { (rows - 1) * stride + columns };
        // SAFETY: nothing follows the address.
        #[allow(unsafe_code)]
        let read = unsafe { View::<T>::from_raw_device(self.address, length, self.ordinal) };
        // SAFETY: as above.
        #[allow(unsafe_code)]
        let write = unsafe { ViewMut::<T>::from_raw_device(self.address, length, self.ordinal) };
        match (self.is_scalar, self.is_vector, self.is_writable) {
            (true, ..) => Argument::Scalar(T::default().to_scalar()),
            (_, true, _) => write.into(),
            (_, _, true) => write.strided(rows, columns, stride).expect("it fits").into(),
            _ => read.strided(rows, columns, stride).expect("it fits").into(),
        }
    }
}

impl Mixed {
    fn launch(self, device: &Device) -> Result<()> {
        let host = [0f32; 2];
        let values = if self.values.is_half { self.values.argument::<f16>() } else { self.values.argument::<f32>() };
        let mask = match self.mask {
            None => Argument::Absent,
            Some((0, ..)) => host.view().into(),
            Some((address, length, ordinal)) => {
                // SAFETY: nothing follows the address.
                #[allow(unsafe_code)]
                let mask = unsafe { View::<f32>::from_raw_device(address, length, ordinal) };
                mask.into()
            }
        };
        let scalar = |value: Option<i32>| value.map_or(Argument::Absent, |value| Argument::Scalar(Scalar::I32(value)));
        let second = Second([3, 4]);
        let mut args = vec![values, mask, Argument::Scalar(self.scale), scalar(self.columns), Argument::Absent];
        args.extend([scalar(self.limit), Argument::Struct(self.first), Argument::Struct(&second)]);
        args.truncate(self.passed);
        MIXED.launch(&mut args, device)
    }

    fn with(change: impl FnOnce(&mut Mixed)) -> Mixed {
        let mut mixed = Mixed::default();
        change(&mut mixed);
        mixed
    }
}

fn one_row(is_vector: bool) -> Mixed {
    Mixed::with(|mixed| {
        (mixed.values.shape.0, mixed.values.is_vector, mixed.mask) = (1, is_vector, Some((0x2000, 1, 0)))
    })
}

/// Each differs in one thing from the first.
fn all_mixed() -> Vec<(&'static str, Mixed)> {
    vec![
        ("as it is", Mixed::default()),
        ("another type", Mixed::with(|mixed| mixed.values.is_half = true)),
        ("more rows", Mixed::with(|mixed| (mixed.values.shape.0, mixed.mask) = (3, Some((0x2000, 3, 0))))),
        ("more rows in one", Mixed::with(|mixed| mixed.values.shape.0 = 3)),
        ("no rows", Mixed::with(|mixed| (mixed.values.shape.0, mixed.mask) = (0, Some((0x2000, 0, 0))))),
        ("fewer columns", Mixed::with(|mixed| mixed.values.shape.1 = 8)),
        ("rows further apart", Mixed::with(|mixed| mixed.values.shape.2 = 32)),
        ("one row", one_row(false)),
        ("one axis", one_row(true)),
        ("only to be read", Mixed::with(|mixed| mixed.values.is_writable = false)),
        ("a scalar for a view", Mixed::with(|mixed| mixed.values.is_scalar = true)),
        ("no mask", Mixed::with(|mixed| mixed.mask = None)),
        ("another scale", Mixed::with(|mixed| mixed.scale = Scalar::F32(-0.0))),
        ("a scale of another type", Mixed::with(|mixed| mixed.scale = Scalar::I32(0))),
        ("columns, which are derived", Mixed::with(|mixed| mixed.columns = Some(16))),
        ("another limit", Mixed::with(|mixed| mixed.limit = Some(8))),
        ("the limit that is the default", Mixed::with(|mixed| mixed.limit = Some(7))),
        ("a limit that is too large", Mixed::with(|mixed| mixed.limit = Some(101))),
        ("another struct", Mixed::with(|mixed| mixed.first = &First([5, 6]))),
        ("a struct of another type", Mixed::with(|mixed| mixed.first = &Second([1, 2]))),
        ("too few", Mixed::with(|mixed| mixed.passed = 7)),
        ("none", Mixed::with(|mixed| mixed.passed = 0)),
        ("elsewhere", Mixed::with(|mixed| mixed.values.address = 0x4000)),
        ("an address that 16 does not divide", Mixed::with(|mixed| mixed.values.address = 0x1008)),
        ("an address that 4 does not divide", Mixed::with(|mixed| mixed.values.address = 0x1002)),
        ("nowhere", Mixed::with(|mixed| (mixed.values.address, mixed.mask) = (0, None))),
        ("what is written overlaps", Mixed::with(|mixed| mixed.values.address = 0x1fc0)),
        ("what is read overlaps", Mixed::with(|mixed| mixed.mask = Some((0x107c, 2, 0)))),
        ("on another GPU", Mixed::with(|mixed| mixed.mask = Some((0x2000, 2, 1)))),
        ("on the host", Mixed::with(|mixed| mixed.mask = Some((0, 2, 0)))),
    ]
}

#[test]
fn what_differs_from_an_earlier_launch_is_seen() {
    insta::assert_snapshot!("mixed", seen("recent::mixed"));
}

#[test]
#[ignore = "a part of another test"]
fn mixed() {
    let Some(log) = log() else { return };
    let device = &alone();
    let first = |(name, mixed): (_, Mixed)| (name, mixed, first_outcome(&log, || mixed.launch(device)));
    let all: Vec<_> = all_mixed().into_iter().map(first).collect();
    let (_, usual, usual_outcome) = &all[0];
    for (name, mixed, expected) in &all {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2 {
                    assert_eq!(outcome(&log, || usual.launch(device)), *usual_outcome, "before {name}");
                    assert_eq!(outcome(&log, || mixed.launch(device)), *expected, "{name}");
                    assert_eq!(outcome(&log, || mixed.launch(device)), *expected, "{name}, again");
                }
            });
        });
    }
    for round in 0..3 {
        for (name, mixed, expected) in &all {
            assert_eq!(outcome(&log, || mixed.launch(device)), *expected, "{name}, round {round}");
        }
    }
    let text = all.iter().map(|(name, _, outcome)| format!("{name}: {outcome}"));
    fs::write(&log, text.collect::<Vec<_>>().join("")).expect("the log can be written");
}

#[test]
fn addresses_of_a_launch_that_was_refused_are_looked_at_again() {
    insta::assert_snapshot!(seen("recent::refused"), @r"
    stream 2 launches mixed_f32_mask_aligned, 2 x 1 x 1 blocks of 128, 0 bytes: 4096 8192 0 16 16 7 8589934593 17179869187 0
    kernel `mixed`, parameter `mask`: expected memory of cuda:0, got host memory
    kernel `mixed`, parameter `values`: expected memory apart from `mask`, got 128 bytes at 0x1fc0, which overlap 8 bytes at 0x2000
    kernel `mixed`, parameter `values`: expected memory apart from `mask`, got 128 bytes at 0x1fc0, which overlap 8 bytes at 0x2000
    ");
}

#[test]
#[ignore = "a part of another test"]
fn refused() {
    let Some(log) = log() else { return };
    let device = alone();
    Mixed::default().launch(&device).expect("it fits");
    // The address of the first is noted before the second is found to be elsewhere.
    let overlapping = Mixed::with(|mixed| mixed.values.address = 0x1fc0);
    for mask in [Some((0, 2, 0)), overlapping.mask, overlapping.mask] {
        let error = Mixed { mask, ..overlapping }.launch(&device).expect_err("it does not fit");
        say(&log, &error.to_string());
    }
}

#[test]
fn every_kernel_launches_again_what_it_launched() {
    seen("recent::every_kernel");
}

#[test]
#[ignore = "a part of another test"]
fn every_kernel() {
    let Some(log) = log() else { return };
    let device = alone();
    let mut all = Vec::new();
    for kernel in REGISTRY {
        let cases = standard(kernel);
        for index in BTreeSet::from([0, kernel.variants.len() - 1]) {
            let fits = |case: &&Case| case.variant_index() == Some(index);
            for case in cases.iter().filter(fits).take(2) {
                let inputs = Inputs::new(case);
                let expected = first_outcome(&log, || inputs.run(&device).map(drop));
                all.push((case.id(), inputs, expected));
            }
        }
    }
    for (id, inputs, expected) in all.iter().chain(&all) {
        assert_eq!(outcome(&log, || inputs.run(&device).map(drop)), *expected, "{id}");
    }
}

/// The stand-in refuses a function of another context, and one that was unloaded.
#[test]
fn a_function_is_that_of_the_device() {
    assert_eq!(seen("recent::devices").lines().count(), 8);
}

#[test]
#[ignore = "a part of another test"]
fn devices() {
    if log().is_none() {
        return;
    }
    let call = |ordinal| Mixed::with(|mixed| (mixed.values.ordinal, mixed.mask) = (ordinal, None));
    for _ in 0..2 {
        let other = Device::from_stream(CudaContext::new(1).expect("it has many GPUs").per_thread_stream());
        let devices = [alone(), other];
        for ordinal in [0, 1, 0, 1] {
            call(ordinal).launch(&devices[ordinal]).expect("it fits");
        }
        let error = call(0).launch(&devices[1]).expect_err("it is elsewhere").to_string();
        assert!(error.ends_with("expected memory of cuda:1, got memory of cuda:0"), "{error}");
    }
}

#[test]
fn a_launch_that_is_like_another_waits_and_is_recorded_as_that() {
    insta::assert_snapshot!(seen("recent::tracked"), @r"
    stream 3 waits for event 1
    stream 3 waits for event 2
    stream 3 records event 2
    stream 3 waits for event 3
    stream 3 waits for event 4
    stream 3 records event 4
    first:
    stream 3 waits for event 3
    stream 3 waits for event 4
    stream 3 waits for event 2
    stream 3 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    stream 3 records event 4
    stream 3 records event 1
    again:
    stream 3 waits for event 3
    stream 3 waits for event 4
    stream 3 waits for event 2
    stream 3 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    stream 3 records event 4
    stream 3 records event 1
    on another stream:
    stream 4 waits for event 3
    stream 4 waits for event 4
    stream 4 waits for event 2
    stream 4 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    stream 4 records event 4
    stream 4 records event 1
    freed:
    stream 3 waits for event 1
    stream 3 waits for event 2
    stream 3 waits for event 3
    stream 3 waits for event 4
    ");
}

#[test]
#[ignore = "a part of another test"]
fn tracked() {
    let Some(log) = log() else { return };
    let context = CudaContext::new(0).expect("the stand-in has a GPU");
    let [first, second] = [(); 2].map(|()| Device::from_stream(context.new_stream().expect("it has streams")));
    let mut call = Call::on(&first);
    for (place, device) in [("first:", &first), ("again:", &first), ("on another stream:", &second)] {
        say(&log, place);
        call.argmax().launch(device).expect("it fits");
    }
    say(&log, "freed:");
}

#[test]
fn threads_launch_side_by_side() {
    let seen = seen("recent::threads");
    for rows in 1..=8 {
        let launches = seen.lines().filter(|line| line.contains(&format!("_aligned, {rows} x 1 x 1 blocks")));
        assert_eq!(launches.count(), 50, "{rows} rows:\n{seen}");
    }
}

#[test]
#[ignore = "a part of another test"]
fn threads() {
    if log().is_none() {
        return;
    }
    let device = &alone();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for round in 0..200 {
                    let rows = thread * 4 + round % 4 + 1;
                    let mask = Some((0x2000, rows, 0));
                    let mixed = Mixed::with(|mixed| (mixed.values.shape.0, mixed.mask) = (rows, mask));
                    mixed.launch(device).expect("it fits");
                }
            });
        }
    });
}
