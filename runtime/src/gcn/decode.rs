//! Disassembly text to typed instructions, once per pc.
//!
//! The text comes from libLLVM's disassembler, so its grammar is that of LLVM's AMDGPU instruction printer:
//! `mnemonic operand, operand, … modifier modifier`.

mod wait;

use std::borrow::Cow;

use crate::gcn::error::ErrorKind;
use crate::gcn::hazard::Facts;
use crate::gcn::isa::{Isa, Op};
use crate::gcn::wait::WaitCounts;

/// Scalar register numbers with a meaning of their own, in the encoding's numbering.
pub(crate) const VCC: u16 = 106;
pub(crate) const TTMP0: u16 = 108;
pub(crate) const M0: u16 = 124;
/// `null` of gfx12: reads as 0, takes any result. (Its encoding is 124 there, and that of `m0` 125.)
pub(crate) const NULL: u16 = 125;
pub(crate) const EXEC: u16 = 126;

/// What an operand names.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// Vector registers `first .. first + count`.
    V {
        /// First register.
        first: u16,
        /// Registers.
        count: u16,
    },
    /// Accumulation registers.
    A {
        /// First register.
        first: u16,
        /// Registers.
        count: u16,
    },
    /// Scalar registers in the encoding's numbering: `vcc` is 106, `m0` 124, `exec` 126.
    S {
        /// First register.
        first: u16,
        /// Registers.
        count: u16,
    },
    /// Inline integer constant, or a plain number of an instruction that takes one.
    Int(i64),
    /// Inline floating-point constant.
    Float(f64),
    /// 32-bit literal.
    Literal(u32),
    /// `off`: no register.
    Off,
    /// A named value that is no register: `src_scc`, `src_vccz`, `src_execz`, `src_shared_base`, …
    Special(Special),
    /// `hwreg(ID, offset, size)`.
    HwReg {
        /// Name or number.
        id: String,
        /// First bit.
        offset: u32,
        /// Bits.
        size: u32,
    },
    /// `sendmsg(NAME)`.
    Message(String),
}

/// Named values that are no registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// SCC as 0 or 1.
    Scc,
    /// VCC = 0.
    Vccz,
    /// EXEC = 0.
    Execz,
    /// High half of the LDS aperture.
    SharedBase,
    /// End of the LDS aperture.
    SharedLimit,
    /// High half of the scratch aperture.
    PrivateBase,
    /// End of the scratch aperture.
    PrivateLimit,
}

/// An operand with its source modifiers.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// What it names.
    pub kind: Kind,
    /// `-x`.
    pub neg: bool,
    /// `|x|`.
    pub abs: bool,
    /// `sext(x)` (SDWA).
    pub sext: bool,
}

/// Lane pattern of a DPP operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dpp {
    /// Lane i of a quad reads lane `q[i]` of it.
    QuadPerm([u8; 4]),
    /// Lane reads the lane `n` above it in its row of 16.
    RowShl(u8),
    /// Lane reads the lane `n` below it in its row.
    RowShr(u8),
    /// Rotation within a row.
    RowRor(u8),
    /// Whole-wave shift or rotation by one lane.
    WaveShl,
    /// Likewise.
    WaveRol,
    /// Likewise.
    WaveShr,
    /// Likewise.
    WaveRor,
    /// Row mirrored.
    RowMirror,
    /// Half rows mirrored.
    RowHalfMirror,
    /// Lane 15 of each row to the next row.
    RowBcast15,
    /// Lane 31 to rows 2 and 3.
    RowBcast31,
    /// Lane `n` of each row to the whole row.
    RowNewBcast(u8),
    /// Lane i of a row reads lane `i ^ n` of it.
    RowXmask(u8),
    /// Lane i of eight reads lane `d[i]` of them.
    Dpp8([u8; 8]),
}

/// SDWA selection of a part of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sel {
    /// Byte 0 to 3.
    Byte(u8),
    /// Half 0 or 1.
    Word(u8),
    /// All.
    #[default]
    Dword,
}

impl Sel {
    /// Shift and mask of the selected part.
    pub(crate) fn field(self) -> (u32, u32) {
        match self {
            Self::Byte(b) => (8 * u32::from(b), 0xFF),
            Self::Word(w) => (16 * u32::from(w), 0xFFFF),
            Self::Dword => (0, u32::MAX),
        }
    }
}

