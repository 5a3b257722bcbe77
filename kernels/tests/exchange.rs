//! Promise: ranks that push and combine in one launch, step after step, give what plain Rust gives, in whatever order their waves run
//! and their stores become visible; and if the protocol between them is broken somewhere, some order shows it.

use fastrand::Rng;
use half::bf16;
use lathe_dsl::prelude::*;
use lathe_dsl::{ir, verify};
use lathe_kernels::mla::combine::own_words;
use lathe_kernels::mla::message::{Exchange, Messages, Step};
use lathe_kernels::mla::push::StagePush;
use lathe_kernels::mla::ranks::Received;
use lathe_kernels::mla::reference::combine;
use lathe_kernels::mla::{HEADS, LATENTS, THREADS, TOKENS_A_TASK, Workers, tasks};
use lathe_runtime::interp::{
    ArgValue, Checks, GlobalBuffer, Launch as RankLaunch, Options, Program, explore, launch_group,
};

build_key! {
    /// One step of `ranks` ranks.
    pub struct Ranks {
        /// Ranks.
        ranks: u32 = 2, one_of(2, 4, 8);
        /// Query tokens.
        tokens: u32 = 1, range(1, 64);
        /// Query tokens of a request.
        q: u32 = 1, range(1, 64);
        /// Workgroups.
        ctas: u32 = 2, range(1, 256);
    }
}

kernel_args! {
    /// Arguments of [`Ranks`].
    pub struct RanksArgs(key: Ranks) {
        /// Partial rows.
        o: In<bf16>[u64::from(key.tokens * key.ranks * HEADS * LATENTS)] align 16;
        /// Their LSE.
        lse: In<u32>[u64::from(key.tokens * key.ranks * HEADS)] align 4;
        /// KV rows of each request.
        seq_lens: In<i32>[u64::from(key.tokens / key.q)] align 4;
        /// First tokens.
        qsl: In<i32>[u64::from(key.tokens / key.q) + 1] align 4;
        /// Addresses of the regions.
        peers: In<u64>[u64::from(key.ranks)] align 8;
        /// This rank.
        rank: Scalar<u32>;
        /// The layer.
        layer: Scalar<u32>;
        /// The step.
        epoch: In<u32>[1] align 4;
        /// Combined latents.
        latents: Out<bf16>[u64::from(key.tokens * HEADS * LATENTS)] align 16;
    }
}

impl Ranks {
    fn messages(&self) -> Messages {
        Messages { ranks: self.ranks, tokens: self.tokens }
    }
}

impl Kernel for Ranks {
    const NAME: &'static str = "ranks";
    type Args = RanksArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.ctas, THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: RanksArgs<Dev<'k>>) {
        let step = Step { peers: args.peers, rank: args.rank, layer: args.layer, epoch: args.epoch };
        let exchange = Exchange::new(k, self.messages(), step, None);
        let heads = self.ranks * HEADS;
        let push = StagePush {
            o: args.o,
            o_strides: [k.constant(heads * LATENTS), k.constant(LATENTS)],
            lse: args.lse,
            lse_strides: [k.constant(heads), k.constant(1u32)],
            seq_lens: args.seq_lens,
            qsl: args.qsl,
            q: self.q,
        };
        push.all(k, &exchange, Workers::all(k));
        let received = Received::new(&exchange);
        k.for_range(k.block_id(Axis::X), tasks(self.tokens, TOKENS_A_TASK), self.ctas, (), |task, ()| {
            let (head, first_token) = (task.rem_floor(HEADS), task.div_floor(HEADS) * TOKENS_A_TASK);
            let (row, column) = own_words(k);
            let live = (first_token + row).lt(self.tokens);
            k.if_(live, || {
                let token = first_token + row;
                let words = received.combine(k, head, token, column);
                k.buffer_store(k.vector(words), args.latents.cast(), (token * HEADS + head) * (LATENTS / 2) + column);
            });
        });
    }
}

const LAYER: u32 = 5;

/// What the ranks have to send in the steps of a run, and what must come out.
struct Run {
    key: Ranks,
    program: Program,
    /// `[step][rank]`.
    sent: Vec<Vec<Sent>>,
    expected: Vec<Vec<Vec<u8>>>,
    first_epoch: u32,
}

/// What a rank has to send.
struct Sent {
    o: Vec<bf16>,
    lse: Vec<u32>,
    seq_lens: Vec<i32>,
    qsl: Vec<i32>,
}

fn bytes<T: bytemuck::NoUninit>(data: &[T]) -> GlobalBuffer {
    GlobalBuffer::from_bytes(bytemuck::cast_slice(data))
}

