//! Random structured programs against a tree walk of the IR, one thread at a time.

use std::collections::HashMap;

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

const VEC: Type = Type::Vector(Scalar::U32, 3);

/// Values in scope, by type.
#[derive(Clone, Default)]
struct Scope {
    words: Vec<Value>,
    longs: Vec<Value>,
    vectors: Vec<Value>,
}

fn boolean(b: &mut Build, r: &mut Random, s: &Scope) -> Value {
    let p = r.pick(&[Predicate::Lt, Predicate::Ge, Predicate::Ne]);
    if r.below(3) == 0 {
        let (x, y) = (r.pick(&s.longs), r.pick(&s.longs));
        return b.compare(p, x, y);
    }
    let (x, seven) = (r.pick(&s.words), b.u32(7));
    let x = b.binary(BinaryOp::And, x, seven);
    let limit = b.u32(r.below(8) as u32);
    b.compare(p, x, limit)
}

/// Appends random operations to the open block; `s` gains what they define.
fn grow(b: &mut Build, r: &mut Random, s: &mut Scope, depth: u32) {
    for _ in 0..3 + r.below(6) {
        match r.below(if depth < 4 { 10 } else { 7 }) {
            0 | 1 => {
                let op = r.pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Xor, BinaryOp::Shr]);
                let (x, y) = (r.pick(&s.words), r.pick(&s.words));
                s.words.push(b.binary(op, x, y));
            }
            2 => {
                let (x, y) = (r.pick(&s.longs), r.pick(&s.longs));
                s.longs.push(b.mul(x, y));
            }
            3 => {
                if r.below(2) == 0 {
                    let x = r.pick(&s.words);
                    s.longs.push(b.op(Op::Convert(x), U64));
                } else {
                    let x = r.pick(&s.longs);
                    s.words.push(b.op(Op::Convert(x), U32));
                }
            }
            4 => {
                let elements = (0..3).map(|_| r.pick(&s.words)).collect();
                s.vectors.push(b.op(Op::VectorFrom(elements), VEC));
            }
            5 => {
                let (v, i) = (r.pick(&s.vectors), r.below(3) as u32);
                s.words.push(b.op(Op::Extract(v, i), U32));
            }
            6 => {
                let condition = boolean(b, r, s);
                let (x, y) = (r.pick(&s.vectors), r.pick(&s.vectors));
                s.vectors.push(b.op(Op::Select { condition, on_true: x, on_false: y }, VEC));
            }
            7 | 8 => {
                let condition = boolean(b, r, s);
                let types: Vec<Type> = (0..r.below(4)).map(|_| r.pick(&[U32, U64, VEC])).collect();
                let r = std::cell::RefCell::new(&mut *r);
                let side = |b: &mut Build| {
                    let (mut s, r) = (s.clone(), &mut **r.borrow_mut());
                    grow(b, r, &mut s, depth + 1);
                    types.iter().map(|t| any(r, &s, *t)).collect::<Vec<_>>()
                };
                let results = b.if_else(condition, &types, side, side);
                types.iter().zip(results).for_each(|(t, v)| add(s, *t, v));
            }
            _ => {
                let (x, y, mask) = (r.pick(&s.words), r.pick(&s.words), b.u32(3));
                let (lo, hi) = (b.binary(BinaryOp::And, x, mask), b.binary(BinaryOp::And, y, mask));
                let types: Vec<Type> = (0..r.below(4)).map(|_| r.pick(&[U32, U64, VEC])).collect();
                let init: Vec<Value> = types.iter().map(|t| any(r, s, *t)).collect();
                let step = 1 + r.below(2) as u32;
                let results = b.for_((lo, hi, step), &init, |b, i, c| {
                    let mut inner = s.clone();
                    inner.words.push(i);
                    types.iter().zip(c).for_each(|(t, v)| add(&mut inner, *t, *v));
                    grow(b, r, &mut inner, depth + 1);
                    // Carried values themselves are likely yields: permutations must come out right.
                    types
                        .iter()
                        .map(|t| {
                            let same: Vec<Value> =
                                types.iter().zip(c).filter(|(u, _)| *u == t).map(|(_, v)| *v).collect();
                            if r.below(2) == 0 { r.pick(&same) } else { any(r, &inner, *t) }
                        })
                        .collect()
                });
                types.iter().zip(results).for_each(|(t, v)| add(s, *t, v));
            }
        }
    }
}

fn any(r: &mut Random, s: &Scope, t: Type) -> Value {
    match t {
        U32 => r.pick(&s.words),
        U64 => r.pick(&s.longs),
        _ => r.pick(&s.vectors),
    }
}

fn add(s: &mut Scope, t: Type, v: Value) {
    match t {
        U32 => s.words.push(v),
        U64 => s.longs.push(v),
        _ => s.vectors.push(v),
    }
}

/// One thread's values.
struct Walk<'a> {
    kernel: &'a Kernel,
    thread: u32,
    values: HashMap<Value, Vec<u64>>,
    stored: Vec<u32>,
}

