//! Promise: textures and surfaces of an NVIDIA GPU read and store what device `cpu` says, within the bounds that the language states, and
//! live as long as launches use them. What needs texture units does nothing without a GPU, and says why.

use std::sync::Arc;

use half::f16;
use lathe_dsl::prelude::*;
use lathe_runtime::device::{Device, Stream};
use lathe_runtime::{DeviceBuffer, DeviceImage, Engine, Error};

use crate::filetests::machine;

build_key! {
    /// Copies a texture to a surface.
    pub struct Shade {
        /// Texels of a row.
        width: u32 = 7, range(1, 131_072);
        /// Rows.
        height: u32 = 5, range(1, 65_536);
        /// Whether by texture units, where there are some.
        hardware: u32 = 1, range(0, 1);
    }
}

impl Shade {
    fn image(&self) -> Image2d {
        let units = if self.hardware == 1 { Units::WhereThereAre } else { Units::Emulated };
        Image2d::new(self.width, self.height).units(units)
    }
}

kernel_args! {
    /// Arguments of [`Shade`].
    pub struct ShadeArgs(key: Shade) {
        /// Read.
        from: Texture<f16>[key.image()];
        /// Stored to.
        to: Surface<f16>[key.image()];
    }
}

impl Kernel for Shade {
    const NAME: &'static str = "shade";
    type Args = ShadeArgs;

