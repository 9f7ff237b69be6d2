//! What random numbers are drawn for.

/// The purpose of a draw, the last word of its counter: two uses of the same seed, position and token id share no number.
///
/// ```
/// use tidelock::{Purpose, philox::Stream};
///
/// let words = |purpose: Purpose| Stream::new(7, 0, purpose.into()).high_words(0);
/// assert_ne!(words(Purpose::Draft), words(Purpose::Recovery));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Purpose {
    /// A token from the target, where nothing was drafted.
    Sample = 0,
    /// A token from the draft model.
    Draft = 1,
    /// The uniform that a draft's acceptance is decided with.
    Acceptance = 2,
    /// The token that replaces a rejected draft.
    Recovery = 3,
    /// The token after the last accepted draft.
    Bonus = 4,
}

impl From<Purpose> for i32 {
    /// As the kernels take it.
    fn from(purpose: Purpose) -> i32 {
        purpose as i32
    }
}
