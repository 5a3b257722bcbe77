//! Global, flat and scratch instructions: addresses from registers, no range check by the instruction.

use crate::gcn::decode::{Arg, Inst, Kind as ArgKind};
use crate::gcn::error::{ErrorKind, Fault, Sink, unsupported};
use crate::gcn::isa::Context;
use crate::gcn::isa::transfer::{self, Kind, Place, Places, Row};
use crate::gcn::state::{LANES, PRIVATE_APERTURE, SHARED_APERTURE, lanes_of};

/// Which memory the address is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Global memory.
    Global,
    /// Found out from the address.
    Flat,
    /// Scratch of the lane.
    Scratch,
}

impl Segment {
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Flat => "flat",
            Self::Scratch => "scratch",
        }
    }
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, segment: Segment, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    transfer::no_modifiers(inst)?;
    let args = &inst.args;
    let scalar = usize::from(segment != Segment::Flat);
    let (data, address, result) = match row.kind {
        Kind::Load { .. } => (Some(&args[0]), 1, None),
        Kind::LoadLds { .. } => (None, 0, None),
        Kind::Store { .. } => (Some(&args[1]), 0, None),
        Kind::Atomic { .. } => {
            let returns = usize::from(inst.mods.sc0);
            if args.len() != 2 + scalar + returns {
                return Err(ErrorKind::Decode(format!("operands of `{}`", inst.text)).into());
            }
            (Some(&args[returns + 1]), returns, (returns == 1).then(|| &args[0]))
        }
    };
    // The scalar operand is the last one.
    let scalar_arg = (scalar == 1).then(|| &args[args.len() - 1]).filter(|a| a.kind != ArgKind::Off);
    let places = addresses(cx, segment, &args[address], scalar_arg, inst.mods.offset)?;
    transfer::run(cx, row.kind, inst, &places, data, result, segment == Segment::Flat)
}

fn addresses(
    cx: &mut Context<'_, '_>,
    segment: Segment,
    vector: &Arg,
    scalar: Option<&Arg>,
    offset: i64,
) -> Result<Places, Fault> {
    // With a scalar base, and in scratch, the vector part is a 32-bit offset.
    let narrow = scalar.is_some() || segment == Segment::Scratch;
    let base = match scalar {
        Some(arg) => {
            let s = cx.wave.scalar_arg(arg, if segment == Segment::Scratch { 32 } else { 64 })?;
            s.defined(|| "the scalar base".into(), Sink::Address)?
        }
        None => 0,
    };
    let lanes = match vector.kind {
        ArgKind::Off if segment == Segment::Scratch => None,
        _ => Some(cx.wave.wide(vector, if narrow { 32 } else { 64 }, false)?),
    };
    let mut places: Places = [None; LANES];
    for lane in lanes_of(cx.wave.exec()) {
        let (v, u) = lanes.as_ref().map_or((0, 0), |l| (l.v[lane], l.u[lane]));
        if u != 0 {
            let kind = ErrorKind::Undefined { what: "the address".into(), bits: u, sink: Sink::Address };
            return Err(kind.lane(lane));
        }
        let address = base.wrapping_add(v).wrapping_add_signed(offset);
        places[lane] = Some(match segment {
            Segment::Global => Place::Memory(address),
            Segment::Scratch => Place::Scratch(address),
            Segment::Flat => match (address >> 32) as u32 {
                SHARED_APERTURE => Place::Lds(address & 0xFFFF_FFFF),
                PRIVATE_APERTURE => return unsupported("flat access to scratch"),
                _ => Place::Memory(address),
            },
        });
    }
    Ok(places)
}
