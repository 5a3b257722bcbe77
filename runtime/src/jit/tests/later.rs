//! Kernels before and after they are needed: warm-up, and a fallback meanwhile.

use std::sync::Mutex;
use std::time::Instant;

use super::*;

fn list(n: u32) -> Vec<(Shift, Target)> {
    (1..=n).flat_map(|n| [Target::GFX950, Target::SM_90].map(|t| (Shift { n, trouble: 0 }, t))).collect()
}

/// Waits until `done` says so.
fn until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_warm_up_gets_every_kernel_in_order() {
    let compiler = Texts::default();
    let jit = Jit::new(compiler.clone());
    let mut keys = list(12);
    keys[3].0.trouble = 1;
    keys.push(keys[0]);
    let mut heard = vec![];
    let results = jit.warm(&keys, |progress| heard.push(progress), &AtomicBool::new(false));
    assert_eq!(heard, (1..=25).map(|done| Progress { done, total: 25 }).collect::<Vec<_>>());
    assert_eq!(results.len(), 25);
    for (i, (result, (key, target))) in results.iter().zip(&keys).enumerate() {
        match result {
            Ok(compiled) => {
                assert!(i != 3 && compiled.target() == *target);
                assert!(Arc::ptr_eq(compiled, &jit.get(key, *target).unwrap()));
            }
            Err(error) => assert!(i == 3 && error.to_string().contains("the author's own mistake"), "{i}: {error}"),
        }
    }
    assert_eq!(compiler.compiles.load(Ordering::SeqCst), 23);
}

#[test]
fn a_warm_up_stops_between_kernels() {
    let jit = Jit::new(Texts::default());
    let keys: Vec<_> = list(50).into_iter().filter(|(key, _)| key.n != 13).collect();
    let cancel = AtomicBool::new(false);
    let results = jit.warm(&keys, |progress| cancel.store(progress.done >= 10, Ordering::Relaxed), &cancel);
    let (done, cancelled): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert!((10..10 + cores()).contains(&done.len()), "{}", done.len());
    assert_eq!(done.len() + cancelled.len(), 98);
    let message = cancelled[0].as_ref().unwrap_err().to_string();
    assert!(message.starts_with("`shift` for ") && message.ends_with("the warm-up was cancelled"), "{message}");
    assert!(jit.warm::<Shift>(&[], |_| panic!("nothing is done"), &AtomicBool::new(false)).is_empty());
}

#[test]
fn a_warm_up_uses_every_core() {
    let threads = Mutex::new(std::collections::HashSet::new());
    let start = Barrier::new(cores());
    let results = on_all_cores(
        &vec![(); cores()],
        |()| {
            // Passes only if all jobs run at the same time.
            start.wait();
            threads.lock().unwrap().insert(std::thread::current().id());
        },
        |_| {},
        &AtomicBool::new(false),
    );
    assert_eq!((results.len(), threads.into_inner().unwrap().len()), (cores(), cores()));
}

#[test]
fn the_fallback_stands_in_until_the_kernel_is_ready() {
    let compiler = Texts::default();
    let jit = Jit::new(compiler.clone());
    let fallback = jit.get(&Shift { n: 4096, trouble: 0 }, Target::GFX950).unwrap();
    let key = Shift { n: 64, trouble: 0 };
    // If any of the calls waited for the compile, it would wait for ever.
    compiler.hold.store(true, Ordering::SeqCst);
    for _ in 0..10 {
        let got = jit.get_or_fallback(&key, Target::GFX950, &fallback).unwrap();
        assert!(Arc::ptr_eq(&got, &fallback));
    }
    assert!(!jit.is_ready(&key, Target::GFX950));
    compiler.hold.store(false, Ordering::SeqCst);
    until(|| jit.is_ready(&key, Target::GFX950));
    let got = jit.get_or_fallback(&key, Target::GFX950, &fallback).unwrap();
    assert_eq!(got.kernel().launch.grid, [1, 1, 1]);
    assert!(!Arc::ptr_eq(&got, &fallback));
    assert_eq!(compiler.compiles.load(Ordering::SeqCst), 2);
    assert_eq!(jit.counters(), Counters { memory_hits: 1, misses: 2, compiles: 2, ..Counters::default() });
}