/// What SDWA does with the rest of the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unused {
    /// Zero.
    #[default]
    Pad,
    /// Sign of the written part.
    Sext,
    /// As before.
    Preserve,
}

/// SDWA modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sdwa {
    /// Part of the destination that is written.
    pub dst: Sel,
    /// The rest of it.
    pub unused: Unused,
    /// Part of source 0 and 1.
    pub src: [Sel; 2],
}

/// Modifiers behind the operands.
#[derive(Clone, PartialEq, Debug)]
pub struct Mods {
    /// `offset:` in bytes.
    pub offset: i64,
    /// `offset0:`, `offset1:` of two-address LDS operations, in elements.
    pub offsets: [u32; 2],
    /// `offset:swizzle(…)`.
    pub swizzle: Option<u32>,
    /// `offen`.
    pub offen: bool,
    /// `idxen`.
    pub idxen: bool,
    /// `lds`: the load's data goes to LDS.
    pub lds: bool,
    /// `sc0` (on atomics: the old value is returned).
    pub sc0: bool,
    /// `clamp`.
    pub clamp: bool,
    /// Output factor: `mul:2`, `mul:4`, `div:2`; 1 if none.
    pub omod: f32,
    /// `op_sel:[…]`, one bit an operand.
    pub op_sel: u8,
    /// The last of them, where a 16-bit result has one: the high half is written.
    pub op_sel_result: bool,
    /// `op_sel_hi:[…]`; all ones if absent.
    pub op_sel_hi: u8,
    /// `neg_lo:[…]`.
    pub neg_lo: u8,
    /// `neg_hi:[…]`.
    pub neg_hi: u8,
    /// DPP pattern.
    pub dpp: Option<Dpp>,
    /// DPP rows that are written.
    pub row_mask: u8,
    /// DPP banks that are written.
    pub bank_mask: u8,
    /// DPP: reads of invalid lanes give 0 instead of keeping the destination.
    pub bound_ctrl: bool,
    /// `fi:1`: inactive lanes may be read from.
    pub fetch_inactive: bool,
    /// SDWA modifiers.
    pub sdwa: Option<Sdwa>,
    /// `bitop3:` truth table.
    pub bitop3: u8,
    /// Matrix instructions: `cbsz:` and `blgp:`, formats of operands A and B, or broadcasts.
    pub formats: [u8; 2],
    /// Counts of wait instructions.
    pub wait: WaitCounts,
}

impl Default for Mods {
    fn default() -> Self {
        Self {
            offset: 0,
            offsets: [0; 2],
            swizzle: None,
            offen: false,
            idxen: false,
            lds: false,
            sc0: false,
            clamp: false,
            omod: 1.0,
            op_sel: 0,
            op_sel_result: false,
            op_sel_hi: 0xFF,
            neg_lo: 0,
            neg_hi: 0,
            dpp: None,
            row_mask: 0xF,
            bank_mask: 0xF,
            bound_ctrl: false,
            fetch_inactive: false,
            sdwa: None,
            bitop3: 0,
            formats: [0; 2],
            wait: WaitCounts::default(),
        }
    }
}

/// One decoded instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// Bytes in the code.
    pub size: u32,
    /// As libLLVM prints it, blanks normalised.
    pub text: String,
    /// What it does.
    pub op: Op,
    /// Operands in the order of the text.
    pub args: Vec<Arg>,
    /// Modifiers.
    pub mods: Mods,
    /// The load that a compare-and-store loop begins with.
    pub begins_exchange: bool,
    /// What wait states and costs depend on.
    pub(crate) facts: Facts,
    /// Second half of a dual instruction, which reads its operands before the first half writes.
    pub second: Option<Box<Inst>>,
}

/// The mnemonic as the tables have it: without the suffix that names its encoding, and without the prefix that it has in
/// pairs (`v_dual_add_f32`).
pub fn base_mnemonic(mnemonic: &str) -> Cow<'_, str> {
    if let Some(name) = mnemonic.strip_prefix(DUAL) {
        return Cow::Owned(format!("v_{name}"));
    }
    let mut m = mnemonic;
    for suffix in ["_dpp8", "_dpp", "_sdwa", "_e32", "_e64"] {
        m = m.strip_suffix(suffix).unwrap_or(m);
    }
    Cow::Borrowed(m)
}

