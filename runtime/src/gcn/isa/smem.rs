//! Scalar memory loads, and the clock. They return in any order: only a wait for all of them makes a result usable.

use lathe_dsl::ir::CLOCK_STEP_NS;

use crate::gcn::decode::{Inst, Kind};
use crate::gcn::error::{ErrorKind, Fault, Sink, unsupported};
use crate::gcn::isa::{Context, mubuf};
use crate::gcn::state::scalar_range;
use crate::gcn::trace::{Class, OpId};

/// One scalar load.
#[derive(Debug)]
pub struct Row {
    pub(crate) name: &'static str,
    words: u16,
    from: From,
    /// Bytes of memory, extended to a word.
    narrow: Option<Narrow>,
}

/// What is loaded from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    /// An address.
    Address,
    /// A buffer descriptor.
    Buffer,
    /// The clock of 100 MHz.
    Clock,
    /// What a message asks for.
    Message,
}

/// Ticks from one reading of a wave's clock to the next: what the interpreter's clock goes on by.
const CLOCK_STEP: u64 = CLOCK_STEP_NS / 10;

/// Less than a word.
#[derive(Clone, Copy, Debug)]
struct Narrow {
    bytes: u32,
    signed: bool,
}

impl Row {
    pub(crate) fn operands(&self) -> (usize, usize) {
        match self.from {
            From::Address | From::Buffer => (3, 3),
            From::Message => (2, 2),
            From::Clock => (1, 1),
        }
    }
}

const fn row(name: &'static str, words: u16, buffer: bool) -> Row {
    Row { name, words, from: if buffer { From::Buffer } else { From::Address }, narrow: None }
}

const fn narrow(name: &'static str, buffer: bool, bytes: u32, signed: bool) -> Row {
    Row { narrow: Some(Narrow { bytes, signed }), ..row(name, 1, buffer) }
}

pub(crate) static TABLE: &[Row] = &[
    row("s_load_dword", 1, false),
    row("s_load_dwordx2", 2, false),
    row("s_load_dwordx4", 4, false),
    row("s_load_dwordx8", 8, false),
    row("s_load_dwordx16", 16, false),
    row("s_buffer_load_dword", 1, true),
    row("s_buffer_load_dwordx2", 2, true),
    row("s_buffer_load_dwordx4", 4, true),
    row("s_buffer_load_dwordx8", 8, true),
    row("s_buffer_load_dwordx16", 16, true),
];

/// What only gfx9 has.
pub(crate) static GFX9: &[Row] = &[Row { name: "s_memrealtime", words: 2, from: From::Clock, narrow: None }];

/// What only gfx12 has.
pub(crate) static GFX12: &[Row] = &[
    Row { name: "s_sendmsg_rtn_b64", words: 2, from: From::Message, narrow: None },
    row("s_load_b96", 3, false),
    row("s_buffer_load_b96", 3, true),
    narrow("s_load_u8", false, 1, false),
    narrow("s_load_i8", false, 1, true),
    narrow("s_load_u16", false, 2, false),
    narrow("s_load_i16", false, 2, true),
    narrow("s_buffer_load_u8", true, 1, false),
    narrow("s_buffer_load_i8", true, 1, true),
    narrow("s_buffer_load_u16", true, 2, false),
    narrow("s_buffer_load_i16", true, 2, true),
];

pub(crate) fn exec(cx: &mut Context<'_, '_>, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    let (first, count) = scalar_range(&inst.args[0])?;
    if count != row.words {
        return Err(ErrorKind::Decode(format!("{count} destination registers in `{}`", inst.text)).into());
    }
    let mut words = [(0u32, 0u32); 16];
    let words = &mut words[..usize::from(row.words)];
    match row.from {
        From::Address | From::Buffer => read(cx, row, inst, words)?,
        From::Clock => read_clock(cx, words),
        From::Message => match &inst.args[1].kind {
            Kind::Message(name) if name == "MSG_RTN_GET_REALTIME" => read_clock(cx, words),
            _ => return unsupported(format!("`{}`", inst.text)),
        },
    }
    if let Some(Narrow { bytes, signed: true }) = row.narrow {
        let unused = 32 - 8 * bytes;
        let extend = |x: u32| ((x << unused) as i32 >> unused) as u32;
        words[0] = (extend(words[0].0), extend(words[0].1));
    }
    let seq = cx.wave.outstanding.issue_scalar();
    let pc = cx.wave.current_pc;
    let op = cx.wave.trace.as_mut().map_or(OpId::default(), |t| t.issue(pc, Class::Smem));
    for (i, (v, u)) in words.iter().enumerate() {
        cx.wave.load_scalar(first + i as u16, *v, *u, seq, op)?;
    }
    Ok(())
}

/// Loads words from memory.
fn read(cx: &mut Context<'_, '_>, row: &Row, inst: &Inst, words: &mut [(u32, u32)]) -> Result<(), Fault> {
    let register = cx.wave.scalar_arg(&inst.args[2], 32)?;
    let register = register.defined(|| "the scalar offset".into(), Sink::Address)? as u32;
    // A register counts as unsigned. The instruction's own offset is a signed 21-bit number, which the text shows
    // either way.
    let own = matches!(inst.args[2].kind, Kind::Int(_) | Kind::Literal(_));
    let offset = if own { i64::from(register as i32) } else { i64::from(register) } + inst.mods.offset;
    // Accesses are to whole elements.
    let size = row.narrow.map_or(4, |n| n.bytes);
    let aligned = !(i64::from(size) - 1);
    if row.from == From::Buffer {
        let r = mubuf::resource_arg(cx, inst, 1)?;
        for (i, word) in words.iter_mut().enumerate() {
            let at = (offset & aligned) + 4 * i as i64;
            if at >= 0 && at as u64 + u64::from(size) <= r.bytes {
                *word = load(cx, r.base.wrapping_add(at as u64), size)?;
            }
        }
    } else {
        let base = cx.wave.scalar_arg(&inst.args[1], 64)?;
        let base = base.defined(|| "the base address".into(), Sink::Address)?;
        let start = base.wrapping_add_signed(offset) & aligned as u64;
        cx.wave.last_load = Some(start);
        // One check for the whole range, so that the message shows all of it.
        cx.space.load(start, size as usize * words.len(), |_, _| ())?;
        for (i, word) in words.iter_mut().enumerate() {
            *word = load(cx, start + 4 * i as u64, size)?;
        }
    }
    Ok(())
}

/// The time, which this moves on.
fn read_clock(cx: &mut Context<'_, '_>, words: &mut [(u32, u32)]) {
    cx.wave.clock += CLOCK_STEP;
    for (i, word) in words.iter_mut().enumerate() {
        *word = ((cx.wave.clock >> (32 * i)) as u32, 0);
    }
}

fn load(cx: &mut Context<'_, '_>, address: u64, bytes: u32) -> Result<(u32, u32), ErrorKind> {
    let join = |b: &[u8]| b.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b));
    cx.space.load(address, bytes as usize, |v, u| (join(v), join(u)))
}
