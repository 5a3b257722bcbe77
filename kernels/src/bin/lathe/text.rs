//! Kernels in text files: what `lathe opt` and `lathe interp` share.

use std::path::Path;

use lathe_dsl::{Target, ir};

use crate::failure::Failure;

/// Reads a kernel.
pub fn read(path: &Path) -> Result<ir::Kernel, Failure> {
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| Failure::request(format!("cannot read {file}: {e}")))?;
    ir::parse(&text, &file.to_string()).map_err(Failure::request)
}

/// The chip asked for, or the first one with the kernel's wave width.
pub fn target(kernel: &ir::Kernel, name: Option<&str>) -> Result<Target, Failure> {
    if let Some(name) = name {
        return name.parse().map_err(Failure::request);
    }
    Target::all().find(|t| t.chip().wave == kernel.wave).ok_or_else(|| {
        let (wave, name) = (kernel.wave, &kernel.name);
        Failure::request(format!("kernel `{name}` is for waves of {wave}; chips have waves of 64 or 32"))
    })
}
