//! Runs a case on a device, through the same launch that a worker uses.

use std::any::Any;

use tidelock::kernel::{Access, ByValue, ParamKind};
use tidelock::{Argument, AsView, AsViewMut, Buffer, DType, Device, Element, Scalar};

use crate::case::Case;
use crate::geometry::Placement;
use crate::sample::{Sample, with_dtype};
use crate::values;

/// A case's arguments in host memory, to be run on any number of devices.
pub struct Inputs {
    case: Case,
    arguments: Vec<Input>,
}

enum Input {
    Tensor(Box<dyn HostTensor>),
    Scalar(Scalar),
    Struct(Box<ByValue>),
    Absent,
}

/// The whole buffer of one tensor that a kernel wrote, if it is one that both arms write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Index of the parameter.
    pub param: usize,
    /// Its element type.
    pub dtype: DType,
    /// Where the tensor lies in the buffer.
    pub placement: Placement,
    /// The buffer, in little-endian order.
    pub bytes: Vec<u8>,
}

impl Output {
    /// The bytes of element `index` of the buffer.
    pub fn element(&self, index: usize) -> &[u8] {
        let size = self.dtype.size();
        &self.bytes[index * size..(index + 1) * size]
    }

    /// The first element outside the tensor that is not what it was before the kernel ran.
    pub fn written_outside(&self) -> Option<usize> {
        let mut poison = Vec::new();
        with_dtype!(self.dtype, T => T::append_bytes(&[T::POISON], &mut poison));
        let outside = |index: &usize| self.placement.position(*index).is_none();
        (0..self.placement.length).filter(outside).find(|&index| self.element(index) != poison)
    }
}

impl Inputs {
    /// Generates the values of `case`.
    pub fn new(case: &Case) -> Inputs {
        let argument = |param: usize| match (case.placement(param), values::scalar(case, param)) {
            (Some(placement), _) => Input::Tensor(tensor(case, param, placement)),
            (None, Some(scalar)) => Input::Scalar(scalar),
            (None, None) => values::structure(case, param).map_or(Input::Absent, Input::Struct),
        };
        Inputs { case: case.clone(), arguments: (0..case.kernel.params.len()).map(argument).collect() }
    }

    /// The case that they belong to.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// The buffer of tensor `param`, and where the tensor lies in it, for whoever runs the case in memory of another library;
    /// `None` where the tensor is absent or of another type.
    pub fn tensor<T: Element>(&self, param: usize) -> Option<(Placement, &[T])> {
        let Input::Tensor(tensor) = self.arguments.get(param)? else { return None };
        let tensor: &dyn Any = &**tensor;
        tensor.downcast_ref::<Placed<Vec<T>>>().map(|placed| (placed.placement, &*placed.buffer))
    }

    /// Runs the case on `device`, and gives what it wrote once that is done.
    ///
    /// # Errors
    /// What the launch or the driver says; for any case of a kernel's table that is a bug.
    pub fn run(&self, device: &Device) -> tidelock::Result<Vec<Output>> {
        let mut uploaded = Vec::with_capacity(self.arguments.len());
        for input in &self.arguments {
            uploaded.push(match input {
                Input::Tensor(tensor) => Some(tensor.upload(device)?),
                Input::Scalar(_) | Input::Struct(_) | Input::Absent => None,
            });
        }
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for (input, uploaded) in self.arguments.iter().zip(&mut uploaded) {
            arguments.push(match (input, uploaded) {
                (_, Some(tensor)) => tensor.argument()?,
                (Input::Scalar(scalar), None) => Argument::Scalar(*scalar),
                (Input::Struct(value), None) => Argument::Struct(&**value),
                (_, None) => Argument::Absent,
            });
        }
        self.case.kernel.launch(&mut arguments, device)?;
        drop(arguments);
        let mut outputs = Vec::new();
        for (param, uploaded) in uploaded.iter().enumerate() {
            if let Some(tensor) = uploaded
                && let Some((placement, bytes)) = tensor.written()?
            {
                outputs.push(Output { param, dtype: self.case.dtype(param), placement, bytes });
            }
        }
        Ok(outputs)
    }
}

/// A buffer in host memory whose element type is known at run time only.
trait HostTensor: Any + Send + Sync {
    fn upload(&self, device: &Device) -> tidelock::Result<Box<dyn DeviceTensor>>;
}

/// A buffer on a device, likewise.
trait DeviceTensor {
    fn argument(&mut self) -> tidelock::Result<Argument<'_>>;
    /// The buffer where both arms write it, otherwise `None`.
    fn written(&self) -> tidelock::Result<Option<(Placement, Vec<u8>)>>;
}

/// A tensor in its buffer.
struct Placed<B> {
    buffer: B,
    placement: Placement,
    written: bool,
    /// Written by both arms.
    compared: bool,
}

fn tensor(case: &Case, param: usize, placement: Placement) -> Box<dyn HostTensor> {
    let entry = &case.kernel.params[param];
    let written = !matches!(entry.kind, ParamKind::Tensor { access: Access::Read, .. });
    let compared = written && entry.only.is_none();
    with_dtype!(case.dtype(param), T => {
        Box::new(Placed { buffer: values::tensor::<T>(case, param, placement), placement, written, compared })
    })
}

impl<T: Sample> HostTensor for Placed<Vec<T>> {
    fn upload(&self, device: &Device) -> tidelock::Result<Box<dyn DeviceTensor>> {
        let Placed { ref buffer, placement, written, compared } = *self;
        Ok(Box::new(Placed { buffer: Buffer::from_slice(device, buffer)?, placement, written, compared }))
    }
}

impl<T: Sample> DeviceTensor for Placed<Buffer<T>> {
    fn argument(&mut self) -> tidelock::Result<Argument<'_>> {
        let Placement { lead, matrix, rows, columns, row_stride, length } = self.placement;
        // The view of a matrix is cut from all that follows, that of a vector is exact: its extent is its length.
        let range = lead..if matrix { length } else { lead + columns };
        Ok(match (self.written, matrix) {
            (true, true) => self.buffer.view_mut().slice(range)?.strided(rows, columns, row_stride)?.into(),
            (true, false) => self.buffer.view_mut().slice(range)?.into(),
            (false, true) => self.buffer.view().slice(range)?.strided(rows, columns, row_stride)?.into(),
            (false, false) => self.buffer.view().slice(range)?.into(),
        })
    }

    fn written(&self) -> tidelock::Result<Option<(Placement, Vec<u8>)>> {
        if !self.compared {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        T::append_bytes(&self.buffer.to_vec()?, &mut bytes);
        Ok(Some((self.placement, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::DRAWS;

    #[test]
    fn a_buffer_is_of_its_type() {
        let case = Case::parse(&DRAWS, "f32/rows=2,length=5/padded/declared").unwrap();
        let inputs = Inputs::new(&case);
        let (placement, logits) = inputs.tensor::<f32>(1).unwrap();
        assert_eq!((placement, logits.len()), (case.placement(1).unwrap(), placement.length));
        assert!(inputs.tensor::<f64>(1).is_none() && inputs.tensor::<f32>(DRAWS.params.len()).is_none());
    }
}