impl Run {
    fn new(key: Ranks, kernel: &ir::Kernel, steps: u32) -> Self {
        let mut rng = Rng::with_seed(7);
        let (ranks, tokens, requests) = (key.ranks as usize, key.tokens as usize, (key.tokens / key.q) as usize);
        let rows = tokens * ranks * HEADS as usize;
        let sent: Vec<Vec<Sent>> = (0..steps)
            .map(|step| {
                let live = rng.u32(key.tokens.saturating_sub(1).max(1)..=key.tokens);
                (0..ranks)
                    .map(|rank| Sent {
                        o: (0..rows * LATENTS as usize).map(|_| bf16::from_f32(rng.f32() * 4.0 - 2.0)).collect(),
                        lse: (0..rows)
                            .map(|i| match i % 7 {
                                5 => 0x7FC0_0001,
                                _ => (rng.f32() * 4.0 - 2.0).to_bits(),
                            })
                            .collect(),
                        seq_lens: (0..requests)
                            .map(|r| i32::from(!(step as usize + rank + r).is_multiple_of(3)))
                            .collect(),
                        qsl: (0..=requests as u32).map(|r| (r * key.q).min(live) as i32).collect(),
                    })
                    .collect()
            })
            .collect();
        let expected = sent.iter().map(|sent| (0..ranks).map(|p| Self::expected(&key, sent, p)).collect()).collect();
        Self { key, program: Program::new(kernel).expect("verified"), sent, expected, first_epoch: u32::MAX - 1 }
    }

    /// What rank `p` must have after a step.
    fn expected(key: &Ranks, sent: &[Sent], p: usize) -> Vec<u8> {
        let (heads, row) = (HEADS as usize, LATENTS as usize);
        let (mut partial, mut lse) = (vec![], vec![]);
        for from in sent {
            for token in 0..key.tokens as usize {
                let empty = from.seq_lens[token / key.q as usize] == 0
                    || token as i32 >= from.qsl[(key.tokens / key.q) as usize];
                for head in 0..heads {
                    let at = (token * key.ranks as usize + p) * heads + head;
                    partial.extend_from_slice(&from.o[at * row..(at + 1) * row]);
                    lse.push(if empty { f32::NEG_INFINITY } else { f32::from_bits(from.lse[at]) });
                }
            }
        }
        let latents = combine(key.ranks as usize, key.tokens as usize, &partial, &lse);
        bytemuck::cast_slice(&latents).to_vec()
    }

