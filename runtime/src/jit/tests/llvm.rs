//! The disk cache with the code generators themselves.

use std::path::Path;

use super::*;
use crate::cache::CacheOptions;
use crate::device::Gcn;

fn fresh(dir: &Path) -> Jit {
    Jit::with_cache(Llvm::default(), Arc::new(DiskCache::open(CacheOptions::new(dir))))
}

fn artifact(compiled: &Compiled) -> &Artifact {
    let Code::Object(artifact) = compiled.code() else { panic!("expected an object") };
    artifact
}

#[test]
fn code_from_disk_is_the_code_that_was_compiled() {
    let dir = tempfile::tempdir().unwrap();
    let key = Shift { n: 100, trouble: 0 };
    for target in Target::all() {
        let first = fresh(dir.path()).get(&key, target).unwrap();
        let jit = fresh(dir.path());
        let second = jit.get(&key, target).unwrap();
        assert_eq!((first.cache(), second.cache()), (CacheSource::Miss, CacheSource::Disk));
        assert_eq!(jit.counters(), Counters { disk_hits: 1, ..Counters::default() });
        assert_eq!(artifact(&first), artifact(&second));
        let symbol = &artifact(&second).symbol;
        assert!(symbol.strip_prefix("shift_").is_some_and(|digest| digest.len() == 8), "{symbol}");
        let code = &artifact(&second).code;
        assert!(code.windows(symbol.len()).any(|w| w == symbol.as_bytes()), "{target}: {symbol} is not in the code");
    }
}

#[test]
fn code_from_disk_runs() {
    let dir = tempfile::tempdir().unwrap();
    let device: Arc<dyn Device> = Arc::new(Gcn::new(Target::GFX950, None));
    let data: Vec<f32> = (0..100).map(|i| i as f32).collect();
    for source in [CacheSource::Miss, CacheSource::Disk] {
        let compiled = fresh(dir.path()).get(&Shift { n: 100, trouble: 0 }, Target::GFX950).unwrap();
        assert_eq!(compiled.cache(), source);
        let x = DeviceBuffer::from_slice(&device, &data).unwrap();
        let y = DeviceBuffer::<f32>::uninit(&device, 100).unwrap();
        let args = ShiftArgs { x: x.arg(), y: y.arg(), offset: 0.5 };
        compiled.launch::<Shift>(device.as_ref(), &args).unwrap();
        assert_eq!(y.to_vec().unwrap(), data.iter().map(|x| x + 0.5).collect::<Vec<_>>());
    }
}

#[test]
fn what_the_compiler_is_made_of_is_in_its_fingerprint() {
    let fingerprint = Llvm::default().fingerprint().unwrap();
    assert!(fingerprint.llvm.starts_with("22."), "{fingerprint:?}");
    let (version, sources) = fingerprint.lathe.split_once('+').unwrap();
    assert_eq!((version, sources.len()), (env!("CARGO_PKG_VERSION"), 16));
}