/// What the mnemonics of both halves of a pair begin with.
const DUAL: &str = "v_dual_";

/// Parses one line of disassembly.
///
/// # Errors
/// [`ErrorKind::UnknownInstruction`] for a mnemonic without semantics, [`ErrorKind::Decode`] for text that does not
/// parse, [`ErrorKind::Unsupported`] for a form that is known not to be modelled.
pub fn parse(isa: &Isa, text: &str, size: u32) -> Result<Inst, ErrorKind> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((x, y)) = text.split_once(" :: ") {
        if !(x.starts_with(DUAL) && y.starts_with(DUAL)) {
            return Err(ErrorKind::Decode(format!("`{text}` is no pair")));
        }
        let (mut first, mut second) = (single(isa, x, size)?, single(isa, y, size)?);
        for half in [&first, &second] {
            half.op.check_pairable(half)?;
        }
        first.text.clone_from(&text);
        second.text = text;
        first.second = Some(Box::new(second));
        return Ok(first);
    }
    single(isa, &text, size)
}

/// Parses an instruction that is no pair.
fn single(isa: &Isa, text: &str, size: u32) -> Result<Inst, ErrorKind> {
    let (mnemonic, rest) = text.split_once(' ').unwrap_or((text, ""));
    let base = base_mnemonic(mnemonic);
    let Some(op) = isa.lookup(&base) else {
        return Err(isa.unknown(mnemonic, &base));
    };
    let mut args = Vec::new();
    let mut mods = Mods::default();
    if let Some(counts) = wait::parse(mnemonic, rest)? {
        mods.wait = counts;
    } else if op.is_plain() {
        // Takes at most a number that changes nothing here (`s_nop 7`, `s_sleep 1`), or a message.
    } else {
        let operands = split_operands(rest);
        let last = operands.len().saturating_sub(1);
        for (i, operand) in operands.iter().enumerate() {
            let mut tokens = split_tokens(operand).into_iter();
            if let Some(first) = tokens.next() {
                // An instruction without operands may still carry modifiers.
                if i == 0 && is_modifier(first) {
                    modifier(&mut mods, first)?;
                } else {
                    args.push(arg(first)?);
                }
            }
            for token in tokens {
                if i != last {
                    return Err(ErrorKind::Decode(format!("unexpected `{token}` in `{text}`")));
                }
                modifier(&mut mods, token)?;
            }
        }
    }
    if mnemonic == "v_dual_cndmask_b32" && args.len() == 3 {
        // A pair has no room for the mask register.
        args.push(arg("vcc_lo")?);
    }
    let (text, facts) = (text.to_owned(), Facts::default());
    let mut inst = Inst { size, text, op, args, mods, begins_exchange: false, facts, second: None };
    op.check(&inst)?;
    inst.facts = Facts::of(&inst);
    Ok(inst)
}

fn is_modifier(token: &str) -> bool {
    token.contains(':') && !token.contains('[')
}

/// Splits at commas outside brackets.
fn split_operands(text: &str) -> Vec<&str> {
    split_outside(text, ',')
}

/// Splits at blanks outside brackets.
fn split_tokens(text: &str) -> Vec<&str> {
    split_outside(text, ' ')
}

fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0i32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ if c == separator && depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

fn bad(token: &str) -> ErrorKind {
    ErrorKind::Decode(format!("operand `{token}`"))
}

fn arg(token: &str) -> Result<Arg, ErrorKind> {
    let inside = |prefix: &str| token.strip_prefix(prefix).and_then(|t| t.strip_suffix(')'));
    if let Some(t) =
        inside("neg(").or_else(|| token.strip_prefix('-').filter(|t| !t.starts_with(|c: char| c.is_ascii_digit())))
    {
        let inner = arg(t)?;
        return Ok(Arg { neg: !inner.neg, ..inner });
    }
    if let Some(t) = inside("abs(").or_else(|| token.strip_prefix('|').and_then(|t| t.strip_suffix('|'))) {
        return Ok(Arg { abs: true, ..arg(t)? });
    }
    if let Some(t) = inside("sext(") {
        return Ok(Arg { sext: true, ..arg(t)? });
    }
    Ok(Arg { kind: kind(token)?, neg: false, abs: false, sext: false })
}