    /// Runs all steps of all ranks, with the turns that `seed` gives; each rank goes on as soon as its step has ended.
    fn run(&self, seed: u64, checks: Checks) -> Result<(), String> {
        let (ranks, steps) = (self.key.ranks as usize, self.sent.len());
        let messages = self.key.messages();
        let regions: Vec<GlobalBuffer> =
            (0..ranks).map(|_| GlobalBuffer::zeroed(messages.region_bytes() as usize)).collect();
        let others: Vec<&GlobalBuffer> = regions.iter().collect();
        let peers = bytes(&regions.iter().map(GlobalBuffer::address).collect::<Vec<u64>>());
        let epochs: Vec<GlobalBuffer> = (0..steps as u32).map(|s| bytes(&[self.first_epoch.wrapping_add(s)])).collect();
        let buffers: Vec<Vec<[GlobalBuffer; 5]>> = (0..ranks)
            .map(|rank| {
                let of_step = |step: usize| {
                    let s = &self.sent[step][rank];
                    let latents = GlobalBuffer::uninit(self.expected[step][rank].len());
                    [bytes(&s.o), bytes(&s.lse), bytes(&s.seq_lens), bytes(&s.qsl), latents]
                };
                (0..steps).map(of_step).collect()
            })
            .collect();
        let args: Vec<Vec<[ArgValue<'_>; 9]>> = buffers
            .iter()
            .enumerate()
            .map(|(rank, steps)| {
                let (rank, layer) = (ArgValue::Scalar(rank as u64), ArgValue::Scalar(LAYER.into()));
                let mut all = vec![];
                for (buffers, epoch) in steps.iter().zip(&epochs) {
                    let [o, lse, seq_lens, qsl, latents] = buffers.each_ref().map(ArgValue::Buffer);
                    let [peers, epoch] = [&peers, epoch].map(ArgValue::Buffer);
                    all.push([o, lse, seq_lens, qsl, peers, rank, layer, epoch, latents]);
                }
                all
            })
            .collect();
        let launches: Vec<Vec<RankLaunch<'_>>> = args
            .iter()
            .map(|steps| {
                steps.iter().map(|args| RankLaunch { program: &self.program, args, others: &others }).collect()
            })
            .collect();
        let options = Options { seed: Some(seed), step_limit: Some(1_000_000), checks, ..Options::default() };
        let reports = launch_group(&launches, &options).map_err(|e| e.to_string())?;
        if let Some(finding) = reports.iter().flatten().flat_map(|r| &r.findings).next() {
            return Err(finding.to_string());
        }
        for (rank, steps) in buffers.iter().enumerate() {
            for (step, [.., latents]) in steps.iter().enumerate() {
                if latents.to_vec() != self.expected[step][rank] {
                    return Err(format!("rank {rank}, step {step}: wrong latents"));
                }
            }
        }
        Ok(())
    }
}

/// Races are looked for in a few orders: whether results are right does not depend on it, but the time that a thousand runs take.
const NO_RACES: Checks = Checks { races: false, ..Checks::DEFAULT };

/// A small exchange: what can go wrong between two ranks goes wrong here.
const SMALL: Ranks = Ranks { ranks: 2, tokens: 1, q: 1, ctas: 2 };

fn traced(key: &Ranks) -> ir::Kernel {
    trace(key, Target::GFX950).expect("accepted")
}

#[test]
fn two_ranks_agree_with_plain_rust_in_a_thousand_orders() {
    let run = Run::new(SMALL, &traced(&SMALL), 1);
    explore(0..1000, |seed| run.run(seed, NO_RACES)).unwrap();
    // Steps in a row, in which a rank may be ahead.
    let run = Run::new(SMALL, &traced(&SMALL), 3);
    explore(0..20, |seed| run.run(seed, Checks::DEFAULT)).unwrap();
}

#[test]
fn more_ranks_and_tokens_and_both_wave_widths() {
    let keys = [(Target::GFX950, 2, 5, 5, 3), (Target::SM_90, 4, 1, 1, 1)];
    for (target, ranks, tokens, q, ctas) in keys {
        let key = Ranks { ranks, tokens, q, ctas };
        Run::new(key, &trace(&key, target).expect("accepted"), 1).run(3, Checks::DEFAULT).unwrap();
    }
}

/// A break of the protocol: one line of the kernel's printed form is changed.
struct Bug {
    name: &'static str,
    /// Which line: the how-manyth (from 0) that contains a text.
    line: (&'static str, usize),
    /// The line instead, given the name of the constant 0 of u32.
    edit: fn(&str, &str) -> String,
    /// What is told: one of these.
    says: &'static [&'static str],
}

/// Words of a line after its last bracket or comma are kept; `operand` number `n` in its brackets becomes another.
fn with_operands(line: &str, others: &[(usize, &str)]) -> String {
    let (head, rest) = line.split_once('[').expect("a list");
    let (list, tail) = rest.split_once(']').expect("a list");
    let mut operands: Vec<&str> = list.split(", ").collect();
    others.iter().for_each(|(i, other)| operands[*i] = other);
    format!("{head}[{}]{tail}", operands.join(", "))
}

/// The last operand becomes another.
fn with_last(line: &str, other: &str) -> String {
    format!("{} {other}", line.rsplit_once(' ').expect("operands").0)
}

const BUGS: &[Bug] = &[
    Bug { name: "no drain", line: ("drain", 0), edit: |_, _| String::new(), says: &["wrong latents"] },
    Bug {
        name: "drained for the workgroup only",
        line: ("drain", 0),
        edit: |_, _| "drain scope=workgroup".to_owned(),
        says: &["wrong latents"],
    },
    Bug {
        name: "rows that stay in a cache",
        line: ("unit=bytes coherence=system", 0),
        edit: |line, _| line.replace(" coherence=system", ""),
        says: &["race"],
    },
    Bug {
        name: "put with another tag",
        line: ("vector [", 0),
        edit: |line, zero| with_operands(line, &[(1, zero), (3, zero)]),
        says: &["endless wait"],
    },
    Bug { name: "one tag for all epochs", line: ("= and ", 0), edit: with_last, says: &["wrong latents"] },
    Bug {
        name: "one half for all epochs",
        line: ("= and ", 1),
        edit: with_last,
        says: &["wrong latents", "endless wait"],
    },
    Bug {
        name: "nobody waits",
        line: ("= not ", 0),
        edit: |line, zero| {
            format!("{} cmp_ne {zero}, {zero}", line.split_once("= not").expect("an operation").0.to_owned() + "=")
        },
        says: &["wrong latents", "never written"],
    },
];

#[test]
fn every_break_of_the_protocol_shows_in_some_order() {
    let text = traced(&SMALL).to_string();
    let lines: Vec<&str> = text.lines().collect();
    let zero = lines.iter().find_map(|l| l.trim().strip_suffix(": u32 = const 0")).expect("a zero");
    let mut failures = vec![];
    for Bug { name, line, edit, says } in BUGS {
        let at = (0..lines.len()).filter(|i| lines[*i].contains(line.0)).nth(line.1).expect("the line");
        let changed = edit(lines[at], zero);
        assert_ne!(changed, lines[at], "{name}: nothing changed");
        let text: Vec<&str> = lines.iter().enumerate().map(|(i, l)| if i == at { &changed } else { *l }).collect();
        let kernel = ir::parse(&text.join("\n"), "exchange.kir").unwrap_or_else(|e| panic!("{name}: {e}"));
        verify::verify(&kernel, Target::GFX950).unwrap_or_else(|e| panic!("{name}: {e}"));
        let run = Run::new(SMALL, &kernel, 3);
        match explore(0..1000, |seed| run.run(seed, Checks::DEFAULT)) {
            Ok(()) => failures.push(format!("{name}: not found")),
            Err(found) if says.iter().any(|s| found.error.contains(s)) => println!("{name}: {found}"),
            Err(found) => failures.push(format!("{name}: {found}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
