//! What an expansion costs, as its documentation says.

use std::cell::Cell;

use super::super::{Arith, BinaryOp, Host, UnaryOp, Values, binary, unary};

/// Host arithmetic that counts. Constants, bit casts, sign changes and magnitudes are free: they fold into operands.
/// [`Arith::clamp`] and [`Arith::ldexp`], which a target may have, are counted apart.
#[derive(Default)]
struct Count {
    operations: Cell<u32>,
    clamps: Cell<u32>,
    scalings: Cell<u32>,
}

impl Count {
    fn one<T>(&self, value: T) -> T {
        self.operations.set(self.operations.get() + 1);
        value
    }
}

macro_rules! counted {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> $result { self.one(Host.$name($($arg),*)) })*
    };
}

macro_rules! free {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> $result { Host.$name($($arg),*) })*
    };
}

impl Arith for Count {
    type F = f32;
    type I = i32;
    type B = bool;

    free! {
        f(c: f32) -> f32;
        i(c: i32) -> i32;
        fneg(a: f32) -> f32;
        fabs(a: f32) -> f32;
        bits(a: f32) -> i32;
        from_bits(a: i32) -> f32;
    }
    counted! {
        fadd(a: f32, b: f32) -> f32;
        fsub(a: f32, b: f32) -> f32;
        fmul(a: f32, b: f32) -> f32;
        fma(a: f32, b: f32, c: f32) -> f32;
        feq(a: f32, b: f32) -> bool;
        flt(a: f32, b: f32) -> bool;
        fle(a: f32, b: f32) -> bool;
        to_float(a: i32) -> f32;
        iadd(a: i32, b: i32) -> i32;
        isub(a: i32, b: i32) -> i32;
        imul(a: i32, b: i32) -> i32;
        umulhi(a: i32, b: i32) -> i32;
        iand(a: i32, b: i32) -> i32;
        ior(a: i32, b: i32) -> i32;
        ixor(a: i32, b: i32) -> i32;
        shl(a: i32, n: i32) -> i32;
        shr_u(a: i32, n: i32) -> i32;
        shr_s(a: i32, n: i32) -> i32;
        ieq(a: i32, b: i32) -> bool;
        slt(a: i32, b: i32) -> bool;
        ult(a: i32, b: i32) -> bool;
        and(a: bool, b: bool) -> bool;
        or(a: bool, b: bool) -> bool;
        not(a: bool) -> bool;
        select(c: bool, a: f32, b: f32) -> f32;
        select_i(c: bool, a: i32, b: i32) -> i32;
    }

    fn branch<const N: usize, const M: usize>(
        &self,
        rare: bool,
        then: impl FnOnce(&Self) -> Values<Self, N, M>,
        otherwise: impl FnOnce(&Self) -> Values<Self, N, M>,
    ) -> Values<Self, N, M> {
        if rare { then(self) } else { otherwise(self) }
    }

    fn clamp(&self, x: f32, lo: f32, hi: f32) -> f32 {
        self.clamps.set(self.clamps.get() + 1);
        Host.clamp(x, lo, hi)
    }

    fn ldexp(&self, x: f32, n: i32) -> f32 {
        self.scalings.set(self.scalings.get() + 1);
        Host.ldexp(x, n)
    }
}

/// Operations, clamps and scalings.
fn cost(evaluate: impl FnOnce(&Count) -> Option<f32>) -> [u32; 3] {
    let count = Count::default();
    evaluate(&count).expect("it has an expansion");
    [count.operations.get(), count.clamps.get(), count.scalings.get()]
}

#[test]
fn expansions_cost_what_they_say() {
    let costs = [
        (UnaryOp::Exp, 0.5, [11, 1, 1]),
        (UnaryOp::Exp2, 0.5, [10, 1, 1]),
        (UnaryOp::Log, 0.5, [27, 0, 0]),
        (UnaryOp::Log2, 0.5, [29, 0, 0]),
        (UnaryOp::Sin, 0.5, [31, 0, 0]),
        (UnaryOp::Cos, 0.5, [30, 0, 0]),
        (UnaryOp::Sin, 1e9, [113, 0, 0]),
        (UnaryOp::Cos, 1e9, [112, 0, 0]),
        (UnaryOp::Tanh, 0.5, [40, 0, 0]),
        (UnaryOp::Erf, 0.5, [36, 0, 0]),
    ];
    for (op, x, expected) in costs {
        assert_eq!(cost(|a| unary(op, a, x)), expected, "{op:?} of {x}");
    }
    assert_eq!(cost(|a| binary(BinaryOp::Pow, a, 1.5, 2.5)), [101, 2, 1]);
    assert!(unary(UnaryOp::Sqrt, &Host, 2.0).is_none() && binary(BinaryOp::Add, &Host, 1.0, 2.0).is_none());
}
