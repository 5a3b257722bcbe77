//! Promise: whatever bytes device `gcn` is given as a code object, it answers with an error or runs them to an end or to its step
//! limit, in bounded time and memory.
//!
//! Real objects are damaged at places that a seed chooses; the cases run in a process of their own under a limit of
//! memory, so that a crash of LLVM's disassembler or a huge allocation is found as well.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lathe_dsl::Target;
use lathe_runtime::gcn::{self, CodeObject, Memory, Options};

use crate::{GOLDEN, compiled};

/// Set for the process that runs the cases: where the objects are.
const OBJECTS: &str = "LATHE_TEST_HOSTILE_OBJECTS";

/// Damaged copies of each object.
const CASES: u32 = 120;

/// KiB of address space for the cases: LLVM's own, and what a launch may use.
const MEMORY_KIB: u32 = 2 << 20;

/// Longest that one case may take, on a machine that does other things as well.
const LONGEST: Duration = Duration::from_secs(5);

/// Random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn within(&mut self, range: &Range<usize>) -> usize {
        range.start + self.below(range.len())
    }

    /// Numbers at which sizes and offsets go wrong.
    fn extreme(&mut self, file: usize) -> u64 {
        let near = |n: u64, r: u64| n.wrapping_add(r % 9).wrapping_sub(4);
        let r = self.next();
        match self.below(6) {
            0 => near(0, r),
            1 => near(file as u64, r),
            2 => near(1 << 31, r),
            3 => near(1 << 32, r),
            4 => near(1 << (r >> 8 & 63), r),
            _ => r,
        }
    }
}

/// Parts of an object that are damaged each for itself.
struct Parts {
    headers: Vec<Range<usize>>,
    text: Range<usize>,
    note: Range<usize>,
    /// Kernel descriptors and what else is read-only.
    constants: Range<usize>,
    others: Vec<Range<usize>>,
}

fn field(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
}

impl Parts {
    /// From the section headers of an intact object.
    fn of(elf: &[u8]) -> Self {
        let (segments, segment, sections) = (field(elf, 32, 8), field(elf, 56, 2), field(elf, 40, 8));
        let (count, names) = (field(elf, 60, 2), field(elf, 62, 2));
        let header = |i: usize| sections + 64 * i;
        let range = |i: usize| {
            let start = field(elf, header(i) + 24, 8);
            start..start + if field(elf, header(i) + 4, 4) == 8 { 0 } else { field(elf, header(i) + 32, 8) }
        };
        let name = |i: usize| {
            let at = range(names).start + field(elf, header(i), 4);
            let end = elf[at..].iter().position(|b| *b == 0).expect("a name ends");
            std::str::from_utf8(&elf[at..at + end]).expect("names are text")
        };
        let find = |wanted: &str| range((0..count).find(|i| name(*i) == wanted).expect(wanted));
        let all = (1..count).map(range).filter(|r| !r.is_empty());
        Self {
            headers: vec![0..64, segments..segments + 56 * segment, sections..sections + 64 * count],
            text: find(".text"),
            note: find(".note"),
            constants: find(".rodata"),
            others: all.collect(),
        }
    }
}

/// What is done to an object, for messages.
#[derive(Debug)]
enum Damage {
    /// Bytes changed.
    Flip(Vec<(usize, u8)>),
    /// A number put in of so many bytes.
    Number { at: usize, bytes: usize, value: u64 },
    /// Words of machine code replaced.
    Code(Vec<(usize, u32)>),
    /// Cut off.
    Truncate(usize),
    /// Bytes put in.
    Insert { at: usize, bytes: usize },
    /// Bytes put at the end.
    Extend(usize),
}

impl Damage {
    fn random(random: &mut Random, elf: &[u8], parts: &Parts) -> Self {
        let some = 1 + random.below(3);
        match random.below(12) {
            0..3 => {
                let part = match random.below(4) {
                    0 => parts.headers[random.below(parts.headers.len())].clone(),
                    1 => parts.note.clone(),
                    2 => parts.constants.clone(),
                    _ => parts.others[random.below(parts.others.len())].clone(),
                };
                Self::Flip((0..some).map(|_| (random.within(&part), 1 << random.below(8))).collect())
            }
            3..6 => {
                let part = match random.below(5) {
                    0 | 1 => &parts.headers[random.below(parts.headers.len())],
                    2 => &parts.note,
                    3 => &parts.constants,
                    _ => &parts.others[random.below(parts.others.len())],
                };
                let bytes = [2, 4, 8][random.below(3)];
                let at = random.within(part).min(elf.len() - 8);
                // Fields of headers lie at multiples of their size.
                let at = if random.below(4) == 0 { at } else { at / bytes * bytes };
                Self::Number { at, bytes, value: random.extreme(elf.len()) }
            }
            6..10 => {
                let words: Vec<usize> = parts.text.clone().step_by(4).collect();
                let code = (0..some).map(|_| {
                    let at = words[random.below(words.len())];
                    let r = random.next() as u32;
                    let old = field(elf, at, 4) as u32;
                    let word = match random.below(6) {
                        // One bit of an instruction: another register, another operation.
                        0..3 => old ^ 1 << (r & 31),
                        // A branch to anywhere: s_branch and its conditional forms.
                        3 => [0xBF82_0000, 0xBFA0_0000, 0xBF84_0000, 0xBF88_0000][(r >> 30) as usize] | r & 0xFFFF,
                        4 => field(elf, words[random.below(words.len())], 4) as u32,
                        _ => r,
                    };
                    (at, word)
                });
                Self::Code(code.collect())
            }
            10 => Self::Truncate(match random.below(3) {
                0 => parts.others[random.below(parts.others.len())].end,
                1 => random.within(&parts.text),
                _ => random.below(elf.len()),
            }),
            _ if some == 1 => Self::Extend(1 << random.below(16)),
            _ => Self::Insert { at: random.below(elf.len()), bytes: 1 << random.below(9) },
        }
    }