fn kind(token: &str) -> Result<Kind, ErrorKind> {
    let s = |first, count| Ok(Kind::S { first, count });
    match token {
        "off" => return Ok(Kind::Off),
        // As wide as an operand may be.
        "null" => return s(NULL, 2),
        "vcc" => return s(VCC, 2),
        "vcc_lo" => return s(VCC, 1),
        "vcc_hi" => return s(VCC + 1, 1),
        "exec" => return s(EXEC, 2),
        "exec_lo" => return s(EXEC, 1),
        "exec_hi" => return s(EXEC + 1, 1),
        "m0" => return s(M0, 1),
        "src_scc" | "scc" => return Ok(Kind::Special(Special::Scc)),
        "src_vccz" => return Ok(Kind::Special(Special::Vccz)),
        "src_execz" => return Ok(Kind::Special(Special::Execz)),
        "src_shared_base" => return Ok(Kind::Special(Special::SharedBase)),
        "src_shared_limit" => return Ok(Kind::Special(Special::SharedLimit)),
        "src_private_base" => return Ok(Kind::Special(Special::PrivateBase)),
        "src_private_limit" => return Ok(Kind::Special(Special::PrivateLimit)),
        _ => {}
    }
    if let Some(name) = token.strip_prefix("sendmsg(").and_then(|t| t.strip_suffix(')')) {
        return Ok(Kind::Message(name.to_owned()));
    }
    if let Some(body) = token.strip_prefix("hwreg(").and_then(|t| t.strip_suffix(')')) {
        let parts: Vec<_> = body.split(',').map(str::trim).collect();
        let number =
            |i: usize, default| parts.get(i).map_or(Some(default), |p| p.parse().ok()).ok_or_else(|| bad(token));
        return Ok(Kind::HwReg { id: parts[0].to_owned(), offset: number(1, 0)?, size: number(2, 32)? });
    }
    if let Some(body) = token.strip_prefix("gpr_idx(").and_then(|t| t.strip_suffix(')')) {
        let names = body.split(',').map(str::trim).filter(|n| !n.is_empty());
        let bit = |name| ["SRC0", "SRC1", "SRC2", "DST"].iter().position(|n| *n == name);
        return names
            .map(|n| bit(n).map(|b| 1i64 << b))
            .try_fold(0, |all, b| Some(all | b?))
            .map(Kind::Int)
            .ok_or_else(|| bad(token));
    }
    if let Some(hex) = token.strip_prefix("0x") {
        let value = u64::from_str_radix(hex, 16).map_err(|_| bad(token))?;
        return match u32::try_from(value) {
            Ok(v) => Ok(Kind::Literal(v)),
            // A 64-bit float literal, of which the encoding holds the high half.
            Err(_) if value as u32 == 0 => Ok(Kind::Literal((value >> 32) as u32)),
            Err(_) => Err(bad(token)),
        };
    }
    if let Some((first, count)) = registers(token, "ttmp") {
        return s(TTMP0.checked_add(first).filter(|t| t + count <= M0).ok_or_else(|| bad(token))?, count);
    }
    if let Some((first, count)) = registers(token, "v").filter(|(f, c)| f + c <= 256) {
        return Ok(Kind::V { first, count });
    }
    if let Some((first, count)) = registers(token, "a").filter(|(f, c)| f + c <= 256) {
        return Ok(Kind::A { first, count });
    }
    if let Some((first, count)) = registers(token, "s").filter(|(f, c)| f + c <= VCC) {
        return s(first, count);
    }
    if let Some(i) = number(token) {
        return Ok(Kind::Int(i));
    }
    match token.parse::<f64>() {
        Ok(f) if token.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => Ok(Kind::Float(f)),
        _ => Err(bad(token)),
    }
}

/// `v7` → (7, 1); `v[4:7]` → (4, 4).
fn registers(token: &str, prefix: &str) -> Option<(u16, u16)> {
    let rest = token.strip_prefix(prefix)?;
    if let Some(range) = rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')) {
        let (a, b) = range.split_once(':').unwrap_or((range, range));
        let (a, b): (u16, u16) = (a.parse().ok()?, b.parse().ok()?);
        return (b >= a && b < 1024).then(|| (a, b - a + 1));
    }
    let n: u16 = rest.parse().ok()?;
    (n < 1024).then_some((n, 1))
}