    fn launch(&self) -> Launch {
        Launch::linear((self.width * self.height).div_ceil(64), 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: ShadeArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        let (x, y) = (i.rem_floor(self.width).bitcast::<i32>(), i.div_floor(self.width).bitcast::<i32>());
        k.surface_store(k.texture_fetch::<f16, _>(args.from, x, y), args.to, x, y);
    }
}

/// Texels that differ: `4 · width · height` of them.
fn texels(key: &Shade, plus: u32) -> Vec<f16> {
    (0..4 * key.width * key.height).map(|i| f16::from_f32((i + plus) as f32 / 4.0)).collect()
}

/// Runs it where kernels take textures.
fn on_devices_with_units(promise: impl Fn(&Engine)) {
    promise(&Engine::open("cpu:sm_90", None).expect("it runs anywhere"));
    match machine::gpu() {
        Ok(_) => promise(&Engine::open("cuda", None).expect("there is a GPU")),
        Err(reason) => println!("cuda skipped: {reason}"),
    }
}

#[test]
fn images_may_be_dropped_while_they_are_used() {
    on_devices_with_units(|engine| {
        let (device, key) = (&engine.device, Shade::defaults());
        let kernel = engine.jit.get(&key, device.target()).unwrap();
        let stream = device.stream().unwrap();
        let result = DeviceImage::<f16>::from_texels(device, key.image(), &texels(&key, 1000)).unwrap();
        for round in 0..4 {
            let from = DeviceImage::from_texels(device, key.image(), &texels(&key, round)).unwrap();
            let middle = DeviceImage::uninit(device, key.image()).unwrap();
            let args = ShadeArgs { from: from.texture(), to: middle.surface() };
            kernel.launch_on::<Shade>(&stream, &args).unwrap();
            let args = ShadeArgs { from: middle.texture(), to: result.surface() };
            kernel.launch_on::<Shade>(&stream, &args).unwrap();
            drop((from, middle));
            stream.synchronize().unwrap();
            assert_eq!(result.to_vec().unwrap(), texels(&key, round), "{}", device.name());
        }
    });
}

#[test]
fn a_graph_keeps_its_images() {
    on_devices_with_units(|engine| {
        let (device, key) = (&engine.device, Shade::defaults());
        let kernel = engine.jit.get(&key, device.target()).unwrap();
        let stream = device.stream().unwrap();
        let result = DeviceImage::<f16>::from_texels(device, key.image(), &texels(&key, 9)).unwrap();
        let from = DeviceImage::from_texels(device, key.image(), &texels(&key, 3)).unwrap();
        let work = |s: &Stream| kernel.launch_on::<Shade>(s, &ShadeArgs { from: from.texture(), to: result.surface() });
        let graph = stream.capture(work).unwrap();
        drop(from);
        // What comes next may get the numbers of what was dropped, if that was not kept.
        let other = DeviceImage::from_texels(device, key.image(), &texels(&key, 70)).unwrap();
        assert_eq!(result.to_vec().unwrap(), texels(&key, 9), "nothing has run");
        graph.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(result.to_vec().unwrap(), texels(&key, 3), "{}", device.name());
        drop((graph, other));
    });
}

#[test]
fn bad_images_are_refused_before_the_driver() {
    on_devices_with_units(|engine| {
        let (device, key) = (&engine.device, Shade::defaults());
        let told = |error: Result<DeviceImage<f16>, Error>| error.map(drop).unwrap_err().to_string();
        for (width, height, wanted) in [
            (0, 5, "an image is 0x5 texels; allowed are 1x1 to 131072x65536"),
            (7, 0, "an image is 7x0 texels; allowed are 1x1 to 131072x65536"),
            (131_073, 1, "an image is 131073x1 texels; allowed are 1x1 to 131072x65536"),
            (131_072, 65_536, "an image is 131072x65536 texels of f16, past the 4294967040 bytes of one image"),
        ] {
            assert_eq!(told(DeviceImage::uninit(device, Image2d::new(width, height))), wanted);
            assert_eq!(told(DeviceImage::from_texels(device, Image2d::new(width, height), &[])), wanted);
        }
        let few = DeviceImage::from_texels(device, key.image(), &texels(&key, 0)[1..]);
        assert_eq!(told(few), "139 elements for an image that has 140");

        let kernel = engine.jit.get(&key, device.target()).unwrap();
        let image = |image: Image2d| DeviceImage::<f16>::from_texels(device, image, &texels(&key, 0)).unwrap();
        let (from, to) = (image(key.image()), image(key.image()));
        let refused = |args: &ShadeArgs<Host<'_>>| kernel.launch::<Shade>(&**device, args).unwrap_err().to_string();
        assert_eq!(
            refused(&ShadeArgs { from: image(key.image().linear()).texture(), to: to.surface() }),
            "argument `from` of `shade` is a texture of 7x5 texels of f16, filter linear, coordinates texels; this key's kernel \
             wants a texture of 7x5 texels of f16, filter nearest, coordinates texels"
        );
        assert_eq!(
            refused(&ShadeArgs { from: from.texture(), to: image(Image2d::new(5, 7)).surface() }),
            "argument `to` of `shade` is a surface of 5x7 texels of f16; this key's kernel wants a surface of 7x5 texels of f16"
        );
        assert_eq!(
            refused(&ShadeArgs { from: from.texture(), to: image(key.image().units(Units::Emulated)).surface() }),
            "argument `to` of `shade` is a buffer of 140 elements of f16; this key's kernel wants a surface of 7x5 texels of f16"
        );
        let same = refused(&ShadeArgs { from: to.texture(), to: to.surface() });
        assert_eq!(same, "arguments `from` and `to` of `shade` overlap, and the kernel writes to one of them");
        let elsewhere = Engine::open("cpu:sm_90", None).unwrap();
        let foreign = DeviceImage::<f16>::from_texels(&elsewhere.device, key.image(), &texels(&key, 0)).unwrap();
        let other = refused(&ShadeArgs { from: foreign.texture(), to: to.surface() });
        assert_eq!(other, "argument `from` of `shade` lies on another device than the one it is launched on");
    });
}

/// Where there are no texture units, images are buffers, and kernels that insist on them are refused.
#[test]
fn without_texture_units_images_are_buffers() {
    for (name, emulated) in [("cpu", 1), ("gcn:gfx950", 1), ("gcn:gfx1201", 1), ("cpu:sm_90", 0)] {
        let engine = Engine::open(name, Some(2)).unwrap();
        let (device, key) = (&engine.device, Shade { hardware: emulated, ..Shade::defaults() });
        let kernel = engine.jit.get(&key, device.target()).unwrap();
        let from = DeviceImage::<f16>::from_texels(device, key.image(), &texels(&key, 5)).unwrap();
        let to = DeviceImage::<f16>::from_texels(device, key.image(), &texels(&key, 0)).unwrap();
        kernel.launch::<Shade>(&**device, &ShadeArgs { from: from.texture(), to: to.surface() }).unwrap();
        assert_eq!(to.to_vec().unwrap(), texels(&key, 5), "{name}");
        if emulated == 1 {
            let error = DeviceImage::<f16>::uninit(device, key.image().units(Units::Hardware)).map(drop).unwrap_err();
            assert!(matches!(error, Error::NoImages { .. }), "{error}");
        }
    }
}

build_key! {
    /// Reads an image at places that a buffer has.
    pub struct Probe {
        /// Texels of a row.
        width: u32 = 1, range(1, 64);
        /// Rows.
        height: u32 = 1, range(1, 64);
        /// Places.
        n: u32 = 64, range(1, 1 << 16);
        /// 0: fetches; 1: nearest samples; 2: linear ones.
        how: u32 = 0, range(0, 2);
        /// Whether coordinates are normalized.
        normalized: u32 = 0, range(0, 1);
        /// Whether results are f16.
        half: u32 = 0, range(0, 1);
    }
}

impl Probe {
    fn image(&self) -> Image2d {
        let image = Image2d::new(self.width, self.height);
        let image = if self.how == 2 { image.linear() } else { image };
        if self.normalized == 1 { image.normalized() } else { image }
    }

