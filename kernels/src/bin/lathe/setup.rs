//! What the commands that compile share: compiler, cache and device, as options and environment say.

use std::sync::Arc;

use lathe_codegen::Options;
use lathe_dsl::Target;
use lathe_dsl::numerics::MmaRounding;
use lathe_runtime::bundle::Place;
use lathe_runtime::cache::{CacheMode, CacheOptions, DiskCache};
use lathe_runtime::env;
use lathe_runtime::jit::{Jit, Llvm};

use crate::failure::Failure;

#[derive(clap::Args)]
pub struct CacheArgs {
    /// Neither read nor write the disk cache.
    #[arg(long)]
    no_cache: bool,
}

impl CacheArgs {
    /// The disk cache that the environment describes, unless it is switched off.
    pub fn cache(&self) -> Result<Option<Arc<DiskCache>>, Failure> {
        if self.no_cache {
            return Ok(None);
        }
        let options = CacheOptions::from_env().map_err(Failure::request)?;
        Ok((options.mode != CacheMode::Off).then(|| Arc::new(DiskCache::open(options))))
    }

    /// A JIT with LLVM and that cache.
    pub fn jit(&self) -> Result<Jit, Failure> {
        Ok(with_cache(llvm()?, self.cache()?))
    }
}

/// `exact`, or the chip whose tensor cores are followed.
pub fn rounding(text: &str) -> Result<MmaRounding, String> {
    MmaRounding::named(text).ok_or_else(|| {
        let known = MmaRounding::ALL.map(MmaRounding::name).join(", ");
        format!("unknown rounding of matrix products; known are {known}")
    })
}

/// A JIT with `compiler` and, if there is one, a disk cache.
pub fn with_cache(compiler: Llvm, cache: Option<Arc<DiskCache>>) -> Jit {
    match cache {
        Some(cache) => Jit::with_cache(compiler, cache),
        None => Jit::new(compiler),
    }
}

/// LLVM, as the environment says.
pub fn llvm() -> Result<Llvm, Failure> {
    let reproducers = env::REPRODUCER_DIR.get().map_err(Failure::request)?;
    Ok(Llvm { options: Options::default().with_reproducer_dir(reproducers) })
}

/// The cache that the environment describes, even if it is off.
pub fn environment_cache() -> Result<DiskCache, Failure> {
    CacheOptions::from_env().map(DiskCache::open).map_err(Failure::request)
}

/// A list of chips.
pub fn chips(names: &[String]) -> Result<Vec<Target>, Failure> {
    unique(names.iter().map(|n| n.parse::<Target>()))
}

/// A list of chips and CPU devices.
pub fn places(names: &[String]) -> Result<Vec<Place>, Failure> {
    unique(names.iter().map(|n| n.parse::<Place>()))
}

/// A list without repetitions, or its first error.
fn unique<T: PartialEq, E: std::fmt::Display>(items: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, Failure> {
    let mut list = vec![];
    for item in items {
        let item = item.map_err(Failure::request)?;
        if !list.contains(&item) {
            list.push(item);
        }
    }
    Ok(list)
}
