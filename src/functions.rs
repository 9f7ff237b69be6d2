//! The kernels that were loaded into a context: each is found without a lock, and loaded when it is first used.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use cudarc::driver::CudaContext;

use crate::cubin;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Variant};
use crate::launch::{Function, Module};

/// The number of a variant in every table of functions; it has one once it is used.
#[derive(Debug, Default)]
pub struct VariantId(OnceLock<u32>);

impl VariantId {
    /// One without a number yet.
    pub const fn new() -> VariantId {
        VariantId(OnceLock::new())
    }

    fn number(&self) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        *self.0.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Which [`Functions`] they are. It is never given to others, as an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionsId(NonZeroU64);

impl FunctionsId {
    fn new() -> FunctionsId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        FunctionsId(NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed)))
    }
}

/// The kernels that were loaded into one context; unloaded with the last device that uses them.
#[derive(Debug)]
pub(crate) struct Functions {
    id: FunctionsId,
    context: Arc<CudaContext>,
    cubins: Option<Arc<Path>>,
    table: Table,
    modules: Mutex<Vec<Module>>,
}

impl Functions {
    /// Those of `context` that come from the folder `cubins` where it has them, shared by all devices of both.
    pub(crate) fn of(context: &Arc<CudaContext>, cubins: Option<Arc<Path>>) -> Arc<Functions> {
        static ALL: Mutex<Vec<Weak<Functions>>> = Mutex::new(Vec::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|functions| functions.strong_count() > 0);
        let mut known = all.iter().filter_map(Weak::upgrade);
        let same = |known: &Arc<Functions>| Arc::ptr_eq(&known.context, context) && known.cubins == cubins;
        known.find(same).unwrap_or_else(|| {
            let (id, table, modules) = (FunctionsId::new(), Table::default(), Mutex::default());
            let new = Arc::new(Functions { id, context: context.clone(), cubins, table, modules });
            all.push(Arc::downgrade(&new));
            new
        })
    }

    /// Which they are.
    pub(crate) fn id(&self) -> FunctionsId {
        self.id
    }

    /// The function of `variant`, loaded now if it has not been used in this context before.
    pub(crate) fn get(&self, kernel: &'static Kernel, variant: &'static Variant) -> Result<Function> {
        let cell = self.table.cell(variant.id.number());
        match cell.get() {
            Some(function) => Ok(*function),
            None => self.load(kernel, variant, cell),
        }
    }

    #[cold]
    fn load(&self, kernel: &'static Kernel, variant: &'static Variant, cell: &OnceLock<Function>) -> Result<Function> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = cell.get() {
            return Ok(*function); // another thread was first
        }
        let fail = |message: String| Error::load(kernel.name, variant.name, message);
        let (major, minor) = self
            .context
            .compute_capability()
            .map_err(|error| fail(format!("the driver failed to tell the compute capability: {error}")))?;
        let capability = (major * 10 + minor) as u32;
        if capability < variant.capability {
            let (needed, got) = (variant.capability, capability);
            return Err(fail(format!("expected compute capability {needed} or higher, got {got}")));
        }
        let cubin = match &self.cubins {
            Some(folder) => cubin::read(folder, variant.sha256, capability).map_err(fail)?,
            None => None,
        };
        let module = Module::load(&self.context, variant, cubin).map_err(fail)?;
        let function = module.function(kernel, variant).map_err(fail)?;
        modules.push(module);
        Ok(*cell.get_or_init(|| function))
    }
}

/// A cell for each variant. Chunk k holds 2^k of them, so none moves while the table grows.
#[derive(Debug, Default)]
struct Table([OnceLock<Box<[OnceLock<Function>]>>; 32]);

impl Table {
    fn cell(&self, number: u32) -> &OnceLock<Function> {
        let position = number.saturating_add(1);
        let (chunk, first) = (position.ilog2(), 1 << position.ilog2());
        let cells = self.0[chunk as usize].get_or_init(|| (0..first).map(|_| OnceLock::new()).collect());
        &cells[(position - first) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_own_cell_and_keeps_it() {
        let table = Table::default();
        let address = |number| std::ptr::from_ref(table.cell(number)).addr();
        let cells: std::collections::BTreeSet<_> = (0..1000).map(address).collect();
        assert_eq!(cells.len(), 1000);
        assert!((0..1000).all(|number| cells.contains(&address(number))));
    }

    #[test]
    fn a_variant_keeps_its_number() {
        let (first, second) = (VariantId::new(), VariantId::new());
        assert_ne!(first.number(), second.number());
        assert_eq!(first.number(), first.number());
    }
}
