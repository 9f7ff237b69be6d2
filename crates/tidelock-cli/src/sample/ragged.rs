//! Lists of all rows, one after the other on the device. The command line gives every row the same ones.

use tidelock::{AsView, Buffer, Device, Element, Result, View};

/// Lists and where each ends.
pub struct Ragged<T> {
    values: Buffer<T>,
    ends: Buffer<i32>,
}

impl<T: Element> Ragged<T> {
    /// The lists of `lists`, one after the other.
    pub fn new<'a>(device: &Device, lists: impl IntoIterator<Item = &'a [T]>) -> Result<Ragged<T>> {
        let (mut values, mut ends) = (Vec::new(), Vec::new());
        for list in lists {
            values.extend_from_slice(list);
            ends.push(values.len() as i32);
        }
        Ok(Ragged { values: Buffer::from_slice(device, &values)?, ends: Buffer::from_slice(device, &ends)? })
    }

    /// `list` for each of `rows` rows.
    pub fn repeated(device: &Device, list: &[T], rows: usize) -> Result<Ragged<T>> {
        Ragged::new(device, std::iter::repeat_n(list, rows))
    }

    /// The values of all lists.
    pub fn values(&self) -> View<'_, T> {
        self.values.view()
    }

    /// Where each list ends: inclusive sums.
    pub fn ends(&self) -> View<'_, i32> {
        self.ends.view()
    }
}