    fn launch_shape(&self) -> Launch {
        Launch::linear(self.n.div_ceil(64), 64)
    }
}

kernel_args! {
    /// Arguments of [`Probe`].
    pub struct ProbeArgs(key: Probe) {
        /// The image.
        image: Texture<f16>[key.image()];
        /// Places along x, then along y: bits of f32, of fetches i32.
        places: In<u32>[u64::from(key.n) * 2] align 4;
        /// Four a place.
        found: Out<f32>[u64::from(key.n) * 4] align 16;
    }
}

impl Kernel for Probe {
    const NAME: &'static str = "probe";
    type Args = ProbeArgs;

    fn launch(&self) -> Launch {
        self.launch_shape()
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: ProbeArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        let at = |axis: u32| k.buffer_load::<u32>(args.places, i + axis * self.n);
        k.if_(i.lt(self.n), || {
            let whole = |v: V<'k, Vector<f16, 4>>| v.to::<Vector<f32, 4>>();
            let found = match (self.how, self.half) {
                (0, 0) => k.texture_fetch::<f32, _>(args.image, at(0).bitcast::<i32>(), at(1).bitcast::<i32>()),
                (0, _) => whole(k.texture_fetch::<f16, _>(args.image, at(0).bitcast::<i32>(), at(1).bitcast::<i32>())),
                (_, 0) => k.texture_sample::<f32, _>(args.image, at(0).bitcast::<f32>(), at(1).bitcast::<f32>()),
                _ => whole(k.texture_sample::<f16, _>(args.image, at(0).bitcast::<f32>(), at(1).bitcast::<f32>())),
            };
            k.buffer_store(found, args.found, i * 4);
        });
    }
}

impl Probe {
    /// What it finds on a device.
    fn found(&self, engine: &Engine, texels: &[f16], places: &[u32]) -> Vec<f32> {
        let device = &engine.device;
        let kernel = engine.jit.get(self, device.target()).expect("it compiles");
        let image = DeviceImage::from_texels(device, self.image(), texels).expect("there is room");
        let places = DeviceBuffer::from_slice(device, places).expect("there is room");
        let found = DeviceBuffer::from_slice(device, &vec![7.5f32; 4 * self.n as usize]).expect("there is room");
        let args = ProbeArgs { image: image.texture(), places: places.arg(), found: found.arg() };
        kernel.launch::<Self>(&**device, &args).expect("it runs");
        found.to_vec().expect("it is read")
    }
}

const EXTENTS: [[u32; 2]; 11] =
    [[1, 1], [2, 1], [1, 7], [3, 2], [2, 2], [7, 3], [16, 16], [33, 7], [7, 33], [33, 33], [2, 16]];

/// A device with texture units, beside the CPU device.
fn both() -> Option<[Engine; 2]> {
    match machine::gpu() {
        Ok(_) => Some(["cpu:sm_90", "cuda"].map(|name| Engine::open(name, None).expect("there is one"))),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

/// Numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// From −8 to 8.
    fn texel(&mut self) -> f16 {
        f16::from_f32((self.next() % 4097) as f32 / 256.0 - 8.0)
    }
}

/// Along an axis of `extent` texels: edges, centres, what lies outside, and places in between.
fn places(extent: u32, random: &mut Random) -> Vec<f32> {
    let e = extent as f32;
    let mut all = vec![
        f32::NEG_INFINITY,
        -1e30,
        -3.0,
        -1.0,
        -0.5,
        -1.0 / 512.0,
        -0.0,
        1e-40,
        1.0 / 512.0,
        0.25,
        0.5,
        0.5 + 1.0 / 512.0,
        0.75,
        1.0 - 1.0 / 512.0,
        1.0,
        e / 2.0,
        e - 1.0,
        e - 0.5,
        e - 0.25,
        e - 1.0 / 1024.0,
        e,
        e + 0.3,
        1e30,
        f32::INFINITY,
        f32::NAN,
    ];
    all.extend((0..12).map(|_| (random.next() % 65536) as f32 / 65536.0 * (e + 2.0) - 1.0));
    all
}

/// Every pair of two lists: all along x, then all along y.
fn pairs<T: Copy>(x: &[T], y: &[T]) -> (Vec<T>, u32) {
    let xs = y.iter().flat_map(|_| x.iter().copied());
    let ys = y.iter().flat_map(|y| x.iter().map(|_| *y));
    (xs.chain(ys).collect(), (x.len() * y.len()) as u32)
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn a_gpus_fetches_equal_the_interpreters() {
    let Some([cpu, gpu]) = both() else { return };
    let mut random = Random(1);
    for [width, height] in EXTENTS {
        // Whatever bits there are.
        let texels: Vec<f16> = (0..4 * width * height).map(|_| f16::from_bits(random.next() as u16)).collect();
        let columns = |extent: u32| -> Vec<u32> {
            let around = (-3..extent as i32 + 3).chain([i32::MIN, i32::MAX, 1 << 28, -(1 << 28)]);
            around.map(i32::cast_unsigned).collect()
        };
        let (places, n) = pairs(&columns(width), &columns(height));
        for half in [0, 1] {
            for normalized in [0, 1] {
                let key = Probe { width, height, n, how: 0, normalized, half };
                let [want, got] = [&cpu, &gpu].map(|engine| key.found(engine, &texels, &places));
                let wrong = want.iter().zip(&got).position(|(a, b)| !same(*a, *b));
                assert_eq!(wrong, None, "{key:?}: {:?}", wrong.map(|i| (want[i], got[i])));
            }
        }
    }
}

/// What an image is at places, and around them, in plain Rust.
struct Seen<'t> {
    key: Probe,
    texels: &'t [f16],
}

impl Seen<'_> {
    fn texel(&self, x: i64, y: i64, c: usize) -> f64 {
        let clamp = |at: i64, extent: u32| at.clamp(0, i64::from(extent) - 1) as usize;
        self.texels[4 * (clamp(y, self.key.height) * self.key.width as usize + clamp(x, self.key.width)) + c].to_f64()
    }

    /// Places in texels, inside the image.
    fn place(&self, at: [f32; 2]) -> [f32; 2] {
        let extents = [self.key.width, self.key.height].map(|e| e as f32);
        std::array::from_fn(|i| {
            let scaled = if self.key.normalized == 1 { at[i] * extents[i] } else { at[i] };
            if scaled.is_nan() { 0.0 } else { scaled.clamp(0.0, extents[i]) }
        })
    }

    /// Values that a channel may have of a nearest sample.
    fn nearest(&self, at: [f32; 2], c: usize) -> Vec<f64> {
        let [x, y] = self.place(at).map(|p| [-1.0, 0.0, 1.0].map(|d| (f64::from(p) + d / 256.0).floor() as i64));
        y.iter().flat_map(|y| x.iter().map(|x| self.texel(*x, *y, c))).collect()
    }

    /// Least and largest value of a linear sample at places a step around, and the largest texel there.
    fn linear(&self, at: [f32; 2], c: usize) -> [f64; 3] {
        let [x, y] = self.place(at).map(|p| ((f64::from(p) - 0.5) * 256.0 + 0.5).floor() as i64);
        let (mut least, mut largest, mut size) = (f64::INFINITY, f64::NEG_INFINITY, 0.0f64);
        for (dx, dy) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy))) {
            let [(x, a), (y, b)] = [x + dx, y + dy].map(|s| (s >> 8, (s & 255) as f64 / 256.0));
            let [[p, q], [r, s]] = [0, 1].map(|j| [0, 1].map(|i| self.texel(x + i, y + j, c)));
            let value = (p * (1.0 - a) + q * a) * (1.0 - b) + (r * (1.0 - a) + s * a) * b;
            (least, largest) = (least.min(value), largest.max(value));
            size = [p, q, r, s].into_iter().fold(size, |size, t| size.max(t.abs()));
        }
        [least, largest, size]
    }
}