#[test]
fn whoever_cannot_take_the_fallback_waits_for_the_background_compile() {
    let compiler = Texts::default();
    let jit = Jit::new(compiler.clone());
    let fallback = jit.get(&Shift { n: 4096, trouble: 0 }, Target::GFX950).unwrap();
    let key = Shift { n: 64, trouble: 0 };
    compiler.hold.store(true, Ordering::SeqCst);
    jit.get_or_fallback(&key, Target::GFX950, &fallback).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| jit.get_from(&key, Target::GFX950).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        compiler.hold.store(false, Ordering::SeqCst);
        let (got, source) = waiter.join().unwrap();
        assert!(!Arc::ptr_eq(&got, &fallback));
        assert_eq!(source, CacheSource::Waited);
    });
    assert_eq!(compiler.compiles.load(Ordering::SeqCst), 2);
    assert_eq!(jit.counters().waits, 1);
}

#[test]
fn a_background_failure_is_told_once_and_tried_again() {
    let jit = Jit::new(Texts::default());
    let fallback = jit.get(&Shift { n: 4096, trouble: 0 }, Target::GFX950).unwrap();
    let key = Shift { n: 64, trouble: 1 };
    for _ in 0..2 {
        let misses = jit.counters().misses;
        assert!(Arc::ptr_eq(&jit.get_or_fallback(&key, Target::GFX950, &fallback).unwrap(), &fallback));
        let mut error = None;
        for _ in 0..60_000 {
            match jit.get_or_fallback(&key, Target::GFX950, &fallback) {
                Ok(got) => assert!(Arc::ptr_eq(&got, &fallback)),
                Err(e) => {
                    error = Some(e);
                    break;
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(error.unwrap().to_string().contains("the author's own mistake"));
        assert_eq!(jit.counters().misses, misses + 1, "one try a telling");
    }
}

#[test]
fn a_jit_ends_its_background_work_before_it_goes() {
    let compiler = Texts::default();
    let jit = Jit::new(compiler.clone());
    let fallback = jit.get(&Shift { n: 4096, trouble: 0 }, Target::GFX950).unwrap();
    compiler.hold.store(true, Ordering::SeqCst);
    for (key, target) in list(12) {
        jit.get_or_fallback(&key, target, &fallback).unwrap();
    }
    until(|| compiler.compiles.load(Ordering::SeqCst) > 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            compiler.hold.store(false, Ordering::SeqCst);
        });
        drop(jit);
        assert!(!compiler.hold.load(Ordering::SeqCst), "it waits for what has begun");
    });
    let begun = compiler.compiles.load(Ordering::SeqCst) as usize;
    assert!((1..=1 + cores()).contains(&begun), "{begun} of 25: those that had not begun are dropped");
    assert_eq!(Arc::strong_count(&compiler.compiles), 1, "no thread holds the compiler any more");
}

#[test]
fn the_compilers_warm_up_runs_once_beside_the_caller() {
    struct Cold(Arc<AtomicU32>);

    impl Compiler for Cold {
        fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
            Interpreter.compile(kernel, target)
        }

        fn warm_up(&self) -> Option<Box<dyn FnOnce() + Send>> {
            let (warmed, here) = (self.0.clone(), std::thread::current().id());
            Some(Box::new(move || {
                assert_ne!(std::thread::current().id(), here);
                warmed.fetch_add(1, Ordering::SeqCst);
            }))
        }
    }

    let warmed = Arc::new(AtomicU32::new(0));
    let jit = Jit::new(Cold(warmed.clone()));
    jit.get(&Shift { n: 1, trouble: 0 }, Target::GFX950).unwrap();
    until(|| warmed.load(Ordering::SeqCst) == 1);
    drop(jit);
    assert_eq!(warmed.load(Ordering::SeqCst), 1);
}
