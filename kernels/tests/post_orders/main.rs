//! Promise: ranks of the whole `mla_post`, step after step, give what plain Rust gives, in whatever order their waves run and their
//! stores become visible; and if the protocol between them is broken somewhere, some order shows it.

mod breaks;
mod ranks;
mod seats;
mod steps;

use lathe_dsl::prelude::*;
use lathe_dsl::{ir, trace};
use lathe_kernels::mla::post::MlaPost;
use lathe_runtime::interp::{Checks, explore};

use breaks::{BREAKS, Text};
use ranks::Run;
use steps::Steps;

/// Races are looked for in a few orders: whether results are right does not depend on it, but the time that a thousand runs take.
const NO_RACES: Checks = Checks { races: false, ..Checks::DEFAULT };

/// Two ranks, whose workgroups have several tasks each.
const SMALL: MlaPost = MlaPost { ranks: 2, tokens: 1, q: 1, splits: 0, ctas: 2, wait_us: 0 };

/// Two steps before the count of steps in a tag begins anew.
const FIRST_EPOCH: u32 = (7 << 22) - 2;

fn traced(key: &MlaPost) -> ir::Kernel {
    trace(key, Target::GFX950).expect("accepted")
}

/// The same steps in each of some orders; where the count in the tags begins anew, or that of steps.
#[test]
fn two_ranks_agree_with_plain_rust_in_a_thousand_orders() {
    let run = |key: MlaPost, steps, first_epoch| Run::new(Steps::new(key, steps, first_epoch), &traced(&key));
    // At least three steps, so that ranks come back to the half that they began with.
    let tags = run(SMALL, 3, FIRST_EPOCH);
    explore(0..300, |seed| tags.run(seed, NO_RACES)).unwrap();
    let counts = run(SMALL, 4, u32::MAX - 1);
    explore(300..400, |seed| counts.run(seed, NO_RACES)).unwrap();
    // One, from whatever lies in the regions.
    let first = run(SMALL, 1, 1);
    explore(400..1000, |seed| first.run(seed, NO_RACES)).unwrap();
}

/// More tokens than waves of a rank, padding, more ranks, and no races.
#[test]
fn more_tokens_and_ranks_agree_with_plain_rust() {
    for (key, steps, seeds) in [
        (SMALL, 3, 4),
        (MlaPost { tokens: 2, ..SMALL }, 4, 4),
        (MlaPost { tokens: 6, q: 3, ctas: 3, ..SMALL }, 3, 2),
        (MlaPost { ranks: 4, ctas: 1, ..SMALL }, 3, 4),
        (MlaPost { ranks: 8, ctas: 1, ..SMALL }, 3, 1),
    ] {
        let run = Run::new(Steps::new(key, steps, FIRST_EPOCH), &traced(&key));
        explore(0..seeds, |seed| run.run(seed, Checks::DEFAULT)).unwrap_or_else(|e| panic!("{key:?}: {e}"));
    }
    // Waves of 32 lanes.
    let key = MlaPost { ctas: 3, ..SMALL };
    let run = Run::new(Steps::new(key, 3, FIRST_EPOCH), &trace(&key, Target::SM_90).expect("accepted"));
    explore(0..4, |seed| run.run(seed, Checks::DEFAULT)).unwrap();
}

#[test]
fn every_break_of_the_protocol_shows_in_some_order() {
    let mut failures = vec![];
    for one in BREAKS {
        let key = MlaPost { tokens: one.tokens, ..SMALL };
        let run = Run::new(Steps::new(key, 3, FIRST_EPOCH), &Text::edited(&traced(&key), one));
        // Looking for races takes as long again.
        let checks = if one.says.contains(&"race") { Checks::DEFAULT } else { NO_RACES };
        match explore(0..1000, |seed| run.run(seed, checks)) {
            Ok(()) => failures.push(format!("{}: not found", one.name)),
            Err(found) if one.says.iter().any(|s| found.error.contains(s)) => println!("{}: {found}", one.name),
            Err(found) => failures.push(format!("{}: {found}", one.name)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What `Seat::begin` refuses is refused for a reason.
#[test]
fn epochs_that_skip_or_stay_show_in_some_order() {
    for stride in [0, 2] {
        let run = Run::new(Steps { stride, ..Steps::new(SMALL, 3, FIRST_EPOCH) }, &traced(&SMALL));
        let found = explore(0..1000, |seed| run.run(seed, NO_RACES)).expect_err("it goes wrong");
        println!("{stride}: {found}");
        assert!(["wrong values", "endless wait"].iter().any(|s| found.error.contains(s)), "{stride}: {found}");
    }
}