fn number(text: &str) -> Option<i64> {
    if let Some(hex) = text.strip_prefix("-0x") {
        return i64::from_str_radix(hex, 16).ok().map(|n| -n);
    }
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `[1,0,1]` → bits.
fn bits(text: &str) -> Option<u8> {
    let mut out = 0u8;
    let body = text.strip_prefix('[')?.strip_suffix(']')?;
    for (i, b) in body.split(',').enumerate() {
        out |= match b.trim() {
            "0" => 0,
            "1" => 1u8.checked_shl(i as u32)?,
            _ => return None,
        };
    }
    Some(out)
}

/// `[1,0,3,2]`: `N` lane numbers below `limit`.
fn selectors<const N: usize>(text: &str, limit: u8) -> Option<[u8; N]> {
    let body = text.strip_prefix('[')?.strip_suffix(']')?;
    let all: Option<Vec<u8>> = body.split(',').map(|p| p.trim().parse().ok().filter(|n| *n < limit)).collect();
    all?.try_into().ok()
}

fn sel(text: &str) -> Option<Sel> {
    Some(match text {
        "DWORD" => Sel::Dword,
        "BYTE_0" => Sel::Byte(0),
        "BYTE_1" => Sel::Byte(1),
        "BYTE_2" => Sel::Byte(2),
        "BYTE_3" => Sel::Byte(3),
        "WORD_0" => Sel::Word(0),
        "WORD_1" => Sel::Word(1),
        _ => return None,
    })
}

fn modifier(m: &mut Mods, token: &str) -> Result<(), ErrorKind> {
    let Some((name, value)) = token.split_once(':') else {
        match token {
            "offen" => m.offen = true,
            "idxen" => m.idxen = true,
            "lds" => m.lds = true,
            "sc0" | "glc" => m.sc0 = true,
            // Cache policy: every access here is coherent.
            "sc1" | "nt" | "slc" | "dlc" | "nv" => {}
            "clamp" => m.clamp = true,
            "row_mirror" => m.dpp = Some(Dpp::RowMirror),
            "row_half_mirror" => m.dpp = Some(Dpp::RowHalfMirror),
            _ => return Err(ErrorKind::Unsupported(format!("modifier `{token}`"))),
        }
        return Ok(());
    };
    let wrong = || ErrorKind::Decode(format!("modifier `{token}`"));
    let int = || number(value).ok_or_else(wrong);
    let small = |limit: i64| int().and_then(|n| if (0..=limit).contains(&n) { Ok(n as u8) } else { Err(wrong()) });
    let sdwa = m.sdwa;
    match name {
        "offset" if value.starts_with("swizzle(") => m.swizzle = Some(swizzle(value).ok_or_else(wrong)?),
        "offset" => m.offset = int()?,
        "offset0" => m.offsets[0] = u32::from(small(255)?),
        "offset1" => m.offsets[1] = u32::from(small(255)?),
        "mul" => m.omod = if int()? == 4 { 4.0 } else { 2.0 },
        "div" => m.omod = 0.5,
        "op_sel" => {
            m.op_sel = bits(value).ok_or_else(wrong)?;
            m.op_sel_result = value.ends_with("1]");
        }
        "op_sel_hi" => m.op_sel_hi = bits(value).ok_or_else(wrong)?,
        "neg_lo" => m.neg_lo = bits(value).ok_or_else(wrong)?,
        "neg_hi" => m.neg_hi = bits(value).ok_or_else(wrong)?,
        "quad_perm" => m.dpp = Some(Dpp::QuadPerm(selectors(value, 4).ok_or_else(wrong)?)),
        "row_shl" => m.dpp = Some(Dpp::RowShl(small(15)?)),
        "row_shr" => m.dpp = Some(Dpp::RowShr(small(15)?)),
        "row_ror" => m.dpp = Some(Dpp::RowRor(small(15)?)),
        "row_newbcast" | "row_share" => m.dpp = Some(Dpp::RowNewBcast(small(15)?)),
        "row_xmask" => m.dpp = Some(Dpp::RowXmask(small(15)?)),
        "dpp8" => m.dpp = Some(Dpp::Dpp8(selectors(value, 8).ok_or_else(wrong)?)),
        "wave_shl" => m.dpp = Some(Dpp::WaveShl),
        "wave_rol" => m.dpp = Some(Dpp::WaveRol),
        "wave_shr" => m.dpp = Some(Dpp::WaveShr),
        "wave_ror" => m.dpp = Some(Dpp::WaveRor),
        "row_bcast" => {
            m.dpp = Some(match int()? {
                15 => Dpp::RowBcast15,
                31 => Dpp::RowBcast31,
                _ => return Err(wrong()),
            });
        }
        "row_mask" => m.row_mask = small(15)?,
        "bank_mask" => m.bank_mask = small(15)?,
        // The printer has spelt the set bit as 0 and as 1; it prints nothing for the clear bit.
        "bound_ctrl" => m.bound_ctrl = true,
        "fi" => m.fetch_inactive = int()? != 0,
        "dst_sel" => m.sdwa = Some(Sdwa { dst: sel(value).ok_or_else(wrong)?, ..sdwa.unwrap_or_default() }),
        "dst_unused" => {
            let unused = match value {
                "UNUSED_PAD" => Unused::Pad,
                "UNUSED_SEXT" => Unused::Sext,
                "UNUSED_PRESERVE" => Unused::Preserve,
                _ => return Err(wrong()),
            };
            m.sdwa = Some(Sdwa { unused, ..sdwa.unwrap_or_default() });
        }
        "src0_sel" | "src1_sel" => {
            let mut s = sdwa.unwrap_or_default();
            s.src[usize::from(name == "src1_sel")] = sel(value).ok_or_else(wrong)?;
            m.sdwa = Some(s);
        }
        "cbsz" => m.formats[0] = small(7)?,
        "blgp" => m.formats[1] = small(7)?,
        // Cache policy: every access here is coherent.
        "scope" => {}
        "th" => m.sc0 = value.split(['_', '|']).any(|word| word == "RETURN"),
        "bitop3" => m.bitop3 = int()?.try_into().map_err(|_| wrong())?,
        _ => return Err(ErrorKind::Unsupported(format!("modifier `{token}`"))),
    }
    Ok(())
}

/// The offset field of `ds_swizzle_b32` from its symbolic form.
fn swizzle(text: &str) -> Option<u32> {
    let body = text.strip_prefix("swizzle(")?.strip_suffix(')')?;
    let parts: Vec<_> = body.split(',').map(str::trim).collect();
    let n = |i: usize| parts.get(i)?.parse::<u32>().ok();
    Some(match *parts.first()? {
        "QUAD_PERM" => {
            let lane = |i: usize| n(i + 1).filter(|l| *l < 4).map(|l| l << (2 * i));
            0x8000 | lane(0)? | lane(1)? | lane(2)? | lane(3)?
        }
        "SWAP" => n(1).filter(|s| s.is_power_of_two() && *s < 32)? << 10 | 0x1F,
        "REVERSE" => (n(1).filter(|s| s.is_power_of_two() && *s <= 32)? - 1) << 10 | 0x1F,
        "BROADCAST" => {
            let (size, lane) = (n(1).filter(|s| s.is_power_of_two() && *s <= 32)?, n(2)?);
            (lane < size).then_some(lane << 5 | (32 - size))?
        }
        "ROTATE" => {
            let (direction, by) = (n(1).filter(|d| *d < 2)?, n(2).filter(|b| *b < 32)?);
            0xC000 | direction << 10 | by << 5
        }
        "BITMASK_PERM" => {
            let mask = parts.get(1)?.trim_matches('"');
            let (mut and, mut or, mut xor) = (0u32, 0u32, 0u32);
            if mask.len() != 5 {
                return None;
            }
            for (i, c) in mask.chars().enumerate() {
                let bit = 16u32 >> i;
                match c {
                    '0' => {}
                    '1' => or |= bit,
                    'p' => and |= bit,
                    'i' => {
                        and |= bit;
                        xor |= bit;
                    }
                    _ => return None,
                }
            }
            and | or << 5 | xor << 10
        }
        _ => return None,
    })
}