/// A channel of a sample: what it is of, its place, its number, and what the CPU device and the GPU have for it.
struct Sampled<'s> {
    seen: &'s Seen<'s>,
    place: [f32; 2],
    channel: usize,
    want: f32,
    got: f32,
}

/// Samples images of all extents, `how` as [`Probe`] has it, and shows each channel to `look`. Tells how many are not the CPU device's.
fn sampled(engines: &[Engine; 2], how: u32, seed: u64, mut look: impl FnMut(Sampled<'_>)) {
    let mut random = Random(seed);
    let (mut all, mut other) = (0, 0);
    for [width, height] in EXTENTS {
        let texels: Vec<f16> = (0..4 * width * height).map(|_| random.texel()).collect();
        for normalized in [0, 1] {
            let list = |extent: u32, random: &mut Random| -> Vec<f32> {
                let scale = if normalized == 1 { extent as f32 } else { 1.0 };
                places(extent, random).into_iter().map(|p| p / scale).collect()
            };
            let (at, n) = pairs(&list(width, &mut random), &list(height, &mut random));
            let bits: Vec<u32> = at.iter().map(|p| p.to_bits()).collect();
            for half in [0, 1] {
                let key = Probe { width, height, n, how, normalized, half };
                let [want, got] = engines.each_ref().map(|engine| key.found(engine, &texels, &bits));
                let seen = Seen { key, texels: &texels };
                for (i, (want, got)) in want.into_iter().zip(got).enumerate() {
                    all += 1;
                    other += usize::from(!same(want, got));
                    let place = [at[i / 4], at[i / 4 + n as usize]];
                    look(Sampled { seen: &seen, place, channel: i % 4, want, got });
                }
            }
        }
    }
    println!("{other} of {all} channels are not the CPU device's");
}

/// Nearest samples are a texel that the bound allows.
#[test]
fn a_gpus_nearest_samples_are_texels_at_the_place() {
    let Some(engines) = both() else { return };
    sampled(&engines, 1, 2, |Sampled { seen, place, channel, want, got }| {
        let allowed = seen.nearest(place, channel);
        for (of, x) in [("cpu", want), ("the GPU", got)] {
            assert!(allowed.contains(&f64::from(x)), "{of}, {:?} at {place:?}: {x} of {allowed:?}", seen.key);
        }
    });
}

/// How much of the largest texel a linear sample may be off by besides: each of the four weights is a number of 8 bits behind the point.
const WEIGHTS: f64 = 1.0 / 128.0;

/// Linear samples lie between what places a step around give, and 2^-7 of the largest texel; the CPU device's do too. How much of
/// that is used is told.
#[test]
fn a_gpus_linear_samples_keep_the_bound() {
    let Some(engines) = both() else { return };
    let (mut largest, mut worst) = (0.0f64, 0.0f64);
    sampled(&engines, 2, 3, |Sampled { seen, place, channel, want, got }| {
        largest = largest.max((f64::from(want) - f64::from(got)).abs());
        let [low, high, size] = seen.linear(place, channel);
        for (of, x) in [("cpu", want), ("the GPU", got)] {
            let beyond = (low - f64::from(x)).max(f64::from(x) - high) / size.max(f64::MIN_POSITIVE);
            assert!(beyond <= WEIGHTS, "{of}, {:?} at {place:?}: {x} in {low}..{high}, {size}", seen.key);
            worst = worst.max(beyond);
        }
    });
    println!(
        "linear samples differ by up to {largest:.3e}, of texels up to 8; beyond what places a step around give by up to {worst:.2e} of \
         the largest texel there"
    );
}

/// The interpreter's samples keep the bound that the language states, without a GPU.
#[test]
fn the_interpreters_samples_keep_the_bounds() {
    let engine = Engine::open("cpu:sm_90", None).expect("it runs anywhere");
    let mut random = Random(4);
    for ([width, height], normalized) in [([1, 1], 0), ([3, 2], 1), ([7, 3], 0), ([16, 5], 1)] {
        let texels: Vec<f16> = (0..4 * width * height).map(|_| random.texel()).collect();
        let scale = |extent: u32| if normalized == 1 { extent as f32 } else { 1.0 };
        let [x, y] =
            [width, height].map(|e| -> Vec<f32> { places(e, &mut random).into_iter().map(|p| p / scale(e)).collect() });
        let (at, n) = pairs(&x, &y);
        let bits: Vec<u32> = at.iter().map(|p| p.to_bits()).collect();
        for (how, half) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            let key = Probe { width, height, n, how, normalized, half };
            let seen = Seen { key, texels: &texels };
            for (i, found) in key.found(&engine, &texels, &bits).into_iter().enumerate() {
                let place = [at[i / 4], at[i / 4 + n as usize]];
                let holds = match how {
                    1 => seen.nearest(place, i % 4).contains(&f64::from(found)),
                    _ => {
                        let [low, high, size] = seen.linear(place, i % 4);
                        (low - size * WEIGHTS..=high + size * WEIGHTS).contains(&f64::from(found))
                    }
                };
                assert!(holds, "{key:?} at {place:?}: {found}");
            }
        }
    }
}

