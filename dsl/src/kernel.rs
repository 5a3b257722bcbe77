//! A kernel as its author declares it: build key, arguments, launch shape, body — each once.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

use crate::builder::{self, Buffer, Builder, Element, Surface, Texel, Texture, V};
pub use crate::error::KeyError;
use crate::error::{Error, Refusal, Warning};
use crate::image::Image2d;
use crate::ir::{self, Access, Coordinates, Filter, ImageType, Launch, Param, ParamKind};
use crate::target::Target;
use crate::verify;

/// Values a key field may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowed {
    /// One of these.
    OneOf(&'static [u32]),
    /// From the first to the second, both included.
    Range(u32, u32),
}

impl Allowed {
    /// Whether `value` is allowed.
    pub fn contains(self, value: u32) -> bool {
        match self {
            Self::OneOf(list) => list.contains(&value),
            Self::Range(lo, hi) => (lo..=hi).contains(&value),
        }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OneOf(list) => {
                let list: Vec<String> = list.iter().map(u32::to_string).collect();
                write!(f, "one of {}", list.join(", "))
            }
            Self::Range(lo, hi) => write!(f, "a whole number from {lo} to {hi}"),
        }
    }
}

/// One field of a build key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyField {
    /// Name, as in `--set NAME=VALUE`.
    pub name: &'static str,
    /// First line of its documentation.
    pub doc: &'static str,
    /// Value if none is set.
    pub default: u32,
    /// Values it may have.
    pub allowed: Allowed,
}

/// A build key: the numbers that one compiled kernel is made for. Made by [`build_key!`](crate::build_key).
pub trait BuildKey: Copy + Eq + Hash + Debug + Send + Sync + 'static {
    /// Its fields, in order.
    const FIELDS: &'static [KeyField];

    /// The key with every default.
    fn defaults() -> Self;

    /// Value of field `index`.
    fn get(&self, index: usize) -> u32;

    /// Sets field `index`; the value is checked later.
    fn put(&mut self, index: usize, value: u32);
}

/// A kernel: its build key is the type that implements this.
pub trait Kernel: BuildKey {
    /// Name, for the command line, messages and the entry point: letters, digits, `_`.
    const NAME: &'static str;

    /// The argument struct that [`kernel_args!`](crate::kernel_args) made.
    type Args: Arguments<Self>;

    /// What the fields' own limits cannot say about the key's values together: the reason why they are refused.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Grid, workgroup, and launch hints for this key.
    fn launch(&self) -> Launch;

    /// The kernel's body: runs once per key, on the host, and leaves a trace of device operations.
    fn build<'k>(&self, k: &'k Builder<'k>, args: <Self::Args as Arguments<Self>>::On<Dev<'k>>);
}

/// The key as `field=value` pairs, separated by `, `.
pub fn describe<K: BuildKey>(key: &K) -> String {
    let pairs: Vec<String> = K::FIELDS.iter().enumerate().map(|(i, f)| format!("{}={}", f.name, key.get(i))).collect();
    pairs.join(", ")
}

/// A key from `field=value` settings over the defaults.
///
/// # Errors
/// An unknown field, one that is set twice, a value that is no number or not allowed, or values that do not go together.
pub fn key_from<'a, K: Kernel>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<K, KeyError> {
    let mut key = K::defaults();
    let mut set = vec![false; K::FIELDS.len()];
    for (name, text) in settings {
        let Some((index, field)) = K::FIELDS.iter().enumerate().find(|(_, f)| f.name == name) else {
            let known: Vec<&str> = K::FIELDS.iter().map(|f| f.name).collect();
            return Err(KeyError::UnknownField { kernel: K::NAME, field: name.to_owned(), known: known.join(", ") });
        };
        if std::mem::replace(&mut set[index], true) {
            return Err(KeyError::SetTwice { kernel: K::NAME, field: field.name });
        }
        match text.parse() {
            // Rust's own parser also takes a sign.
            Ok(value) if field.allowed.contains(value) && !text.starts_with('+') => key.put(index, value),
            _ => return Err(bad_value::<K>(field, text)),
        }
    }
    check_key(&key)?;
    Ok(key)
}