impl Walk<'_> {
    fn get(&self, v: Value) -> Vec<u64> {
        self.values[&v].clone()
    }

    fn one(&self, v: Value) -> u64 {
        self.values[&v][0]
    }

    fn block(&mut self, block: &Block) {
        for inst in &block.insts {
            self.inst(inst);
        }
    }

    fn yields(&self, block: &Block) -> Vec<Vec<u64>> {
        block.yields.iter().map(|v| self.get(*v)).collect()
    }

    fn inst(&mut self, inst: &Inst) {
        let long = |v: Value| self.kernel.ty(v) == U64;
        let results = match &inst.op {
            Op::Const(bits) => vec![vec![bits.0; self.kernel.ty(inst.results[0]).lanes() as usize]],
            Op::ThreadId(_) => vec![vec![self.thread.into()]],
            Op::Binary(op, a, b) => {
                let element = |(x, y): (u64, u64)| {
                    let full = match op {
                        BinaryOp::Add => x.wrapping_add(y),
                        BinaryOp::Sub => x.wrapping_sub(y),
                        BinaryOp::Mul => x.wrapping_mul(y),
                        BinaryOp::Xor => x ^ y,
                        BinaryOp::And => x & y,
                        BinaryOp::Shr => x >> (y % 32),
                        op => panic!("{op:?}"),
                    };
                    if long(*a) { full } else { full & 0xFFFF_FFFF }
                };
                vec![self.get(*a).into_iter().zip(self.get(*b)).map(element).collect()]
            }
            Op::Compare(p, a, b) => {
                let (x, y) = (self.one(*a), self.one(*b));
                let holds = match p {
                    Predicate::Lt => x < y,
                    Predicate::Ge => x >= y,
                    Predicate::Ne => x != y,
                    p => panic!("{p:?}"),
                };
                vec![vec![holds.into()]]
            }
            Op::Select { condition, on_true, on_false } => {
                vec![self.get(if self.one(*condition) == 1 { *on_true } else { *on_false })]
            }
            Op::Convert(a) => vec![vec![if long(*a) { self.one(*a) & 0xFFFF_FFFF } else { self.one(*a) }]],
            Op::VectorFrom(e) => vec![e.iter().map(|v| self.one(*v)).collect()],
            Op::Extract(a, i) => vec![vec![self.get(*a)[*i as usize]]],
            Op::BufferStore { value, .. } => {
                self.stored.extend(self.get(*value).iter().map(|x| *x as u32));
                vec![]
            }
            Op::If { condition, then, otherwise } => {
                let taken = if self.one(*condition) == 1 { then } else { otherwise };
                self.block(taken);
                self.yields(taken)
            }
            Op::For { lo, hi, step, init, body, unroll: Unroll::Auto } => {
                let mut carried: Vec<Vec<u64>> = init.iter().map(|v| self.get(*v)).collect();
                for i in (self.one(*lo)..self.one(*hi)).step_by(*step as usize) {
                    self.values.insert(body.params[0], vec![i]);
                    for (p, c) in body.params[1..].iter().zip(carried) {
                        self.values.insert(*p, c);
                    }
                    self.block(body);
                    carried = self.yields(body);
                }
                carried
            }
            op => panic!("{op:?}"),
        };
        for (v, r) in inst.results.iter().zip(results) {
            self.values.insert(*v, r);
        }
    }
}

#[test]
fn random_programs_do_what_a_tree_walk_does() {
    const THREADS: u32 = 96;
    let mut loops_and_branches = 0;
    for seed in 0..100 {
        let mut r = Random(seed);
        let wave = r.pick(&[32, 64]);
        let mut b = Build::new(wave, 1, THREADS);
        let out = b.buffer("out", Scalar::U32, u64::from(3 * THREADS), Access::Write);
        let (t, c) = (b.tid(), b.u32(0x9E37_79B9));
        let hashed = b.mul(t, c);
        let long = b.op(Op::Convert(hashed), U64);
        let vector = b.op(Op::VectorFrom(vec![t, c, hashed]), VEC);
        let mut s = Scope { words: vec![t, c, hashed], longs: vec![long], vectors: vec![vector] };
        grow(&mut b, &mut r, &mut s, 0);
        // Everything in scope flows into the output.
        let mut sum = vector;
        for v in s.vectors {
            let mixed = b.binary(BinaryOp::Xor, sum, v);
            let k = b.constant(0x0101_0101, VEC);
            sum = b.mul(mixed, k);
        }
        let mut parts: Vec<Value> = (0..3).map(|i| b.op(Op::Extract(sum, i), U32)).collect();
        for v in s.words {
            parts[1] = b.binary(BinaryOp::Xor, parts[1], v);
            parts[1] = b.mul(parts[1], c);
        }
        for v in s.longs {
            let v = b.op(Op::Convert(v), U32);
            parts[2] = b.add(parts[2], v);
        }
        let sum = b.op(Op::VectorFrom(parts), VEC);
        let three = b.u32(3);
        let at = b.mul(t, three);
        b.store(sum, out, at);
        let kernel = b.finish();
        kernel.walk(&mut |i| loops_and_branches += u32::from(matches!(i.op, Op::If { .. } | Op::For { .. })));

        let mut expected = vec![];
        for thread in 0..THREADS {
            let mut w = Walk { kernel: &kernel, thread, values: HashMap::new(), stored: vec![] };
            w.block(&kernel.body);
            expected.extend(w.stored);
        }
        assert_eq!(run_u32(&kernel), expected, "seed {seed}");
    }
    assert!(loops_and_branches > 400, "{loops_and_branches}");
}