build_key! {
    /// Stores texels where a buffer says.
    pub struct Scatter {
        /// Texels of a row.
        width: u32 = 1, range(1, 64);
        /// Rows.
        height: u32 = 1, range(1, 64);
        /// Places.
        n: u32 = 64, range(1, 1 << 16);
    }
}

kernel_args! {
    /// Arguments of [`Scatter`].
    pub struct ScatterArgs(key: Scatter) {
        /// Columns, then rows.
        places: In<i32>[u64::from(key.n) * 2] align 4;
        /// Texels of f16.
        half: Surface<f16>[Image2d::new(key.width, key.height)];
        /// Texels of f32.
        single: Surface<f32>[Image2d::new(key.width, key.height)];
    }
}

impl Kernel for Scatter {
    const NAME: &'static str = "scatter";
    type Args = ScatterArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.n.div_ceil(64), 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: ScatterArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        k.if_(i.lt(self.n), || {
            let [x, y] = [0, 1].map(|axis| k.buffer_load::<i32>(args.places, i + axis * self.n));
            let number = i.to::<f32>();
            let texel = [number, -number, number * 0.5, k.constant(-0.0f32)];
            k.surface_store(k.vector(texel.map(|x| x.to::<f16>())), args.half, x, y);
            k.surface_store(k.vector(texel), args.single, x, y);
        });
    }
}

