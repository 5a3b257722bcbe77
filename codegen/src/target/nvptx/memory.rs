//! Global accesses that may be shared with other threads.

use lathe_dsl::ir::{AtomicOp, Coherence, Scope, Space};
use melior::ir::{Type, Value, ValueLike};

use super::Nvptx;
use crate::lower::atomic::{Ordering, Rmw};
use crate::lower::buffer::{BufferAccess, joined, pieces};
use crate::lower::emit::{Emitter, GepIndex, IntPredicate, Named, Result};
use crate::lower::memory::carrier;
use crate::target::Backend;

/// Most bytes that arrive together.
const WORD: u32 = 8;

impl Nvptx {
    /// The scope of a coherent access; `None` if any cache may serve it.
    fn scope(access: &BufferAccess<'_, '_>) -> Option<Scope> {
        match access.cache.coherence {
            Coherence::Own => None,
            Coherence::Device => Some(Scope::Device),
            Coherence::System => Some(Scope::System),
        }
    }

    /// LLVM gives every read-modify-write the scope of the device, which is too small for one among devices.
    pub(super) fn system_atomic<'c, 'a>(e: &Emitter<'c, 'a>, atomic: &Rmw<'c, 'a>) -> Result<Option<Value<'c, 'a>>> {
        if (atomic.scope.wide(), atomic.space) != (Scope::System, Space::Global) {
            return Ok(None);
        }
        let (s, bits) = (atomic.ty.scalar(), atomic.ty.scalar().bits());
        let signed = if s.is_signed() { "s" } else { "u" };
        let mut value = atomic.value;
        let name = match atomic.op {
            AtomicOp::Add if s.is_float() => format!("add.f{bits}"),
            AtomicOp::Add => format!("add.u{bits}"),
            AtomicOp::Sub if !s.is_float() => {
                value = e.same("arith.subi", &[e.int_const(bits, 0)?, value])?;
                format!("add.u{bits}")
            }
            AtomicOp::And => format!("and.b{bits}"),
            AtomicOp::Or => format!("or.b{bits}"),
            AtomicOp::Xor => format!("xor.b{bits}"),
            AtomicOp::Xchg => {
                value = e.bitcast(value, e.int(bits))?;
                format!("exch.b{bits}")
            }
            AtomicOp::Min if !s.is_float() => format!("min.{signed}{bits}"),
            AtomicOp::Max if !s.is_float() => format!("max.{signed}{bits}"),
            // A loop of compare-and-swaps, which has its scope.
            AtomicOp::Min | AtomicOp::Max | AtomicOp::Sub => return Ok(None),
        };
        let register = match (value.r#type() == e.int(bits), bits) {
            (true, 32) => "r",
            (true, _) => "l",
            (false, 32) => "f",
            (false, _) => "d",
        };
        let asm = format!("atom.relaxed.sys.global.{name} $0, [$1], $2;");
        let constraints = format!("={register},l,{register},~{{memory}}");
        let old = e.asm(&asm, &constraints, &[atomic.pointer, value], &[value.r#type()], true)?[0];
        e.bitcast(old, e.ty(atomic.ty)).map(Some)
    }

    fn relaxed<'c>(&self, e: &Emitter<'c, '_>, scope: Scope, bytes: u32) -> Vec<Named<'c>> {
        vec![
            ("ordering", Ordering::Monotonic.attribute(e)),
            ("syncscope", e.string(self.sync_scope(scope))),
            ("alignment", e.int_attribute(64, i64::from(bytes))),
        ]
    }

    fn plain<'c>(e: &Emitter<'c, '_>, access: &BufferAccess<'c, '_>) -> Vec<Named<'c>> {
        let mut attributes = vec![("alignment", e.int_attribute(64, access.align as i64))];
        if access.cache.nontemporal {
            attributes.push(("nontemporal", e.unit()));
        }
        attributes
    }

    /// Bytes of the largest equal pieces that a coherent access can have.
    fn most_at_once(access: &BufferAccess<'_, '_>) -> u32 {
        if access.bytes == 12 { 4 } else { access.bytes.min(WORD) }
    }

    /// Bytes of the pieces that a coherent access is surely aligned for, at most a word; and the condition under which
    /// words would do where that is less.
    fn split<'c, 'a>(
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        address: Value<'c, 'a>,
    ) -> Result<(u32, Option<Value<'c, 'a>>)> {
        let piece = Self::most_at_once(access);
        if access.align >= u64::from(piece) {
            return Ok((piece, None));
        }
        let bits = e.value("llvm.ptrtoint", &[address], e.int(64), &[])?;
        let low = e.same("arith.andi", &[bits, e.word64(u64::from(piece) - 1)?])?;
        let aligned = e.cmpi(IntPredicate::Eq, low, e.word64(0)?, e.int(1))?;
        Ok((access.align as u32, Some(aligned)))
    }

    /// `ld` and `st` of two 64-bit words at once have no form in LLVM IR.
    fn pair_type(access: &BufferAccess<'_, '_>) -> Option<&'static str> {
        match (access.bytes, access.align, access.cache.coherence) {
            (16, 16.., Coherence::Device) => Some("relaxed.gpu.global.v2.b64"),
            (16, 16.., Coherence::System) => Some("relaxed.sys.global.v2.b64"),
            _ => None,
        }
    }

    pub(super) fn load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        ty: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        let address = access.address(e)?;
        let Some(scope) = Self::scope(access) else {
            return e.value("llvm.load", &[address], ty, &Self::plain(e, access));
        };
        if let Some(pair) = Self::pair_type(access) {
            let asm = format!("ld.{pair} {{$0, $1}}, [$2];");
            let words = e.asm(&asm, "=l,=l,l,~{memory}", &[address], &[e.int(64), e.int(64)], true)?;
            return joined(e, &words, access.bytes);
        }
        let by = |e: &Emitter<'c, 'a>, piece: u32| {
            let parts = (0..access.bytes / piece).map(|i| {
                let at = if i == 0 { address } else { e.gep(address, GepIndex::Constant(i as i32), e.int(piece * 8))? };
                e.value("llvm.load", &[at], e.int(piece * 8), &self.relaxed(e, scope, piece))
            });
            joined(e, &parts.collect::<Result<Vec<_>>>()?, access.bytes)
        };
        match Self::split(e, access, address)? {
            (piece, None) => by(e, piece),
            (piece, Some(aligned)) => {
                let ty = carrier(e, access.bytes);
                e.branch(aligned, ty, |e| by(e, Self::most_at_once(access)), |e| by(e, piece))
            }
        }
    }