    fn apply(&self, elf: &[u8]) -> Vec<u8> {
        let mut out = elf.to_vec();
        match self {
            Self::Flip(bits) => bits.iter().for_each(|(at, bit)| out[*at] ^= bit),
            Self::Number { at, bytes, value } => {
                out[*at..at + bytes].copy_from_slice(&value.to_le_bytes()[..*bytes]);
            }
            Self::Code(words) => words.iter().for_each(|(at, w)| out[*at..at + 4].copy_from_slice(&w.to_le_bytes())),
            Self::Truncate(n) => out.truncate(*n),
            Self::Insert { at, bytes } => drop(out.splice(at..at, vec![0xFF; *bytes])),
            Self::Extend(n) => out.resize(out.len() + n, 0xA5),
        }
        out
    }
}

/// How often what came out.
#[derive(Default)]
struct Outcomes {
    refused: u32,
    ran: u32,
    stopped: u32,
    longest: Duration,
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (refused, stopped, ran) = (self.refused, self.stopped, self.ran);
        write!(f, "{refused} refused, {stopped} stopped, {ran} ran; the longest took {:?}", self.longest)
    }
}

/// Loads an object and runs each of its kernels on one workgroup.
fn run(bytes: &[u8], target: Target, outcomes: &mut Outcomes) {
    let start = Instant::now();
    match CodeObject::load(bytes, target) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            outcomes.refused += 1;
        }
        Ok(object) => {
            for kernel in object.kernels() {
                let mut memory = Memory::default();
                // Enough for what the intact kernels touch; every pointer is this one.
                let buffer = memory.alloc(1 << 20);
                memory.write(buffer, &vec![0x3C; 1 << 20]).unwrap();
                let arguments: Vec<u8> =
                    (0..kernel.metadata.kernarg_bytes.div_ceil(8)).flat_map(|_| buffer.to_le_bytes()).collect();
                let given = &arguments[..kernel.metadata.kernarg_bytes as usize];
                let block = kernel.metadata.block.unwrap_or([64, 1, 1]);
                let options = Options { max_steps: 4000, ..Options::default() };
                match gcn::launch(&object, &kernel.name, [1; 3], block, given, &mut memory, &options) {
                    Ok(_) => outcomes.ran += 1,
                    Err(error) => {
                        // Before the launch there is no place; afterwards there is, with the line if the object still has one.
                        assert!(!error.to_string().is_empty());
                        outcomes.stopped += 1;
                    }
                }
            }
        }
    }
    outcomes.longest = outcomes.longest.max(start.elapsed());
}

/// Not a test of its own: what the one below starts.
#[test]
#[ignore = "run by `damaged_objects_give_errors`"]
fn damaged_objects() {
    let Ok(dir) = std::env::var(OBJECTS) else { return };
    let mut total = 0;
    for target in gcn::targets() {
        for (name, _) in GOLDEN {
            let Ok(elf) = std::fs::read(Path::new(&dir).join(format!("{name}.{target}"))) else { continue };
            let parts = Parts::of(&elf);
            let mut outcomes = Outcomes::default();
            run(&elf, target, &mut outcomes);
            assert_eq!((outcomes.refused, outcomes.stopped + outcomes.ran), (0, 1), "{name} for {target}, intact");
            for seed in 0..CASES {
                let mut random = Random(u64::from(seed));
                let damage = Damage::random(&mut random, &elf, &parts);
                // Whatever ends this process, the last line tells what it was doing.
                eprintln!("{name} for {target}, seed {seed}: {damage:x?}");
                run(&damage.apply(&elf), target, &mut outcomes);
                assert!(outcomes.longest < LONGEST, "took {:?}", outcomes.longest);
            }
            println!("{name} for {target}: {outcomes}");
            // Cases that all end at the first check would show nothing.
            assert!(outcomes.refused > CASES / 10 && outcomes.stopped + outcomes.ran > CASES / 4, "{outcomes}");
            total += CASES;
        }
    }
    println!("{total} cases");
    assert!(total > 2000);
}

#[test]
fn damaged_objects_give_errors() {
    let dir = tempfile::tempdir().unwrap();
    for target in gcn::targets() {
        // One of each: the largest object only costs time.
        for (name, key) in GOLDEN.iter().filter(|g| g.0 != "mla_combine.ranks_8") {
            std::fs::write(dir.path().join(format!("{name}.{target}")), compiled(*key, target).code).unwrap();
        }
    }
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY_KIB} && exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::damaged_objects", "--ignored", "--nocapture", "--test-threads=1"])
        .env(OBJECTS, dir.path())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last: Vec<&str> = err.lines().rev().take(6).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    assert!(output.status.success(), "{}:\n{out}\n{}", output.status, last.join("\n"));
    assert!(out.contains("test result: ok. 1 passed"), "{out}");
    print!("{out}");
}
