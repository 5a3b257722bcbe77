//! Promises: what comes out of a bundle is what went in; nothing else ever launches; no bytes make it panic.

use std::sync::Arc;

use lathe_dsl::Target;
use lathe_dsl::artifact::{Artifact, Resources};
use lathe_dsl::prelude::*;

use super::*;
use crate::DeviceBuffer;
use crate::device::{Cpu, CpuOptions, Device};
use crate::jit::{Interpreter, Jit};

build_key! {
    /// y = 2 x, elements of a workgroup of 64.
    pub struct Double {
        /// Workgroups.
        blocks: u32 = 1, range(1, 100_000);
        /// A field that the code does not depend on.
        unused: u32 = 0, range(0, 9);
    }
}

kernel_args! {
    /// Arguments of [`Double`].
    pub struct DoubleArgs(key: Double) {
        /// `[64 · blocks]`.
        x: In<f32>[u64::from(key.blocks) * 64] align 4;
        /// `[64 · blocks]`.
        y: Out<f32>[u64::from(key.blocks) * 64] align 4;
    }
}

impl Kernel for Double {
    const NAME: &'static str = "double";
    type Args = DoubleArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.blocks, 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: DoubleArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        let x = k.buffer_load::<f32>(args.x, i);
        k.buffer_store(x + x, args.y, i);
    }
}

/// A later version of a kernel: same name and key, and something else that differs.
mod changed {
    use super::*;

    build_key! {
        /// As [`super::Double`].
        pub struct Double {
            /// Workgroups.
            blocks: u32 = 1, range(1, 100_000);
            /// Not used.
            unused: u32 = 0, range(0, 9);
        }
    }

    kernel_args! {
        /// The two arguments have changed places.
        pub struct DoubleArgs(key: Double) {
            /// Written.
            y: Out<f32>[u64::from(key.blocks) * 64] align 4;
            /// Read.
            x: In<f32>[u64::from(key.blocks) * 64] align 4;
        }
    }

    impl Kernel for Double {
        const NAME: &'static str = "double";
        type Args = DoubleArgs;

        fn launch(&self) -> Launch {
            Launch::linear(self.blocks, 64)
        }

        fn build<'k>(&self, k: &'k Builder<'k>, args: DoubleArgs<Dev<'k>>) {
            let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
            let x = k.buffer_load::<f32>(args.x, i);
            k.buffer_store(x + x, args.y, i);
        }
    }

    build_key! {
        /// The key has lost a field.
        pub struct Fewer {
            /// Workgroups.
            blocks: u32 = 1, range(1, 100_000);
        }
    }

    kernel_args! {
        /// One argument.
        pub struct FewerArgs(key: Fewer) {
            /// Written.
            y: Out<f32>[u64::from(key.blocks) * 64] align 4;
        }
    }

    impl Kernel for Fewer {
        const NAME: &'static str = "double";
        type Args = FewerArgs;

        fn launch(&self) -> Launch {
            Launch::linear(self.blocks, 64)
        }

        fn build<'k>(&self, k: &'k Builder<'k>, args: FewerArgs<Dev<'k>>) {
            k.buffer_store(k.constant(0.0f32), args.y, k.thread_id(Axis::X));
        }
    }
}

fn interpreted<K: Kernel>(key: &K, target: Target) -> Arc<Compiled> {
    Jit::new(Interpreter).get(key, target).unwrap()
}

/// What a compiler would make of a kernel: nothing that runs, but all that a bundle stores.
fn object<K: Kernel>(key: &K, target: Target) -> (Compiled, Artifact) {
    let resources = Resources { vgpr: Some(7), lds_bytes: 64, ..Resources::default() };
    let record = CompileRecord { kernel: K::NAME.to_owned(), resources, ..CompileRecord::default() };
    let artifact = Artifact { target, symbol: format!("{}_0", K::NAME), code: vec![1, 2, 3, 0, 255], record };
    let kernel = Arc::new(lathe_dsl::trace(key, target).unwrap());
    (Compiled::new(kernel, target, Code::Object(Box::new(artifact.clone())), artifact.record.clone()), artifact)
}

/// Two kernels for the CPU device and one for a chip.
fn small() -> BundleWriter {
    let mut writer = BundleWriter::new();
    for blocks in [2, 1] {
        let key = Double { blocks, unused: 0 };
        writer.add(&key, &interpreted(&key, Target::GFX950)).unwrap();
    }
    writer.add(&Double { blocks: 1, unused: 0 }, &object(&Double::defaults(), Target::SM_90).0).unwrap();
    writer
}