    /// Through the cache that sees no writes.
    pub(super) fn load_unwritten<'c, 'a>(
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        words: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        let attributes = [("alignment", e.int_attribute(64, access.align as i64)), ("invariant", e.unit())];
        e.value("llvm.load", &[access.address(e)?], words, &attributes)
    }

    pub(super) fn store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Result<()> {
        let address = access.address(e)?;
        let Some(scope) = Self::scope(access) else {
            return e.op("llvm.store", &[value, address], &[], &Self::plain(e, access)).map(drop);
        };
        if let Some(pair) = Self::pair_type(access) {
            let words = pieces(e, value, access.bytes, WORD)?;
            let asm = format!("st.{pair} [$0], {{$1, $2}};");
            return e.asm(&asm, "l,l,l,~{memory}", &[address, words[0], words[1]], &[], true).map(drop);
        }
        let by = |e: &Emitter<'c, 'a>, piece: u32| -> Result<()> {
            for (i, part) in pieces(e, value, access.bytes, piece)?.into_iter().enumerate() {
                let at = if i == 0 { address } else { e.gep(address, GepIndex::Constant(i as i32), e.int(piece * 8))? };
                e.op("llvm.store", &[part, at], &[], &self.relaxed(e, scope, piece))?;
            }
            Ok(())
        };
        match Self::split(e, access, address)? {
            (piece, None) => by(e, piece),
            (piece, Some(aligned)) => e.either(aligned, |e| by(e, Self::most_at_once(access)), |e| by(e, piece)),
        }
    }
}
