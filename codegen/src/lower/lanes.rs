//! Exchanges between the lanes of a wave.

use lathe_dsl::ir::{self, ButterflyOp, Launch, ShuffleOp};
use melior::ir::Value;

use super::Lowering;
use super::emit::{Emitter, Result};
use super::words::{from_words, words};

/// Where lane operations are written, and what they need to know.
#[derive(Clone, Copy)]
pub struct Lanes<'r, 'c, 'a> {
    /// The place.
    pub e: &'r Emitter<'c, 'a>,
    /// Shape of the workgroup.
    pub launch: &'r Launch,
    /// Whether every lane of the wave surely runs here.
    pub whole: bool,
}

/// The operand of a shuffle.
#[derive(Clone, Copy)]
pub struct Amount<'c, 'a> {
    /// 32 bits.
    pub value: Value<'c, 'a>,
    /// Its value, if it is a constant.
    pub constant: Option<u32>,
    /// Its largest value.
    pub max: u64,
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// The current place for lane operations.
    pub(super) fn lanes(&self) -> Lanes<'_, 'c, 'a> {
        Lanes { e: &self.emit, launch: &self.kernel.launch, whole: self.whole }
    }

    /// Exchange within groups.
    pub(super) fn lane_shuffle(
        &self,
        op: ShuffleOp,
        value: ir::Value,
        amount: ir::Value,
        width: u32,
    ) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(value));
        let amount = Amount {
            value: self.get(amount)?,
            constant: self.constant(amount).map(|c| c as u32),
            max: self.facts.get(amount).max as u64,
        };
        let parts = words(e, ty, self.get(value)?)?;
        // What leads nowhere, or back.
        let idle = match (op, amount.constant) {
            _ if width == 1 => true,
            (ShuffleOp::Xor, Some(n)) => n & (width - 1) == 0,
            (ShuffleOp::Up | ShuffleOp::Down, Some(n)) => n == 0 || n >= width,
            _ => false,
        };
        if idle {
            return self.get(value);
        }
        let parts = self.backend.shuffle(&self.lanes(), op, &parts, amount, width)?;
        from_words(e, ty, &parts)
    }

    /// One step of a butterfly.
    pub(super) fn butterfly(
        &self,
        op: ButterflyOp,
        value: ir::Value,
        offset: u32,
        width: u32,
        result: ir::Value,
    ) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.work_type(&[value, result]));
        let parts = words(e, ty, self.get_in(value, ty)?)?;
        let (a, b) = self.backend.exchange(&self.lanes(), &parts, offset, width)?;
        let operands = [from_words(e, ty, &a)?, from_words(e, ty, &b)?];
        let made = match ty.scalar().is_float() {
            true => self.float_binary(op.step(), ty, operands),
            false => self.int_step(op.step(), ty, operands),
        };
        self.fit(made?, ty, result)
    }

    /// Bit mask of the lanes where a condition holds.
    pub(super) fn ballot(&self, condition: ir::Value) -> Result<Value<'c, 'a>> {
        self.backend.ballot(&self.lanes(), self.get(condition)?)
    }

    /// The first active lane's value.
    pub(super) fn read_first_lane(&self, value: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(value));
        let parts = words(e, ty, self.get(value)?)?;
        from_words(e, ty, &self.backend.read_first_lane(&self.lanes(), &parts)?)
    }

    /// One lane's value.
    pub(super) fn read_lane(&self, value: ir::Value, lane: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(value));
        let wave = self.backend.chip().wave;
        let lane = match self.constant(lane) {
            Some(n) => e.word(n as u32 % wave)?,
            None => e.same("arith.andi", &[self.get(lane)?, e.word(wave - 1)?])?,
        };
        let parts = words(e, ty, self.get(value)?)?;
        from_words(e, ty, &self.backend.read_lane(&self.lanes(), &parts, lane)?)
    }
}

impl<'c, 'a> Lanes<'_, 'c, 'a> {
    /// Whether the lane is the thread's index along x modulo the wave: in blocks whose rows are whole waves, or that have
    /// one row.
    pub fn is_thread_index(&self, wave: u32) -> bool {
        let [x, y, z] = self.launch.block;
        x.is_multiple_of(wave) || (y == 1 && z == 1)
    }

    /// `a & bits`.
    pub fn and(&self, a: Value<'c, 'a>, bits: u32) -> Result<Value<'c, 'a>> {
        self.e.same("arith.andi", &[a, self.e.word(bits)?])
    }
}