fn launch_doubles(bundle: &Bundle, target: Target, blocks: u32) -> Vec<f32> {
    let compiled = bundle.get(&Double { blocks, unused: 0 }, Place::Cpu(target)).unwrap();
    let device: Arc<dyn Device> = Arc::new(Cpu::new(target, CpuOptions::default()));
    let x: Vec<f32> = (0..blocks * 64).map(|i| i as f32).collect();
    let x = DeviceBuffer::from_slice(&device, &x).unwrap();
    let y = DeviceBuffer::from_slice(&device, &vec![0.0f32; blocks as usize * 64]).unwrap();
    compiled.launch::<Double>(device.as_ref(), &DoubleArgs { x: x.arg(), y: y.arg() }).unwrap();
    y.to_vec().unwrap()
}

#[test]
fn what_went_in_comes_out_and_launches_from_memory_and_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kernels.lathe");
    let writer = small();
    writer.write(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), writer.to_bytes().unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside the bundle");
    for bundle in [Bundle::open(&path).unwrap(), Bundle::from_bytes(writer.to_bytes().unwrap()).unwrap()] {
        assert_eq!(bundle.len(), 3);
        bundle.verify().unwrap();
        for blocks in [1, 2] {
            let doubled: Vec<f32> = (0..blocks * 64).map(|i| 2.0 * i as f32).collect();
            assert_eq!(launch_doubles(&bundle, Target::GFX950, blocks), doubled);
        }
        let (_, artifact) = object(&Double::defaults(), Target::SM_90);
        let compiled = bundle.get(&Double::defaults(), Target::SM_90).unwrap();
        let Code::Object(loaded) = compiled.code() else { panic!("{:?}", compiled.code()) };
        assert_eq!(**loaded, artifact);
        assert_eq!(compiled.record().resources, artifact.record.resources);
        assert_eq!((compiled.record().kernel.as_str(), compiled.record().target.as_str()), ("double", "sm_90"));
        let entries: Vec<_> = bundle.entries().map(|e| (e.place, e.key[0].clone())).collect();
        let blocks = |n| ("blocks".to_owned(), n);
        let cpu = || "cpu:gfx950".to_owned();
        assert_eq!(entries, [(cpu(), blocks(1)), (cpu(), blocks(2)), ("sm_90".to_owned(), blocks(1))]);
    }
}

#[test]
fn the_wave_width_of_a_cpu_entry_is_its_chip_s() {
    let mut writer = BundleWriter::new();
    for target in Target::all() {
        writer.add(&Double::defaults(), &interpreted(&Double::defaults(), target)).unwrap();
    }
    let bundle = Bundle::from_bytes(writer.to_bytes().unwrap()).unwrap();
    for target in Target::all() {
        let compiled = bundle.get(&Double::defaults(), Place::Cpu(target)).unwrap();
        assert_eq!((compiled.kernel().wave, compiled.target()), (target.chip().wave, target));
        assert_eq!(launch_doubles(&bundle, target, 1)[3], 6.0);
    }
}

#[test]
fn the_order_of_adding_does_not_change_the_bytes() {
    let mut other = BundleWriter::new();
    other.add(&Double::defaults(), &object(&Double::defaults(), Target::SM_90).0).unwrap();
    for blocks in [1, 2, 2] {
        let key = Double { blocks, unused: 0 };
        other.add(&key, &interpreted(&key, Target::GFX950)).unwrap();
    }
    assert_eq!(other.len(), 3);
    // Traced and packed times differ from compile to compile; the interpreter's are not stored, the artifact has none.
    assert_eq!(other.to_bytes().unwrap(), small().to_bytes().unwrap());
}

#[test]
fn a_missing_key_says_what_there_is() {
    let bundle = Bundle::from_bytes(small().to_bytes().unwrap()).unwrap();
    let error = bundle.get(&Double { blocks: 3, unused: 4 }, Place::Cpu(Target::GFX950)).unwrap_err().to_string();
    assert_eq!(
        error,
        "bundle in memory has no `double` {blocks=3, unused=4} for cpu:gfx950; it has `double` {blocks=1, unused=0} for \
         cpu:gfx950; `double` {blocks=2, unused=0} for cpu:gfx950; `double` {blocks=1, unused=0} for sm_90"
    );
    let error = bundle.get(&Double::defaults(), Target::GFX950).unwrap_err().to_string();
    assert!(error.contains("for gfx950; it has"), "{error}");
    let error = bundle.get(&Double { blocks: 0, unused: 0 }, Target::GFX950).unwrap_err().to_string();
    assert!(error.contains("blocks=0 is not allowed"), "{error}");
    let empty = Bundle::from_bytes(BundleWriter::new().to_bytes().unwrap()).unwrap();
    assert!(empty.is_empty());
    let error = empty.get(&Double::defaults(), Target::GFX950).unwrap_err().to_string();
    assert!(error.ends_with("it has nothing"), "{error}");
}