fn bad_value<K: Kernel>(field: &KeyField, value: &str) -> KeyError {
    KeyError::BadValue {
        kernel: K::NAME,
        field: field.name,
        value: value.to_owned(),
        allowed: field.allowed.to_string(),
    }
}

/// Checks a key's values.
///
/// # Errors
/// The first field whose value is not allowed, or why the values do not go together.
pub fn check_key<K: Kernel>(key: &K) -> Result<(), KeyError> {
    for (i, field) in K::FIELDS.iter().enumerate() {
        if !field.allowed.contains(key.get(i)) {
            return Err(bad_value::<K>(field, &key.get(i).to_string()));
        }
    }
    key.check().map_err(|reason| KeyError::BadKey { kernel: K::NAME, key: describe(key), reason })
}

/// Traces the kernel of a build key for a chip and verifies it.
///
/// # Errors
/// The key is not allowed, or the traced kernel is refused (with the location of the author's call).
pub fn trace<K: Kernel>(key: &K, target: Target) -> Result<ir::Kernel, Error> {
    trace_with_warnings(key, target).map(|(kernel, _)| kernel)
}

/// As [`trace`], and what the verifier warns of.
///
/// # Errors
/// As [`trace`].
pub fn trace_with_warnings<K: Kernel>(key: &K, target: Target) -> Result<(ir::Kernel, Vec<Warning>), Error> {
    check_key(key)?;
    let refused = |refusal: Refusal| Error::Refused { kernel: K::NAME.to_owned(), refusal: Box::new(refusal) };
    let params = K::Args::declare(key, target);
    let kernel = builder::build(K::NAME, target, key.launch(), params, |k| {
        key.build(k, K::Args::device(key, k));
    })
    .map_err(refused)?;
    let warnings = verify::verify(&kernel, target).map_err(refused)?;
    Ok((kernel, warnings))
}

/// Where an argument struct is used; decides what its fields are. The struct itself is declared once.
pub trait Side {
    /// A buffer field.
    type Buffer<T: Element, A: AccessKind>;
    /// A scalar field.
    type Scalar<T: Element>;
    /// A field of an image that is read.
    type Texture<T: Texel>;
    /// A field of an image that is stored to.
    type Surface<T: Texel>;
}

/// The declaration itself: the fields are empty.
#[derive(Clone, Copy, Debug)]
pub enum Declared {}

/// Inside a kernel: the fields are device handles.
#[derive(Clone, Copy, Debug)]
pub enum Dev<'k> {
    #[doc(hidden)]
    Never(std::convert::Infallible, PhantomData<&'k ()>),
}

/// At a launch: the fields are device buffers and numbers.
#[derive(Clone, Copy, Debug)]
pub enum Host<'a> {
    #[doc(hidden)]
    Never(std::convert::Infallible, PhantomData<&'a ()>),
}

impl Side for Declared {
    type Buffer<T: Element, A: AccessKind> = ();
    type Scalar<T: Element> = ();
    type Texture<T: Texel> = ();
    type Surface<T: Texel> = ();
}

impl<'k> Side for Dev<'k> {
    type Buffer<T: Element, A: AccessKind> = Buffer<'k, T, A>;
    type Scalar<T: Element> = V<'k, T>;
    type Texture<T: Texel> = Texture<'k, T>;
    type Surface<T: Texel> = Surface<'k, T>;
}

impl<'a> Side for Host<'a> {
    type Buffer<T: Element, A: AccessKind> = BufferArg<'a, T>;
    type Scalar<T: Element> = T;
    type Texture<T: Texel> = TextureArg<'a, T>;
    type Surface<T: Texel> = SurfaceArg<'a, T>;
}

/// How a kernel uses a buffer, as a type.
pub trait AccessKind {
    /// As a value.
    const ACCESS: Access;
}

/// A buffer that the kernel only loads from.
#[derive(Clone, Copy, Debug)]
pub enum In {}

