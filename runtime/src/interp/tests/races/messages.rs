//! Data that a flag tells of.

use lathe_dsl::ir::{AtomicOp, Coherence};

use super::*;

const COHERENT: Cache = Cache { coherence: Coherence::System, nontemporal: false };

/// Workgroup 0 (64 threads) stores data, workgroup 1 waits for a flag and reads it.
struct Message {
    data: Value,
    flag: Value,
}

impl Message {
    fn cached(value: Value, buffer: Value, offset: Value, cache: Cache) -> Op {
        Op::BufferStore { value, buffer, offset, unit: OffsetUnit::Elements, scalar: None, mask: None, cache }
    }

    fn store(&self, b: &mut Build, cache: Cache) -> u32 {
        let t = b.tid();
        b.void(Self::cached(t, self.data, t, cache));
        b.line()
    }

    /// The first thread raises the flag.
    fn raise(&self, b: &mut Build, memory: Option<Memory>) {
        b.first_only(|b| {
            let (zero, one) = (b.u32(0), b.u32(1));
            match memory {
                Some(memory) => {
                    let p = b.op(Op::BufferPtr(self.flag), Type::Ptr(Space::Global, Scalar::U32));
                    b.void(Op::PtrStore { value: one, pointer: p, memory });
                }
                None => b.void(Self::cached(one, self.flag, zero, COHERENT)),
            }
        });
    }

    /// The threads for which `waits` holds wait for the flag.
    fn poll(&self, b: &mut Build, memory: Option<Memory>) {
        b.while_(
            &[],
            &[],
            |b, _| {
                let (zero, one) = (b.u32(0), b.u32(1));
                let seen = match memory {
                    Some(memory) => {
                        let p = b.op(Op::BufferPtr(self.flag), Type::Ptr(Space::Global, Scalar::U32));
                        b.op(Op::PtrLoad { pointer: p, memory }, U32)
                    }
                    None => cached_load(b, self.flag, zero, COHERENT),
                };
                vec![b.compare(Predicate::Ne, seen, one)]
            },
            |b, _| {
                b.void(Op::SSleep(1));
                vec![]
            },
        );
    }

    fn read(&self, b: &mut Build, cache: Cache) -> u32 {
        let (t, n) = (b.tid(), b.u32(63));
        let at = b.binary(BinaryOp::Sub, n, t);
        cached_load(b, self.data, at, cache);
        b.line()
    }
}

fn cached_load(b: &mut Build, buffer: Value, offset: Value, cache: Cache) -> Value {
    b.op(
        Op::BufferLoad { buffer, offset, unit: OffsetUnit::Elements, scalar: None, mask: None, fill: None, cache },
        U32,
    )
}

/// The two workgroups' sides; each gives the line of its access to the data.
fn message(
    send: impl FnOnce(&mut Build, &Message) -> u32,
    receive: impl FnOnce(&mut Build, &Message) -> u32,
) -> (Kernel, u32, u32) {
    let mut b = Build::new(32, 2, 64);
    let data = b.buffer("data", Scalar::U32, 64, Access::ReadWrite);
    let flag = b.buffer("flag", Scalar::U32, 1, Access::ReadWrite);
    let m = Message { data, flag };
    let (g, zero) = (b.bid(), b.u32(0));
    let sends = b.compare(Predicate::Eq, g, zero);
    let (mut store, mut load) = (0, 0);
    b.if_else(
        sends,
        &[],
        |b| {
            store = send(b, &m);
            vec![]
        },
        |b| {
            load = receive(b, &m);
            vec![]
        },
    );
    (b.finish(), store, load)
}

fn ordered(order: Order, scope: Scope) -> Memory {
    Memory { order, scope, ..Memory::default() }
}

#[track_caller]
fn late((kernel, store, load): (Kernel, u32, u32)) {
    let found = race(&kernel);
    let (start, end) = (
        format!("k.rs:{load}:1: read of buffer `data` at byte "),
        format!(" races with the write at k.rs:{store}:1 of block (0,0,0), thread "),
    );
    assert!(found.starts_with(&start) && found.contains(&end), "{found}");
    assert!(found.contains(": no release by one and acquire by the other between them ("), "{found}");
}