/// The list of a large bundle is cut, and names the wanted kernel's builds first.
#[test]
fn the_list_of_what_there_is_is_bounded() {
    let bundle = Bundle::from_bytes(many(1000).to_bytes().unwrap()).unwrap();
    let error = bundle.get(&Double { blocks: 1, unused: 1 }, Target::GFX950).unwrap_err().to_string();
    assert!(error.ends_with("; and 992 more") && error.len() < 1000, "{error}");
    let error = bundle.get(&Alone::defaults(), Target::GFX950).unwrap_err().to_string();
    assert!(error.contains("it has `alone` {n=2} for gfx950; `double`"), "{error}");
}

#[test]
fn another_version_of_the_kernel_is_refused() {
    let mut writer = small();
    writer.add(&Double::defaults(), &object(&Double::defaults(), Target::GFX950).0).unwrap();
    let bundle = Bundle::from_bytes(writer.to_bytes().unwrap()).unwrap();
    for place in [Place::Cpu(Target::GFX950), Place::Chip(Target::GFX950), Place::Chip(Target::SM_90)] {
        bundle.get(&Double::defaults(), place).unwrap();
        let error = bundle.get(&changed::Double::defaults(), place).unwrap_err().to_string();
        let wanted = format!("`double` {{blocks=1, unused=0}} for {place}, built from another version of the kernel");
        assert!(error.contains(&wanted), "{error}");
        let error = bundle.get(&changed::Fewer::defaults(), place).unwrap_err().to_string();
        assert!(error.contains("another version of the kernel (its key had the fields blocks, unused)"), "{error}");
    }
}

/// A checksum is no proof of who wrote the bytes: what decodes but is not the kernel that was asked for is refused too.
#[test]
fn a_payload_that_belongs_to_another_entry_is_refused() {
    let bytes = forged(&small(), Place::Cpu(Target::GFX950), &changed::Double::defaults());
    let bundle = Bundle::from_bytes(bytes).unwrap();
    let error = bundle.get(&Double::defaults(), Place::Cpu(Target::GFX950)).unwrap_err().to_string();
    assert!(error.contains("it holds another kernel"), "{error}");
    let (mut compiled, mut artifact) = object(&Double::defaults(), Target::GFX950);
    artifact.target = Target::SM_90;
    compiled = Compiled::new(
        compiled.kernel().clone(),
        Target::GFX950,
        Code::Object(Box::new(artifact)),
        CompileRecord::default(),
    );
    let mut writer = BundleWriter::new();
    writer.add(&Double::defaults(), &compiled).unwrap();
    let bundle = Bundle::from_bytes(writer.to_bytes().unwrap()).unwrap();
    let error = bundle.get(&Double::defaults(), Target::GFX950).unwrap_err().to_string();
    assert!(error.contains("it holds code for sm_90"), "{error}");
}

/// The bytes of `writer` with every payload of `place` replaced by the Kernel IR of `key`, under right checksums.
fn forged<K: Kernel>(writer: &BundleWriter, place: Place, key: &K) -> Vec<u8> {
    let bundle = Bundle::from_bytes(writer.to_bytes().unwrap()).unwrap();
    let kernel = lathe_dsl::trace(key, place.target()).unwrap();
    let (mut index, mut payloads) = (Index::decode(&bundle.index.encode().unwrap()).unwrap(), vec![]);
    for i in 0..bundle.len() {
        let mut payload = bundle.payload(i).unwrap().into_owned();
        if index.places[index.entries[i].place as usize] == place.to_string() {
            payload = postcard::to_stdvec(&kernel).unwrap();
        }
        index.entries[i].length = payload.len() as u64;
        index.hashes[i * 2 * HASH + HASH..][..HASH].copy_from_slice(blake3::hash(&payload).as_bytes());
        payloads.extend(payload);
    }
    let index = index.encode().unwrap();
    [format::head(&index).as_slice(), &index, &payloads].concat()
}

/// What opening and reading everything says about these bytes.
fn examine(bytes: Vec<u8>) -> Result<(), Error> {
    let bundle = Bundle::from_bytes(bytes)?;
    bundle.verify()?;
    bundle.get(&Double::defaults(), Place::Cpu(Target::GFX950)).map(drop)
}

#[test]
fn a_bundle_cut_at_any_byte_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.lathe");
    let whole = small().to_bytes().unwrap();
    examine(whole.clone()).unwrap();
    for n in 0..whole.len() {
        let message = examine(whole[..n].to_vec()).unwrap_err().to_string();
        assert!(message.starts_with("bundle in memory"), "{n}: {message}");
        std::fs::write(&path, &whole[..n]).unwrap();
        let message = Bundle::open(&path).expect_err("a cut file").to_string();
        let name = path.display().to_string();
        assert!(message.contains(&name), "{n}: {message}");
        assert!(message.contains("not a Lathe bundle") || message.contains("is damaged: it "), "{n}: {message}");
    }
    let message = examine([whole.as_slice(), &[0]].concat()).unwrap_err().to_string();
    assert!(message.contains("bytes after its index"), "{message}");
}