impl Scatter {
    /// Bits of both images.
    fn stored(&self, device: &Arc<dyn Device>, engine: &Engine, places: &[i32]) -> (Vec<u16>, Vec<u32>) {
        let (image, elements) = (Image2d::new(self.width, self.height), (4 * self.width * self.height) as usize);
        let kernel = engine.jit.get(self, device.target()).expect("it compiles");
        let half = DeviceImage::from_texels(device, image, &vec![f16::from_f32(9.5); elements]).expect("room");
        let single = DeviceImage::from_texels(device, image, &vec![9.5f32; elements]).expect("room");
        let places = DeviceBuffer::from_slice(device, places).expect("room");
        let args = ScatterArgs { places: places.arg(), half: half.surface(), single: single.surface() };
        kernel.launch::<Self>(&**device, &args).expect("it runs");
        let half = half.to_vec().expect("read").into_iter().map(f16::to_bits).collect();
        (half, single.to_vec().expect("read").into_iter().map(f32::to_bits).collect())
    }
}

/// Inside, right outside, and where a byte offset wraps.
fn around(extent: u32) -> Vec<i32> {
    (-3..extent as i32 + 3).chain([i32::MIN, i32::MAX, 1 << 28, 1 << 29, 1 << 27, -(1 << 28)]).collect()
}

