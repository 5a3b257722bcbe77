//! Transposing reads.

use super::{Issue, addresses, deliver, issue, lds_address, note};
use crate::gcn::decode::Inst;
use crate::gcn::error::{ErrorKind, Fault};
use crate::gcn::isa::Context;
use crate::gcn::isa::transfer::Part;
use crate::gcn::state::{LANES, Lanes};
use crate::gcn::trace::LdsAccess;

/// Every lane reads its chunk of `bytes` bytes, and every 16 lanes deal its elements of `bits` bits out: with E elements a
/// lane, lane `i` gets as element `j` the element `i mod E` of lane `(16/E)·j + i div E`.
pub(super) fn read(cx: &mut Context<'_, '_>, inst: &Inst, bytes: u32, bits: u32) -> Result<(), Fault> {
    let address = addresses(cx, &inst.args[1])?;
    if cx.wave.exec() != u64::MAX {
        return Err(ErrorKind::Unsupported("a transposing read with inactive lanes".into()).into());
    }
    let Issue { by, via, op } = issue(cx);
    // Values, and which of their bits are undefined.
    let mut chunks = [(0u128, 0u128); LANES];
    let mut ranges = Vec::new();
    for (lane, chunk) in chunks.iter_mut().enumerate() {
        let at = lds_address(address[lane], inst.mods.offset as u64);
        if !at.is_multiple_of(u64::from(bytes).next_power_of_two()) {
            let kind =
                ErrorKind::Unsupported(format!("a transposing read of {bytes} bytes at LDS byte {at}, misaligned"));
            return Err(kind.lane(lane));
        }
        let own = cx.wave.outstanding;
        let (v, u) = cx.lds.read(at, bytes, LdsAccess::Read, by, &own).map_err(|e| e.lane(lane))?;
        let number = |b: [u8; 16]| u128::from_le_bytes(b) & ((1 << (8 * bytes)) - 1);
        *chunk = (number(v), number(u));
        ranges.push((at as u32, at as u32 + bytes));
    }
    note(cx, op, LdsAccess::Read, ranges);
    let elements = (8 * bytes / bits) as usize;
    let mut out = vec![Lanes::ZERO; bytes as usize / 4];
    for lane in 0..LANES {
        let (group, i) = (lane / 16 * 16, lane % 16);
        let place = |e: usize| e as u32 * bits;
        for j in 0..elements {
            let (v, u) = chunks[group + 16 / elements * j + i / elements];
            let element = |chunk: u128| (chunk >> place(i % elements) & ((1 << bits) - 1)) << place(j);
            for (word, r) in out.iter_mut().enumerate() {
                r.v[lane] |= (element(v) >> (32 * word)) as u32;
                r.u[lane] |= (element(u) >> (32 * word)) as u32;
            }
        }
    }
    deliver(cx, &inst.args[0], &out, &Issue { by, via, op }, Part::Whole)
}