#[test]
fn a_bundle_with_any_byte_changed_is_an_error() {
    let whole = small().to_bytes().unwrap();
    for at in 0..whole.len() {
        for flip in [1, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            let message = examine(bytes).unwrap_err().to_string();
            let known = ["is damaged", "not a Lathe bundle", "has format"];
            assert!(known.iter().any(|k| message.contains(k)), "byte {at}: {message}");
        }
    }
}

/// Behind a right checksum, any index at all is decoded or refused, and never trusted.
#[test]
fn a_forged_index_never_panics() {
    let whole = small().to_bytes().unwrap();
    let length = u64::from_le_bytes(whole[12..20].try_into().unwrap()) as usize;
    let (index, payloads) = whole[HEAD..].split_at(length);
    let mut refused = 0;
    for at in 0..index.len() {
        for flip in 1..=255u8 {
            let mut index = index.to_vec();
            index[at] ^= flip;
            let bytes = [format::head(&index).as_slice(), &index, payloads].concat();
            refused += usize::from(examine(bytes).is_err());
        }
    }
    assert!(refused > index.len() * 150, "{refused}");
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kernels.lathe");
    let whole = small().to_bytes().unwrap();
    std::fs::write(&path, &whole).unwrap();
    let bundle = Bundle::open(&path).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(whole.len() as u64 - 1).unwrap();
    let message = bundle.get(&Double::defaults(), Target::SM_90).unwrap_err().to_string();
    assert!(message.contains("is damaged: `double`, entry 2") && message.contains("the file ends"), "{message}");
}

#[test]
fn what_is_no_bundle_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let message = Bundle::open(dir.path().join("none")).unwrap_err().to_string();
    assert!(message.starts_with("cannot read bundle ") && message.contains("No such file"), "{message}");
    assert!(Bundle::open(dir.path()).is_err(), "a folder");
    let message = Bundle::from_bytes(b"\x7fELF and so on".as_slice()).unwrap_err().to_string();
    assert_eq!(message, "bundle in memory: not a Lathe bundle");
    let mut later = small().to_bytes().unwrap();
    later[8] = 2;
    let message = Bundle::from_bytes(later).unwrap_err().to_string();
    assert_eq!(message, "bundle in memory has format 2; this version of Lathe reads format 1: build the bundle again");
    let message = small().write(&dir.path().join("no/such/folder")).unwrap_err().to_string();
    assert!(message.starts_with("cannot write bundle "), "{message}");
}

#[test]
fn what_does_not_belong_together_is_not_bundled() {
    let mut writer = small();
    let compiled = interpreted(&Double::defaults(), Target::GFX950);
    let message = writer.add_named("triple", &[], &compiled).unwrap_err().to_string();
    assert_eq!(message, "kernel `triple` cannot be bundled: the compiled kernel is `double`");
    let message = writer.add_named("double", &[("rows", 1)], &compiled).unwrap_err().to_string();
    assert!(message.contains("the fields rows; an earlier build's had blocks, unused"), "{message}");
}

build_key! {
    /// A kernel of which a large bundle has one build.
    pub struct Alone {
        /// Workgroups.
        n: u32 = 1, range(1, 9);
    }
}

kernel_args! {
    /// A number.
    pub struct AloneArgs(key: Alone) {
        /// Not used.
        x: Scalar<u32>;
    }
}

impl Kernel for Alone {
    const NAME: &'static str = "alone";
    type Args = AloneArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.n, 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, _: AloneArgs<Dev<'k>>) {
        k.barrier();
    }
}

/// A bundle of `n` kernels, of which one is [`Alone`].
fn many(n: u32) -> BundleWriter {
    let mut writer = BundleWriter::new();
    let alone = Alone { n: 2 };
    writer.add(&alone, &object(&alone, Target::GFX950).0).unwrap();
    for blocks in 1..n {
        let key = Double { blocks, unused: 0 };
        writer.add(&key, &object(&key, Target::GFX950).0).unwrap();
    }
    writer
}

/// The best of several tries, since the machine may be busy; a build without optimisation is not measured.
#[test]
fn a_bundle_of_1000_kernels_opens_within_a_millisecond() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many.lathe");
    many(1000).write(&path).unwrap();
    let open = || {
        let start = Instant::now();
        let bundle = Bundle::open(&path).unwrap();
        assert_eq!(bundle.len(), 1000);
        start.elapsed()
    };
    let best = (0..50).map(|_| open()).min().unwrap();
    println!("1000 kernels open in {best:?}");
    assert!(cfg!(debug_assertions) || best.as_micros() <= 1000, "{best:?}");
}