#[test]
fn a_gpus_surfaces_take_what_the_interpreters_take() {
    let Some([cpu, gpu]) = both() else { return };
    for [width, height] in EXTENTS {
        let (places, n) = pairs(&around(width), &around(height));
        let key = Scatter { width, height, n };
        let [want, got] = [&cpu, &gpu].map(|engine| key.stored(&engine.device, engine, &places));
        assert_eq!(want, got, "{key:?}");
    }
}

/// The places inside of the image hold what was stored there, on the CPU device.
#[test]
fn the_interpreters_surfaces_hold_what_was_stored_inside() {
    let engine = Engine::open("cpu:sm_90", None).expect("it runs anywhere");
    let [width, height] = [7, 3];
    let (places, n) = pairs(&around(width), &around(height));
    let (half, single) = Scatter { width, height, n }.stored(&engine.device, &engine, &places);
    for i in 0..(width * height) as usize {
        let (x, y) = ((i as u32 % width) as i32, (i as u32 / width) as i32);
        let number = (0..n as usize).find(|j| (places[*j], places[j + n as usize]) == (x, y)).expect("a place") as f32;
        let texel = [number, -number, number * 0.5, -0.0];
        assert_eq!(single[4 * i..][..4], texel.map(f32::to_bits), "{x}, {y}");
        assert_eq!(half[4 * i..][..4], texel.map(|t| f16::from_f32(t).to_bits()), "{x}, {y}");
    }
}

/// NVIDIA's assembler takes what is made for every chip with texture units.
#[test]
fn ptxas_takes_images() {
    let ptxas = || std::process::Command::new("ptxas");
    if ptxas().arg("--version").output().is_err() {
        println!("skipped: there is no ptxas on this machine");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("k.ptx");
    for target in ["sm_90", "sm_89", "sm_120a"] {
        let target: Target = target.parse().expect("a chip");
        let linear = Probe { how: 2, normalized: 1, half: 1, ..Probe::defaults() };
        for artifact in [
            crate::compiled(&Probe::defaults(), target),
            crate::compiled(&linear, target),
            crate::compiled(&Scatter::defaults(), target),
        ] {
            std::fs::write(&file, &artifact.code).expect("it is written");
            let arch = format!("-arch={target}");
            let out = ptxas().arg(arch).arg(&file).args(["-o", "/dev/null"]).output().expect("it runs");
            assert!(out.status.success(), "{target}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
}

/// The instructions, with handles that are kernel arguments, for every chip with texture units.
#[test]
fn images_are_read_and_stored_to_by_their_arguments() {
    for target in ["sm_90", "sm_89", "sm_120a"] {
        let target: Target = target.parse().expect("a chip");
        let text = |artifact: lathe_dsl::artifact::Artifact| String::from_utf8(artifact.code).expect("PTX is text");
        let fetches = text(crate::compiled(&Probe::defaults(), target));
        let samples = text(crate::compiled(&Probe { how: 1, ..Probe::defaults() }, target));
        let stores = text(crate::compiled(&Scatter::defaults(), target));
        for (text, wanted) in [
            (&fetches, "tex.2d.v4.f32.s32"),
            (&samples, "tex.2d.v4.f32.f32"),
            (&stores, "sust.b.2d.v4.b16.zero"),
            (&stores, "sust.b.2d.v4.b32.zero"),
        ] {
            // A register that a parameter was loaded to, no name of a declared texture.
            let line = text.lines().find(|line| line.contains(wanted)).unwrap_or_else(|| panic!("{wanted}: {text}"));
            assert!(line.contains("[%rd"), "{line}");
        }
    }
}