/// A buffer that the kernel only stores to.
#[derive(Clone, Copy, Debug)]
pub enum Out {}

/// A buffer that the kernel loads from and stores to.
#[derive(Clone, Copy, Debug)]
pub enum InOut {}

impl AccessKind for In {
    const ACCESS: Access = Access::Read;
}

impl AccessKind for Out {
    const ACCESS: Access = Access::Write;
}

impl AccessKind for InOut {
    const ACCESS: Access = Access::ReadWrite;
}

/// A device buffer passed to a launch: its device address and extent, borrowed from the buffer that owns it.
#[derive(Clone, Copy, Debug)]
pub struct BufferArg<'a, T> {
    device: u64,
    address: u64,
    len: u64,
    owner: PhantomData<&'a [T]>,
}

impl<'a, T: Element> BufferArg<'a, T> {
    /// `len` elements at `address` of the device whose number in this process is `device`; `owner` is what keeps them
    /// allocated.
    pub fn new<O: ?Sized>(_owner: &'a O, device: u64, address: u64, len: u64) -> Self {
        Self { device, address, len, owner: PhantomData }
    }
}

/// An image as it lies on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageHandle {
    /// By rows, at this address, of a kernel that takes it as a buffer.
    Rows(u64),
    /// Through texture units.
    Units {
        /// Number of the image, unique on its device.
        image: u64,
        /// Its texture object or its surface object.
        object: u64,
    },
}

macro_rules! image_arg {
    ($(#[doc = $doc:literal])+ $name:ident) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a, T> {
            device: u64,
            handle: ImageHandle,
            image: Image2d,
            owner: PhantomData<&'a [T]>,
        }

        impl<'a, T: Texel> $name<'a, T> {
            /// `image`, which lies at `handle` on the device whose number in this process is `device`; `owner` is what keeps it.
            pub fn new<O: ?Sized>(_owner: &'a O, device: u64, handle: ImageHandle, image: Image2d) -> Self {
                Self { device, handle, image, owner: PhantomData }
            }

            fn packed(&self, object: ImageObject) -> Arg {
                let image = self.image.image(T::SCALAR);
                match self.handle {
                    ImageHandle::Rows(address) => {
                        Arg::Buffer { device: self.device, address, len: image.elements(), elem: T::SCALAR }
                    }
                    ImageHandle::Units { image: number, object: handle } => {
                        Arg::Image { device: self.device, number, handle, image, object }
                    }
                }
            }
        }
    };
}

image_arg! {
    /// A device image passed to a launch that reads it, borrowed from what owns it.
    TextureArg
}

image_arg! {
    /// A device image passed to a launch that stores to it, borrowed from what owns it.
    SurfaceArg
}

/// As what an image is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageObject {
    /// To be read.
    Texture {
        /// What samples are.
        filter: Filter,
        /// What their coordinates count.
        coordinates: Coordinates,
    },
    /// To be stored to.
    Surface,
}

impl ImageObject {
    /// The image as a parameter.
    pub const fn param(self, image: ImageType) -> ParamKind {
        match self {
            Self::Texture { filter, coordinates } => ParamKind::Texture { image, filter, coordinates },
            Self::Surface => ParamKind::Surface(image),
        }
    }
}

/// One packed launch argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// A buffer.
    Buffer {
        /// Number of the device that it lies on.
        device: u64,
        /// Device address.
        address: u64,
        /// Extent in elements.
        len: u64,
        /// Element type.
        elem: ir::Scalar,
    },
    /// An image that texture units reach.
    Image {
        /// Number of the device that it lies on.
        device: u64,
        /// Number of the image, unique on its device.
        number: u64,
        /// Its texture object or its surface object.
        handle: u64,
        /// What it is.
        image: ImageType,
        /// As what it is passed.
        object: ImageObject,
    },
    /// A scalar's bits, zero-extended.
    Scalar {
        /// Its bits.
        bits: u64,
        /// Its type.
        ty: ir::Scalar,
    },
}

