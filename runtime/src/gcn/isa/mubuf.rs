//! Buffer instructions: address and range check from a resource descriptor of four scalar registers.
//!
//! Offset = vector offset + instruction offset + scalar offset, as exact numbers: a sum past 2^32 is out of range, it
//! does not wrap. An access must end within the buffer; wide ones are checked word by word.
//!
//! On gfx12 that holds for descriptors whose OOB_SELECT asks for a raw check (3); 1 and 2 ask for none but that the buffer
//! is not empty. Whether the scalar offset counts, and what a wide access gives that is partly in range, is not said
//! there: what depends on it is refused.

use crate::gcn::decode::{Inst, Kind as ArgKind};
use crate::gcn::error::{ErrorKind, Fault, Sink, unsupported};
use crate::gcn::isa::Context;
use crate::gcn::isa::chip::Family;
use crate::gcn::isa::transfer::{self, Kind, Place, Places, Row};
use crate::gcn::state::{LANES, lanes_of, scalar_range};

/// Raw buffer: first byte and size.
pub(crate) struct Resource {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
}

impl Resource {
    /// Whether an access of so many bytes begins in the buffer and ends past it.
    fn cuts(&self, offset: u64, bytes: u32) -> bool {
        let inside = |bytes: u32| offset + u64::from(bytes) <= self.bytes;
        inside(bytes.min(4)) != inside(bytes)
    }

    /// Refuses an access of so many bytes on which the chips of a family may differ.
    fn settled(&self, family: Family, offset: u64, scalar: u64, bytes: u32) -> Result<(), ErrorKind> {
        if family == Family::Gfx9 {
            return Ok(());
        }
        let inside = |first: u64, bytes: u64| first + bytes <= self.bytes;
        if self.cuts(offset, bytes) {
            return Err(ErrorKind::Unsupported(format!(
                "a wide access that the end of the buffer of {} bytes cuts",
                self.bytes
            )));
        }
        if inside(offset - scalar, bytes.into()) != inside(offset, bytes.into()) {
            return Err(ErrorKind::Unsupported("a buffer access that only its scalar offset puts out of range".into()));
        }
        Ok(())
    }
}

/// Decodes a raw buffer descriptor; everything that would change the addressing is refused.
pub(crate) fn resource(words: [u64; 4], family: Family) -> Result<Resource, Fault> {
    let base = words[0] | (words[1] & 0xFFFF) << 32;
    let stride = words[1] >> 16 & 0x3FFF;
    if stride != 0 {
        return unsupported(format!("buffer with stride {stride}"));
    }
    if words[1] >> 30 != 0 {
        return unsupported("swizzled buffer");
    }
    if words[3] >> 23 & 1 != 0 {
        return unsupported("buffer that adds the thread id");
    }
    if words[3] >> 30 != 0 {
        return unsupported("descriptor that is no buffer");
    }
    let bytes = match (family, words[3] >> 28 & 3) {
        (Family::Gfx9, _) | (Family::Gfx12, 3) => words[2],
        (Family::Gfx12, 1 | 2) => {
            if words[2] == 0 {
                0
            } else {
                u64::MAX >> 1
            }
        }
        (Family::Gfx12, _) => return unsupported("structured range check of a raw buffer (OOB_SELECT 0)"),
    };
    Ok(Resource { base, bytes })
}

/// Reads and decodes the descriptor that an operand names.
pub(crate) fn resource_arg(cx: &mut Context<'_, '_>, inst: &Inst, operand: usize) -> Result<Resource, Fault> {
    let (first, count) = scalar_range(&inst.args[operand])?;
    if count != 4 {
        return Err(ErrorKind::Decode("a buffer descriptor has four registers".into()).into());
    }
    let mut words = [0; 4];
    for (i, word) in words.iter_mut().enumerate() {
        let s = cx.wave.scalar(first + i as u16, 1)?;
        *word = s.defined(|| format!("word {i} of the buffer descriptor"), Sink::Address)?;
    }
    resource(words, cx.wave.chip.family)
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    transfer::no_modifiers(inst)?;
    let kind = match row.kind {
        Kind::Load { bytes, .. } if inst.mods.lds => Kind::LoadLds { bytes },
        kind => kind,
    };
    let to_lds = matches!(kind, Kind::LoadLds { .. });
    let first = usize::from(!to_lds);
    let r = resource_arg(cx, inst, first + 1)?;
    let scalar = cx.wave.scalar_arg(&inst.args[first + 2], 32)?;
    let scalar = scalar.defined(|| "the scalar offset".into(), Sink::Address)?;
    if inst.mods.idxen {
        return unsupported("indexed buffer access");
    }
    let address = &inst.args[first];
    if inst.mods.offen != matches!(address.kind, ArgKind::V { .. }) {
        return Err(ErrorKind::Decode(format!("address operand of `{}`", inst.text)).into());
    }
    let family = cx.wave.chip.family;
    let bytes = kind.bytes();
    let constant = scalar + inst.mods.offset as u64;
    let mut places: Places = [None; LANES];
    let exec = cx.wave.exec();
    if inst.mods.offen {
        let offsets = cx.wave.wide(address, 32, false)?;
        for lane in lanes_of(exec) {
            if offsets.u[lane] != 0 {
                let kind =
                    ErrorKind::Undefined { what: "the offset".into(), bits: offsets.u[lane], sink: Sink::Address };
                return Err(kind.lane(lane));
            }
            let offset = offsets.v[lane] + constant;
            r.settled(family, offset, scalar, bytes).map_err(|e| e.lane(lane))?;
            if r.cuts(offset, bytes) {
                cx.space.cut.insert(cx.wave.current_pc);
            }
            places[lane] = Some(Place::Buffer { base: r.base, offset, limit: r.bytes });
        }
    } else {
        r.settled(family, constant, scalar, bytes)?;
        if r.cuts(constant, bytes) {
            cx.space.cut.insert(cx.wave.current_pc);
        }
        for lane in lanes_of(exec) {
            places[lane] = Some(Place::Buffer { base: r.base, offset: constant, limit: r.bytes });
        }
    }
    let data = (!to_lds).then(|| &inst.args[0]);
    let result = data.filter(|_| inst.mods.sc0 && row.is_atomic());
    transfer::run(cx, kind, inst, &places, data, result, false)
}
