//! Work on many files or kernels, spread over all processors.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// What `work` makes of each item, in the order of the items.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let part = items.len().div_ceil(threads).max(1);
    let work = &work;
    thread::scope(|scope| {
        let parts: Vec<_> =
            items.chunks(part).map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<_>>())).collect();
        // A panic goes on in the thread that asked.
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<usize> = (0..1001).collect();
        assert_eq!(map(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(map(&[], |item: &usize| *item).is_empty());
    }
}
