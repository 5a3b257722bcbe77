//! Workgroups that run beside each other: the same on any number of threads, and races between them.

use super::*;

const THREADS: [usize; 3] = [1, 2, 4];
/// Loads the word 256 bytes on, which is the same thread's in the next workgroup.
const LOAD_NEXT: (&[u32], &str) = (&[0xDC50_8100, 0x0300_0001], "global_load_dword v3, v1, s[0:1] offset:256");
const LOAD_OWN: (&[u32], &str) = (&[0xDC50_8000, 0x0300_0001], "global_load_dword v3, v1, s[0:1]");

/// Every thread stores the number of its workgroup in the place that it has in its workgroup.
const STORE_GROUP: Code = &[LOAD_POINTER, OFFSET, MOVE_GROUP, WAIT_LGKM, STORE_V3, END];
/// Every thread moves the word of the next workgroup to its own place.
const SHIFT: Code = &[LOAD_POINTER, OFFSET, ADD_GROUP, WAIT_LGKM, LOAD_NEXT, WAIT_VM, STORE_V3, END];
/// Every thread stores its own word again.
const KEEP: Code = &[LOAD_POINTER, OFFSET, ADD_GROUP, WAIT_LGKM, LOAD_OWN, WAIT_VM, STORE_V3, END];
/// Every thread stores its id, and what it then loads from there.
const READ_BACK: Code =
    &[LOAD_POINTER, OFFSET, ADD_GROUP, WAIT_LGKM, STORE_V0, WAIT_VM, LOAD_OWN, WAIT_VM, STORE_V3, END];

/// Runs on words that begin with their numbers; what memory holds then, whatever the outcome.
fn on(object: &CodeObject, words: u32, groups: u32, threads: u32, options: &Options) -> (Vec<u32>, Result<Stats>) {
    let mut memory = Memory::default();
    let at = memory.alloc(4 * words as usize);
    memory.write(at, &(0..words).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
    let stats = launch(object, "k", [groups, 1, 1], [threads, 1, 1], &at.to_le_bytes(), &mut memory, options);
    let bytes = memory.read(at, 4 * words as usize).unwrap();
    (bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect(), stats)
}

/// All that a run tells, in a form that can be compared.
fn told(object: &CodeObject, run: (Vec<u32>, Result<Stats>)) -> (Vec<u32>, String) {
    let text = match run.1 {
        Ok(s) => {
            let costs: Vec<_> = s.profile.iter().flat_map(|p| p.instructions(object)).collect();
            format!("{} {} {} {:?} {:?} {costs:?}", s.instructions, s.workgroups, s.barriers, s.cut, s.races)
        }
        Err(error) => format!("{error:?}"),
    };
    (run.0, text)
}

#[test]
fn the_disassembly_is_what_the_kernels_say() {
    for code in [STORE_GROUP, SHIFT, KEEP, READ_BACK] {
        let object = Builder::new(code).object();
        let listing: Vec<_> = object.listing(object.kernel("k").unwrap()).map(|(_, text)| text).collect();
        assert_eq!(listing, code.iter().map(|c| c.1).collect::<Vec<_>>());
    }
}

/// Memory, counts, costs, races and errors, of runs that end and that fail.
#[test]
fn nothing_depends_on_the_number_of_threads() {
    // Kernel, words of memory, workgroups, threads of one.
    let cases: [(Code, u32, u32, u32); 7] = [
        (STORE_IDS, 64 * 300, 300, 64),
        (EXCHANGE, 128, 70, 128),
        (READ_BACK, 64 * 20, 20, 64),
        (STORE_GROUP, 64, 40, 64),
        (SHIFT, 64 * 41, 40, 64),
        // Workgroup 150 of 300 is the first to store outside.
        (STORE_IDS, 64 * 150, 300, 64),
        (SHIFT, 64 * 11, 300, 64),
    ];
    for (code, words, groups, threads) in cases {
        let object = Builder::new(code).object();
        for (seed, max_steps) in [(0, 1 << 32), (7, 1 << 32), (0, 1000)] {
            let run = |n| {
                let options = Options { threads: Some(n), seed, max_steps, profile: true, ..Options::default() };
                told(&object, on(&object, words, groups, threads, &options))
            };
            let all = THREADS.map(run);
            assert!(all.iter().all(|other| *other == all[0]), "{code:?}, {max_steps} steps: {all:?}");
        }
    }
}

#[test]
fn the_lowest_workgroup_that_fails_is_to_blame_and_those_before_it_have_stored() {
    let object = Builder::new(STORE_IDS).object();
    for threads in THREADS {
        let options = Options { threads: Some(threads), ..Options::default() };
        let (words, outcome) = on(&object, 64 * 150, 300, 64, &options);
        let error = outcome.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::OutsideAllocations { what: "store", .. }), "{error}");
        assert_eq!(error.site.unwrap().workgroup, [150, 0, 0]);
        assert!(words.iter().enumerate().all(|(i, x)| *x == i as u32 % 64));
        // Six instructions a workgroup: the limit is reached in the middle of number 100.
        let (words, outcome) = on(&object, 64 * 150, 300, 64, &Options { max_steps: 603, ..options });
        let error = outcome.unwrap_err();
        let site = error.site.unwrap();
        assert_eq!(
            (error.kind, site.workgroup, site.text.as_str()),
            (ErrorKind::StepLimit(603), [100, 0, 0], WAIT_LGKM.1)
        );
        assert!(words.iter().enumerate().all(|(i, x)| *x == if i < 6400 { i as u32 % 64 } else { i as u32 }));
        // Exactly enough for those that there are.
        let (_, outcome) = on(&object, 64 * 150, 150, 64, &Options { max_steps: 900, ..options });
        assert_eq!(outcome.unwrap().instructions, 900);
        assert!(on(&object, 64 * 150, 150, 64, &Options { max_steps: 899, ..options }).1.is_err());
    }
}

