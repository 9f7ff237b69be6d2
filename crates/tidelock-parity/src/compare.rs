//! Runs a case on two devices and tells where they first differ.

use std::fmt;

use tidelock::Device;

use crate::case::Case;
use crate::error::{Error, Result};
use crate::run::{Inputs, Output};
use crate::sample::{Sample, with_dtype};

/// The first element in which two runs of a case differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The case.
    pub case: Case,
    /// Index of the parameter.
    pub param: usize,
    /// Element of its buffer.
    pub index: usize,
    /// What it is and where, ready to be read.
    place: String,
    /// Each run's name and value, with bits.
    sides: [(String, String); 2],
}

/// Runs `case` on both devices; `None` where every bit that was written is the same.
///
/// # Errors
/// Where the case cannot be run.
pub fn compare(case: &Case, left: &Device, right: &Device) -> Result<Option<Difference>> {
    let inputs = Inputs::new(case);
    let run = |device: &Device| inputs.run(device).map_err(|error| Error::case(case, format!("on {device}: {error}")));
    let (left_outputs, right_outputs) = (run(left)?, run(right)?);
    Ok(difference(case, [(left.to_string(), &left_outputs), (right.to_string(), &right_outputs)]))
}

/// The first difference of two runs of `case`, with their names.
pub(crate) fn difference(case: &Case, sides: [(String, &[Output]); 2]) -> Option<Difference> {
    let [(left_name, left), (right_name, right)] = sides;
    left.iter().zip(right).find(|(left, right)| left.bytes != right.bytes).and_then(|(left, right)| {
        let index = (0..left.placement.length).find(|&index| left.element(index) != right.element(index))?;
        let place = place(case, left, index);
        let sides = [(left_name, show(left, index)), (right_name, show(right, index))];
        Some(Difference { case: case.clone(), param: left.param, index, place, sides })
    })
}

/// Where element `index` of an output's buffer is: `probs[2, 17]`.
pub(crate) fn place(case: &Case, output: &Output, index: usize) -> String {
    let name = case.kernel.params[output.param].name;
    match output.placement.position(index) {
        Some((row, column)) if output.placement.matrix => format!("`{name}[{row}, {column}]`"),
        Some((_, column)) => format!("`{name}[{column}]`"),
        None => format!("`{name}`, element {index} of its buffer, outside the tensor"),
    }
}

fn show(output: &Output, index: usize) -> String {
    let bytes = output.element(index);
    let value = with_dtype!(output.dtype, T => T::show(bytes));
    let bits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    format!("{value} (0x{bits})")
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(left, left_value), (right, right_value)] = &self.sides;
        let (kernel, id, place) = (self.case.kernel.name, self.case.id(), &self.place);
        write!(f, "kernel `{kernel}`, case {id}: {place}: {left} {left_value}, {right} {right_value}")
    }
}