#[test]
fn a_mailbox() {
    // As `publish` and `poll`: coherent stores, a drain, a barrier, one coherent flag; coherent loads.
    let send = |b: &mut Build, m: &Message| {
        let line = m.store(b, COHERENT);
        b.drain(Scope::System);
        b.barrier();
        m.raise(b, None);
        line
    };
    let (kernel, ..) = message(send, |b, m| {
        m.poll(b, None);
        m.read(b, COHERENT)
    });
    assert_eq!(found(&kernel), [""; 0]);
    // With a fence behind the flag, plain loads will do; without it they may come from a cache.
    let (kernel, ..) = message(send, |b, m| {
        m.poll(b, None);
        b.fence(Order::Acquire, Scope::Device);
        m.read(b, Cache::default())
    });
    assert_eq!(found(&kernel), [""; 0]);
    late(message(send, |b, m| {
        m.poll(b, None);
        m.read(b, Cache::default())
    }));
}

#[test]
fn plain_stores_need_more_than_a_drain() {
    let receive = |b: &mut Build, m: &Message| {
        m.poll(b, None);
        b.fence(Order::Acquire, Scope::Device);
        m.read(b, Cache::default())
    };
    // They may stay in a cache of the device.
    late(message(
        |b, m| {
            let line = m.store(b, Cache::default());
            b.drain(Scope::Device);
            b.barrier();
            m.raise(b, None);
            line
        },
        receive,
    ));
    // No drain at all, or none of the second wave.
    late(message(
        |b, m| {
            let line = m.store(b, COHERENT);
            b.barrier();
            m.raise(b, None);
            line
        },
        receive,
    ));
    late(message(
        |b, m| {
            let line = m.store(b, COHERENT);
            let (t, half) = (b.tid(), b.u32(32));
            let low = b.lt(t, half);
            b.if_(low, |b| b.drain(Scope::System));
            b.barrier();
            m.raise(b, None);
            line
        },
        receive,
    ));
    // No barrier between the drain and the flag.
    late(message(
        |b, m| {
            let line = m.store(b, COHERENT);
            b.drain(Scope::System);
            m.raise(b, None);
            line
        },
        receive,
    ));
    // A fence writes the caches back.
    let (kernel, ..) = message(
        |b, m| {
            let line = m.store(b, Cache::default());
            b.fence(Order::Release, Scope::Device);
            b.barrier();
            m.raise(b, None);
            line
        },
        receive,
    );
    assert_eq!(found(&kernel), [""; 0]);
}

#[test]
fn release_and_acquire() {
    let side = |order, scope| {
        move |b: &mut Build, m: &Message| {
            let line = m.store(b, Cache::default());
            // So that the first thread knows of all.
            b.drain(Scope::Workgroup);
            b.barrier();
            m.raise(b, Some(ordered(order, scope)));
            line
        }
    };
    let other = |order, scope| {
        move |b: &mut Build, m: &Message| {
            m.poll(b, Some(ordered(order, scope)));
            m.read(b, Cache::default())
        }
    };
    let (device, system) = (Scope::Device, Scope::System);
    for (release, acquire) in [(Order::Release, Order::Acquire), (Order::SeqCst, Order::SeqCst)] {
        let (kernel, ..) = message(side(release, device), other(acquire, system));
        assert_eq!(found(&kernel), [""; 0]);
    }
    late(message(side(Order::Relaxed, device), other(Order::Acquire, device)));
    late(message(side(Order::Release, device), other(Order::Relaxed, device)));
}

#[test]
fn one_thread_acquires_for_its_workgroup() {
    let (kernel, ..) = message(
        |b, m| {
            let line = m.store(b, Cache::default());
            b.fence(Order::AcqRel, Scope::Device);
            b.barrier();
            m.raise(b, Some(ordered(Order::Relaxed, Scope::Device)));
            line
        },
        |b, m| {
            b.first_only(|b| m.poll(b, Some(ordered(Order::Acquire, Scope::Device))));
            b.barrier();
            m.read(b, Cache::default())
        },
    );
    assert_eq!(found(&kernel), [""; 0]);
}

