//! What a failed compile leaves behind, so that it can be looked into.

use std::fs;
use std::path::PathBuf;

use lathe_dsl::Target;
use lathe_dsl::ir::Kernel;

use crate::options::Options;
use crate::target::backend;
use crate::toolchain;

/// Writes `kernel.kir`, `kernel.mlir` (if the kernel can be lowered), `flags.txt` and `error.txt` into a fresh
/// directory.
pub fn write(
    kernel: &Kernel,
    target: Target,
    options: &Options,
    mlir: Option<String>,
    error: &str,
) -> Result<PathBuf, String> {
    let root = options.reproducer_dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = fs::create_dir_all(&root)
        .and_then(|()| {
            let prefix = format!("lathe-{}-{target}-", kernel.name);
            tempfile::Builder::new().prefix(&prefix).disable_cleanup(true).tempdir_in(&root)
        })
        .map_err(|e| format!("{}: {e}", root.display()))?
        .keep();
    let chip = target.chip();
    let flags = format!(
        "target: {}\ntriple: {}\nfeatures: {}\nmlir passes: {}\nllvm passes: default<O3>\nllvm: {}\nlathe: {}\n",
        chip.name,
        chip.triple,
        backend(target).features(kernel),
        backend(target).pipeline(target),
        toolchain().llvm,
        toolchain().lathe,
    );
    let files = [
        ("kernel.kir", Some(kernel.to_string())),
        ("kernel.mlir", mlir),
        ("flags.txt", Some(flags)),
        ("error.txt", Some(format!("{error}\n"))),
    ];
    for (name, text) in files.into_iter().filter_map(|(n, t)| t.map(|t| (n, t))) {
        fs::write(dir.join(name), text).map_err(|e| format!("{}: {e}", dir.join(name).display()))?;
    }
    Ok(dir)
}
