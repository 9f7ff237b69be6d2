//! Memory that a thread keeps from one row to the next, so that a launch allocates nothing once it has seen its like.

use std::cell::Cell;
use std::thread::LocalKey;

/// What [`with`] lends.
pub(super) type Scratch<T> = LocalKey<Cell<Vec<T>>>;

/// Lends the thread's vector, empty. Should the thread take on another row meanwhile, that gets a new one.
pub(super) fn with<T, R>(scratch: &'static Scratch<T>, work: impl FnOnce(&mut Vec<T>) -> R) -> R {
    let mut lent = scratch.take();
    lent.clear();
    let result = work(&mut lent);
    scratch.set(lent);
    result
}