/// An argument struct of kernel `K`. Made by [`kernel_args!`](crate::kernel_args).
pub trait Arguments<K: ?Sized> {
    /// The struct on a side.
    type On<S: Side>;

    /// The parameters that a key's kernel has on a target, in ABI order.
    fn declare(key: &K, target: Target) -> Vec<Param>;

    /// The handles inside the kernel.
    fn device<'k>(key: &K, k: &'k Builder<'k>) -> Self::On<Dev<'k>>;

    /// Hands every argument, in ABI order, to `sink`. Allocates nothing.
    fn pack(args: &Self::On<Host<'_>>, sink: &mut impl FnMut(Arg));
}

/// A field's parts of an argument struct, by its kind; used by [`kernel_args!`](crate::kernel_args).
#[doc(hidden)]
pub mod field {
    use super::*;

    pub fn buffer_param<T: Element, A: AccessKind>(name: &'static str, len: u64, align: u32) -> Param {
        Param { name, kind: ParamKind::Buffer { elem: T::SCALAR, len, access: A::ACCESS, align } }
    }

    pub fn scalar_param<T: Element>(name: &'static str) -> Param {
        Param { name, kind: ParamKind::Scalar(T::SCALAR) }
    }

    pub fn texture_param<T: Texel>(name: &'static str, image: Image2d, target: Target) -> Param {
        Param { name, kind: image.texture(T::SCALAR, target) }
    }

    pub fn surface_param<T: Texel>(name: &'static str, image: Image2d, target: Target) -> Param {
        Param { name, kind: image.surface(T::SCALAR, target) }
    }

    pub fn texture_arg<T: Texel>(arg: &TextureArg<'_, T>) -> Arg {
        let Image2d { filter, coordinates, .. } = arg.image;
        arg.packed(ImageObject::Texture { filter, coordinates })
    }

    pub fn surface_arg<T: Texel>(arg: &SurfaceArg<'_, T>) -> Arg {
        arg.packed(ImageObject::Surface)
    }

    pub fn buffer_arg<T: Element>(arg: &BufferArg<'_, T>) -> Arg {
        Arg::Buffer { device: arg.device, address: arg.address, len: arg.len, elem: T::SCALAR }
    }

    pub fn scalar_arg<T: Element>(arg: &T) -> Arg {
        Arg::Scalar { bits: arg.bits().0, ty: T::SCALAR }
    }
}

/// Declares a build key: a struct of `u32` fields, each with a default and the values it may have.
///
/// ```
/// lathe_dsl::build_key! {
///     /// A kernel's key.
///     pub struct Key {
///         /// Ranks.
///         ranks: u32 = 8, one_of(1, 2, 4, 8);
///         /// Tokens.
///         tokens: u32 = 8, range(1, 4096);
///     }
/// }
/// use lathe_dsl::kernel::BuildKey;
/// assert_eq!(Key::defaults(), Key { ranks: 8, tokens: 8 });
/// assert!(!Key::FIELDS[0].allowed.contains(3));
/// ```
#[macro_export]
macro_rules! build_key {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $(#[doc = $doc:literal] $(#[doc = $more:literal])* $field:ident: u32 = $default:expr, $how:ident($($limit:expr),+);)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        $vis struct $name {
            $(#[doc = $doc] $(#[doc = $more])* pub $field: u32,)*
        }

        impl $crate::kernel::BuildKey for $name {
            const FIELDS: &'static [$crate::kernel::KeyField] = &[$($crate::kernel::KeyField {
                name: stringify!($field),
                doc: $doc.trim_ascii(),
                default: $default,
                allowed: $crate::build_key!(@allowed $how $($limit),+),
            }),*];

            fn defaults() -> Self {
                Self { $($field: $default),* }
            }

            fn get(&self, index: usize) -> u32 {
                [$(self.$field),*][index]
            }

            fn put(&mut self, index: usize, value: u32) {
                *[$(&mut self.$field),*][index] = value;
            }
        }
    };
    (@allowed one_of $($value:expr),+) => { $crate::kernel::Allowed::OneOf(&[$($value),+]) };
    (@allowed range $lo:expr, $hi:expr) => { $crate::kernel::Allowed::Range($lo, $hi) };
}

