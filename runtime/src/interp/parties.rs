//! Launches that run together: one alone, or those of a group, several devices with launches one after the other each.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lathe_dsl::Arch;
use lathe_dsl::ir::{Access, ParamKind};
use lathe_dsl::mma::Fragments;
use lathe_dsl::numerics::MmaRounding;

use super::allocations::{Allocation, Allocations};
use super::error::{Error, Member, Site};
use super::memory::GlobalBuffer;
use super::order::Order;
use super::program::{Pc, Program};
use super::{ArgValue, Launch};

/// A launch under way.
pub(super) struct Party<'a> {
    pub(super) program: &'a Program,
    /// The first of all whose program this is: they share what is made for it.
    pub(super) like: usize,
    /// By parameter; an empty buffer where the parameter is a scalar.
    pub(super) buffers: Vec<&'a GlobalBuffer>,
    /// By parameter; 0 where the parameter is a buffer.
    pub(super) scalars: Vec<u64>,
    pub(super) allocations: Allocations<'a>,
    /// Number of its first workgroup among those of all launches.
    pub(super) first: u64,
    pub(super) blocks: u64,
    pub(super) device: u32,
    /// Of the device's chip.
    pub(super) arch: Arch,
    /// How messages call it; nothing where it runs alone.
    pub(super) member: Option<Member>,
    /// The next launch of its device.
    pub(super) then: Option<usize>,
    pub(super) order: Order,
    /// Workgroups that were taken.
    next: AtomicU64,
    ended: AtomicU64,
    /// Whether its turn has come.
    open: AtomicBool,
}

impl<'a> Party<'a> {
    /// Of a launch whose arguments were checked.
    pub(super) fn new(launch: &Launch<'a>, nothing: &'a GlobalBuffer, order: Order) -> Self {
        let Launch { program, args, others } = *launch;
        let named = program.params.iter().zip(args).filter_map(|(p, a)| match a {
            ArgValue::Buffer(buffer) => Some(Allocation { buffer, name: p.name }),
            ArgValue::Scalar(_) => None,
        });
        let unnamed = others.iter().map(|buffer| Allocation { buffer, name: "(allocation)" });
        Self {
            program,
            like: 0,
            buffers: args.iter().map(|a| if let ArgValue::Buffer(b) = a { *b } else { nothing }).collect(),
            scalars: args.iter().map(|a| if let ArgValue::Scalar(bits) = a { *bits } else { 0 }).collect(),
            allocations: Allocations::new(named.chain(unnamed)),
            first: 0,
            blocks: program.blocks(),
            device: 0,
            arch: program.arch,
            member: None,
            then: None,
            order,
            next: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            open: AtomicBool::new(true),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    pub(super) fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::Release);
    }

    /// Takes the next workgroup's place in the order, unless there is none left.
    pub(super) fn take(&self) -> Option<u64> {
        if !self.has_left() {
            return None;
        }
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        (place < self.blocks).then_some(place)
    }

    /// Whether one may begin.
    pub(super) fn has_left(&self) -> bool {
        self.is_open() && self.next.load(Ordering::Relaxed) < self.blocks
    }

    /// A workgroup has ended; whether it was the last one.
    pub(super) fn end(&self) -> bool {
        self.ended.fetch_add(1, Ordering::AcqRel) + 1 == self.blocks
    }
}

/// Which launch workgroup number `block` belongs to.
pub(super) fn at(parties: &[Party<'_>], block: u64) -> usize {
    parties.partition_point(|p| p.first <= block).saturating_sub(1)
}

/// The site of instruction `pc` of a wave of workgroup number `block`.
pub(super) fn site(parties: &[Party<'_>], block: u64, pc: Pc, wave: u32, lane: u32) -> Site {
    let party = &parties[at(parties, block)];
    let program = party.program;
    Site {
        location: program.locations[pc as usize],
        member: party.member,
        block: program.block_at(block - party.first),
        thread: program.thread(wave * program.wave() + lane),
        wave,
        lane,
    }
}

/// A chip's rounding is that of the chip's fragments.
pub(super) fn check_rounding(program: &Program, mma: MmaRounding) -> Result<(), Error> {
    let wrong = program.products.iter().find(|p| mma == MmaRounding::Hopper && p.fragments != Fragments::Nvidia);
    match wrong {
        Some(product) => {
            let kernel = program.name.clone();
            Err(Error::Rounding { kernel, rounding: mma.name(), fragments: product.fragments.name() })
        }
        None => Ok(()),
    }
}

pub(super) fn check_args(program: &Program, args: &[ArgValue<'_>]) -> Result<(), Error> {
    let kernel = || program.name.clone();
    if args.len() != program.params.len() {
        return Err(Error::ArgumentCount { kernel: kernel(), expected: program.params.len(), given: args.len() });
    }
    for (i, (param, arg)) in program.params.iter().zip(args).enumerate() {
        let refuse = |message| Err(Error::Argument { kernel: kernel(), param: param.name, message });
        match (param.kind, arg) {
            (ParamKind::Buffer { elem, len, access, .. }, ArgValue::Buffer(buffer)) => {
                let declared = len * u64::from(elem.bytes());
                if buffer.len() as u64 != declared {
                    let given = buffer.len();
                    return refuse(format!("has {given} bytes; {len} elements of {elem} have {declared}"));
                }
                // Buffers of a launch overlap only if all are read only.
                let clash = program.params.iter().zip(args).take(i).find(|(other, a)| {
                    let reads = |kind| matches!(kind, ParamKind::Buffer { access: Access::Read, .. });
                    let writes = access != Access::Read || !reads(other.kind);
                    writes && matches!(a, ArgValue::Buffer(b) if std::ptr::eq(*b, *buffer))
                });
                if let Some((other, _)) = clash {
                    return refuse(format!("is the same buffer as `{}`, and one of them is written", other.name));
                }
            }
            (ParamKind::Scalar(s), ArgValue::Scalar(bits)) => {
                if bits & !(u64::MAX >> (64 - s.bits())) != 0 {
                    return refuse(format!("is {bits:#x}, which does not fit {s}"));
                }
            }
            (kind, ArgValue::Scalar(_)) => {
                let elem = kind.elements().map_or("no elements".to_owned(), |(elem, ..)| elem.to_string());
                return refuse(format!("is a buffer of {elem}, a scalar was given"));
            }
            (ParamKind::Scalar(s), ArgValue::Buffer(_)) => {
                return refuse(format!("is a scalar of type {s}, a buffer was given"));
            }
            // A program's images are buffers.
            (ParamKind::Texture { .. } | ParamKind::Surface(_), ArgValue::Buffer(_)) => {
                return refuse("is an image, a buffer was given".to_owned());
            }
        }
    }
    Ok(())
}