#[test]
fn workgroups_that_touch_the_same_bytes_are_reported() {
    let races = |code: Code, words: u32| {
        let object = Builder::new(code).object();
        let threads = if words == 128 { 128 } else { 64 };
        let (words, outcome) = on(&object, words, 6, threads, &Options::default());
        (words, outcome.unwrap().races)
    };
    // All store their numbers in one place: the last one stands there.
    let (words, found) = races(STORE_GROUP, 64);
    assert!(words.iter().all(|x| *x == 5), "{words:?}");
    let [race] = &found[..] else { panic!("{found:?}") };
    assert_eq!((race.first.workgroup, race.second.workgroup), ([0; 3], [1, 0, 0]));
    let text = race.to_string();
    let store = format!("`{}`", STORE_V3.1);
    assert!(text.starts_with("workgroup (1, 0, 0) stores byte 0x5a00"), "{text}");
    assert!(
        text.contains(", where workgroup (0, 0, 0) stores another value (pc ") && text.matches(&store).count() == 2,
        "{text}"
    );
    // One loads what the next one stores: it sees what was there before the launch, in whatever order they run.
    let (words, found) = races(SHIFT, 64 * 7);
    assert!(words[..64 * 6].iter().enumerate().all(|(i, x)| *x == i as u32 + 64));
    let [race] = &found[..] else { panic!("{found:?}") };
    assert_eq!((race.first.writes, race.second.writes), (false, true));
    let text = race.to_string();
    assert!(text.contains("(1, 0, 0) stores") && text.contains("which workgroup (0, 0, 0) loads (pc "), "{text}");
    assert!(text.contains(LOAD_NEXT.1) && text.contains(STORE_V3.1), "{text}");
    // The same value from all, and each its own place.
    for (code, words) in [(EXCHANGE, 128), (KEEP, 64 * 6), (READ_BACK, 64 * 6)] {
        assert_eq!(races(code, words).1, []);
    }
}