/// Declares a kernel's arguments: one struct that is the device signature, the host packing and the launch check.
///
/// A field is `name: In<T>[len] align BYTES;` (or `Out`, `InOut`; `len` in elements, an expression over the key),
/// `name: Texture<T>[image];` or `name: Surface<T>[image];` (`image` an [`Image2d`](crate::image::Image2d), an expression over the
/// key), or `name: Scalar<T>;`. See the example at the head of this crate.
#[macro_export]
macro_rules! kernel_args {
    ($(#[$meta:meta])* $vis:vis struct $name:ident($key:ident: $key_ty:ty) {
        $($(#[$doc:meta])+ $field:ident: $kind:ident<$t:ty> $([$len:expr] $(align $align:literal)?)?;)*
    }) => {
        $(#[$meta])*
        $vis struct $name<S: $crate::kernel::Side = $crate::kernel::Declared> {
            $($(#[$doc])+ pub $field: $crate::kernel_args!(@field $kind $t),)*
        }

        impl $crate::kernel::Arguments<$key_ty> for $name {
            type On<S: $crate::kernel::Side> = $name<S>;

            #[allow(unused_variables)] // A kernel may have scalars only.
            fn declare($key: &$key_ty, target: $crate::Target) -> Vec<$crate::ir::Param> {
                vec![$($crate::kernel_args!(@declare $kind target, $t, stringify!($field) $(, $len $(, $align)?)?)),*]
            }

            #[allow(unused_variables)] // Buffers know their extents from their parameters.
            fn device<'k>($key: &$key_ty, k: &'k $crate::Builder<'k>) -> $name<$crate::kernel::Dev<'k>> {
                let mut index = 0u32..;
                $name { $($field: $crate::kernel_args!(@device $kind k, index.next().unwrap_or(0) $(, $len)?)),* }
            }

            fn pack(args: &$name<$crate::kernel::Host<'_>>, sink: &mut impl FnMut($crate::kernel::Arg)) {
                $(sink($crate::kernel_args!(@pack $kind &args.$field));)*
            }
        }
    };
    (@field Scalar $t:ty) => { S::Scalar<$t> };
    (@field Texture $t:ty) => { S::Texture<$t> };
    (@field Surface $t:ty) => { S::Surface<$t> };
    (@field $kind:ident $t:ty) => { S::Buffer<$t, $crate::kernel::$kind> };
    (@declare Scalar $target:ident, $t:ty, $name:expr) => { $crate::kernel::field::scalar_param::<$t>($name) };
    (@declare Texture $target:ident, $t:ty, $name:expr, $image:expr) => {
        $crate::kernel::field::texture_param::<$t>($name, $image, $target)
    };
    (@declare Surface $target:ident, $t:ty, $name:expr, $image:expr) => {
        $crate::kernel::field::surface_param::<$t>($name, $image, $target)
    };
    (@declare $kind:ident $target:ident, $t:ty, $name:expr, $len:expr, $align:literal) => {
        $crate::kernel::field::buffer_param::<$t, $crate::kernel::$kind>($name, $len, $align)
    };
    (@device Scalar $k:ident, $index:expr) => { $k.param($index) };
    (@device Texture $k:ident, $index:expr, $image:expr) => { $k.texture($index, $image) };
    (@device Surface $k:ident, $index:expr, $image:expr) => { $k.surface($index, $image) };
    (@device $kind:ident $k:ident, $index:expr, $len:expr) => { $k.buffer($index) };
    (@pack Texture $arg:expr) => { $crate::kernel::field::texture_arg($arg) };
    (@pack Surface $arg:expr) => { $crate::kernel::field::surface_arg($arg) };
    (@pack Scalar $arg:expr) => { $crate::kernel::field::scalar_arg($arg) };
    (@pack $kind:ident $arg:expr) => { $crate::kernel::field::buffer_arg($arg) };
}
