//! Kernels by name.

use anyhow::anyhow;
use tidelock::{Kernel, REGISTRY};
use tidelock_codegen::check::similar::did_you_mean;

/// The kernel of this name.
pub fn find(name: &str) -> anyhow::Result<&'static Kernel> {
    let names = || REGISTRY.iter().map(|kernel| kernel.name);
    REGISTRY.iter().copied().find(|kernel| kernel.name == name).ok_or_else(|| {
        let all = || format!("there are {}", names().collect::<Vec<_>>().join(", "));
        anyhow!("the registry has no kernel `{name}`; {}", did_you_mean(name, names()).unwrap_or_else(all))
    })
}

/// The kernels of these names; all where none is named.
pub fn find_all(names: &[String]) -> anyhow::Result<Vec<&'static Kernel>> {
    if names.is_empty() { Ok(REGISTRY.to_vec()) } else { names.iter().map(|name| find(name)).collect() }
}