/// Every workgroup stores its part and takes a ticket; the one with the last ticket adds the parts up.
fn last_one_adds(order: Order, fences: bool) -> Kernel {
    let (blocks, threads) = (5, 64);
    let mut b = Build::new(32, blocks, threads);
    let parts = b.buffer("parts", Scalar::U32, u64::from(blocks * threads), Access::ReadWrite);
    let tickets = b.buffer("tickets", Scalar::U32, 1, Access::ReadWrite);
    let out = b.buffer("out", Scalar::U32, threads.into(), Access::Write);
    let last = b.lds("last", Scalar::U32, 1);
    let (t, id, zero, one, n) = (b.tid(), b.global_id(), b.u32(0), b.u32(1), b.u32(blocks - 1));
    b.store(id, parts, id);
    if fences {
        b.fence(Order::AcqRel, Scope::Device);
    }
    b.barrier();
    b.first_only(|b| {
        let pointer = b.op(Op::BufferPtr(tickets), Type::Ptr(Space::Global, Scalar::U32));
        let scope = Scope::Device;
        let ticket = b.op(Op::AtomicRmw { op: AtomicOp::Add, pointer, value: one, order, scope }, U32);
        b.ptr_store(ticket, last);
    });
    b.barrier();
    let ticket = b.ptr_load(last, U32);
    let adds = b.compare(Predicate::Eq, ticket, n);
    b.if_(adds, |b| {
        let (end, step) = (b.u32(blocks * threads), threads);
        let sum = b.for_((t, end, step), &[zero], |b, i, c| {
            let x = b.load(parts, i, U32);
            vec![b.add(c[0], x)]
        });
        b.store(sum[0], out, t);
    });
    b.finish()
}

#[test]
fn the_last_workgroup_may_read_what_all_have_stored() {
    assert_eq!(found(&last_one_adds(Order::AcqRel, true)), [""; 0]);
    // Relaxed tickets release, after the fence, but nobody acquires; without the fence nobody releases the others' parts.
    for (order, fences) in [(Order::Relaxed, true), (Order::AcqRel, false)] {
        let args = [5 * 64, 1, 64].map(|n| GlobalBuffer::zeroed(4 * n));
        let args = args.each_ref().map(ArgValue::Buffer);
        let report = run(&last_one_adds(order, fences), &args, &Options::default()).unwrap();
        let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(matches!(found.as_slice(), [one] if one.contains("buffer `parts`")), "{found:#?}");
    }
}

#[test]
fn a_flag_in_lds() {
    // Wave 1 stores and releases, wave 0 acquires and reads.
    let kernel = |release: Order, acquire: Order| {
        let mut b = Build::new(32, 1, 64);
        let data = b.filled_lds(64);
        let flag = b.lds("flag", Scalar::U32, 1);
        let (t, zero, one, half) = (b.tid(), b.u32(0), b.u32(1), b.u32(32));
        b.first_only(|b| b.ptr_store(zero, flag));
        b.barrier();
        let high = b.compare(Predicate::Ge, t, half);
        b.if_else(
            high,
            &[],
            |b| {
                let p = b.ptr(data, t);
                b.ptr_store(one, p);
                b.void(Op::PtrStore { value: one, pointer: flag, memory: ordered(release, Scope::Workgroup) });
                vec![]
            },
            |b| {
                b.while_(
                    &[],
                    &[],
                    |b, _| {
                        let memory = ordered(acquire, Scope::Workgroup);
                        let seen = b.op(Op::PtrLoad { pointer: flag, memory }, U32);
                        vec![b.compare(Predicate::Ne, seen, one)]
                    },
                    |_, _| vec![],
                );
                let at = b.add(t, half);
                let p = b.ptr(data, at);
                b.ptr_load(p, U32);
                vec![]
            },
        );
        b.finish()
    };
    assert_eq!(found(&kernel(Order::Release, Order::Acquire)), [""; 0]);
    for (release, acquire) in [(Order::Relaxed, Order::Acquire), (Order::Release, Order::Relaxed)] {
        let found = race(&kernel(release, acquire));
        assert!(found.contains("LDS array `l` at element 32 races"), "{found}");
    }
}
