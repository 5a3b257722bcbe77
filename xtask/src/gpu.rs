//! What a machine with a GPU and without Rust needs to run the tests there: one folder to carry over.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{cargo, command};

/// Largest size of the folder, in bytes.
const LIMIT: u64 = 64 << 20;
/// Libraries that every machine with a driver has, newer ones included: the C library's and the compiler's.
const THERE: [&str; 8] =
    ["libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libgcc_s.so", "libstdc++.so", "ld-linux"];
/// Tests that use a GPU where there is one.
const TESTS: [&str; 49] = [
    "cuda::mla_combine_keeps_its_bounds",
    "cuda::mla_combine_splits_keeps_its_bounds",
    "cuda::mla_uv_keeps_its_bounds",
    "cuda::messages_are_pushed_and_combined",
    "cuda::mla_post_of_one_rank_keeps_its_bounds",
    "cuda::gemm_mx_keeps_its_bounds",
    "cuda::a_launch_costs_what_the_driver_s_costs",
    "cuda::a_cubin_is_made_once",
    "cuda::a_module_newer_than_the_driver_is_refused_with_both_versions",
    "cuda::a_fault_is_told_with_the_kernels_that_can_have_been_it",
    "cuda::every_gpu_is_a_device_of_its_own",
    "dec2_gpu::whole_images_are_plain_rusts",
    "dec2_gpu::every_epilogue_is_plain_rusts",
    "dec2_gpu::images_by_texture_units_are_those_of_buffers",
    "dec2_gpu::the_blocks_time_and_its_floor",
    "devices::a_stream_does_everything_in_order",
    "devices::calls_that_wait_are_ordered_with_streams",
    "devices::an_event_orders_two_streams_and_tells_the_time",
    "devices::buffers_and_kernels_may_be_dropped_while_they_are_used",
    "devices::a_transfer_that_is_dropped_is_done",
    "devices::a_graph_replays_what_was_captured",
    "devices::a_graph_outlives_what_it_was_captured_from",
    "devices::a_failed_capture_spoils_nothing",
    "devices::what_a_kernel_needs_is_told_where_it_is_known",
    "images::images_may_be_dropped_while_they_are_used",
    "images::a_graph_keeps_its_images",
    "images::bad_images_are_refused_before_the_driver",
    "images::a_gpus_fetches_equal_the_interpreters",
    "images::a_gpus_nearest_samples_are_texels_at_the_place",
    "images::a_gpus_linear_samples_keep_the_bound",
    "images::a_gpus_surfaces_take_what_the_interpreters_take",
    "images::ptxas_takes_images",
    "filetests::every_file_holds",
    "group::gpus_run_each_rank_on_a_stream_of_its_own",
    "matrix::the_gpu_multiplies_as_the_interpreter_says",
    "matrix::relayout::sums_become_factors",
    "matrix::ptxas_takes_every_product",
    "peers::a_handle_is_for_other_processes_of_the_same_driver",
    "peers::a_region_is_reached_through_a_table_both_ways",
    "peers::a_region_stays_for_as_long_as_it_is_open",
    "peers::another_process_loads_and_stores",
    "peers::gpus_that_do_not_reach_each_other_are_named",
    "peers::messages_of_running_kernels_arrive_whole_and_in_order",
    "peers::values_of_every_width_arrive_at_a_gpu",
    "mla_post::ptxas_takes_every_class_of_key",
    "mla_post_gpu::two_gpus_agree_for_ten_thousand_steps",
    "mla_post_gpu::two_ranks_on_one_gpu_wait_for_each_other",
    "narrow::conversions_on_an_nvidia_gpu_are_what_narrow_says",
    "narrow::pieces::pieces_are_converted_as_narrow_says",
];

/// Builds the tests in release and packs them with the shared libraries that they need into `folder`.
pub fn bundle(folder: &Path) -> Result<(), String> {
    let tests = test_binary()?;
    let unpacked = folder.join("unpacked");
    let failed = |e: std::io::Error| format!("{}: {e}", unpacked.display());
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(unpacked.join("lib")).map_err(failed)?;
    fs::copy(&tests, unpacked.join("tests")).map_err(failed)?;
    // What device `hip` loads in tests lies beside their program.
    let stand_in = "liblathe_stand_in_hip.so";
    fs::copy(tests.with_file_name(stand_in), unpacked.join(stand_in)).map_err(|e| format!("{stand_in}: {e}"))?;
    for packed in ["tests", stand_in] {
        // Names of functions stay, for backtraces.
        command("strip").args(["--strip-debug", &unpacked.join(packed).to_string_lossy()]).run()?;
    }
    for library in libraries(&command("ldd").arg(&tests.to_string_lossy()).output()?)? {
        let name = Path::new(library).file_name().ok_or_else(|| format!("`{library}` names no file"))?;
        fs::copy(library, unpacked.join("lib").join(name)).map_err(|e| format!("{library}: {e}"))?;
    }
    let archive = folder.join("bundle.tar.xz");
    command("tar")
        .args(["--use-compress-program=xz -T0 --x86 --lzma2=preset=6,dict=64MiB", "-cf", &archive.to_string_lossy()])
        .args(["-C", &unpacked.to_string_lossy(), "."])
        .run()?;
    fs::remove_dir_all(&unpacked).map_err(failed)?;
    let run = folder.join("run");
    fs::write(&run, script()).map_err(|e| format!("{}: {e}", run.display()))?;
    let size = fs::metadata(&archive).map_err(|e| format!("{}: {e}", archive.display()))?.len();
    if size > LIMIT {
        return Err(format!("{} has {size} bytes, more than {LIMIT}", archive.display()));
    }
    println!(
        "{}: {:.1} MB; there, in the root of the checkout: bash {}",
        archive.display(),
        size as f64 / 1e6,
        run.display()
    );
    Ok(())
}

/// The integration tests' program, built.
fn test_binary() -> Result<PathBuf, String> {
    let build = ["--release", "--package", "lathe-tests", "--test", "lathe", "--no-run"];
    let messages = cargo("test").args(build).arg("--message-format=json-render-diagnostics").output()?;
    executable(&messages).map(PathBuf::from).ok_or_else(|| "cargo named no test program".to_owned())
}

/// The last program that cargo's messages name.
fn executable(messages: &str) -> Option<&str> {
    messages
        .lines()
        .rev()
        .find_map(|line| line.split_once(r#""executable":""#)?.1.split_once('"').map(|(path, _)| path))
}

/// Paths of the libraries that `ldd` lists and that are not everywhere; an error if it does not find one.
fn libraries(ldd: &str) -> Result<Vec<&str>, String> {
    if let Some(line) = ldd.lines().find(|line| line.contains("not found")) {
        return Err(format!("the tests need a library that is not here: {}", line.trim()));
    }
    let paths = ldd.lines().filter_map(|line| line.split_once("=> ")?.1.split_once(" (").map(|(path, _)| path.trim()));
    Ok(paths.filter(|path| path.starts_with('/') && !THERE.iter().any(|there| path.contains(there))).collect())
}

/// Unpacks the bundle beside it and runs every test that uses a GPU, or those whose names are given; one line a test at the end. It ends
/// with 0 if each of them ran and held. A test that says that it skipped something did not run.
fn script() -> String {
    let tests = TESTS.join(" ");
    format!(
        r#"#!/usr/bin/env bash
# Runs the tests that use a GPU, from the root of the checkout; arguments name other tests. With SKIPS_ARE_FINE=1 those that skip
# something do not count as failed.
set -uo pipefail
here="$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)"
there="$(mktemp -d)"
tar -xJf "$here/bundle.tar.xz" -C "$there" || exit 1
export LD_LIBRARY_PATH="$there/lib" CARGO_MANIFEST_DIR="$PWD/tests" INSTA_UPDATE=no
tests=("$@")
[ "${{#tests[@]}}" -gt 0 ] || tests=({tests})
failed=0
table=""
for test in "${{tests[@]}}"; do
    start="$(date +%s.%N)"
    if ! "$there/tests" --exact "$test" --list | grep -q ': test'; then
        result="absent "
        failed=1
    elif ! "$there/tests" --exact "$test" --nocapture 2>&1 | tee "$there/said"; then
        result="FAILED "
        failed=1
    elif grep -qE '^(test [^ ]+ \.\.\. )?(cuda )?skipped' "$there/said"; then
        result="skipped"
        [ "${{SKIPS_ARE_FINE:-}}" = 1 ] || failed=1
    else
        result="ok     "
    fi
    seconds="$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN {{ printf "%8.1f", b - a }}')"
    table+="$seconds s  $result  $test"$'\n'
done
printf '\n%s' "$table"
rm -rf "$there"
exit "$failed"
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_are_everywhere_are_left_out() {
        let ldd = "\
\tlinux-vdso.so.1 (0x00007fa0d13ee000)
\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007fa0cde00000)
\tlibLLVM.so.22.1 => /lib/x86_64-linux-gnu/libLLVM.so.22.1 (0x00007fa0c4e00000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fa0ce120000)
\tlibmd.so.0 => /lib/x86_64-linux-gnu/libmd.so.0 (0x00007fa0ce120000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fa0d13f0000)
";
        let libs = ["/lib/x86_64-linux-gnu/libLLVM.so.22.1", "/lib/x86_64-linux-gnu/libmd.so.0"];
        assert_eq!(libraries(ldd).as_deref(), Ok(&libs[..]));
        let error = libraries("\tlibmissing.so => not found\n").expect_err("it is needed");
        assert_eq!(error, "the tests need a library that is not here: libmissing.so => not found");
    }

    #[test]
    fn the_last_program_is_the_tests() {
        let messages = r#"{"reason":"compiler-artifact","executable":null}
{"reason":"compiler-artifact","executable":"/t/release/lathe"}
{"reason":"compiler-artifact","executable":"/t/release/deps/lathe-1","fresh":true}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some("/t/release/deps/lathe-1"));
        assert_eq!(executable("{}"), None);
    }

    /// A folder that is there for one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("lathe-xtask-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("unpacked/lib")).expect("a folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// In place of the tests: a program that does what the name of the test says.
    const TESTS_STAND_IN: &str = r#"#!/bin/sh
[ "$2" = absent ] && exit
[ "$3" = --list ] && echo "$2: test" && exit
case "$2" in
    holds) echo "nothing was skipped" ;;
    skips) echo "skipped: no GPU" ;;
    skips_in_a_line) echo "test skips ... skipped: no GPU" ;;
    skips_one) echo "cuda skipped: no GPU" >&2 ;;
    fails) echo "skipped: no GPU"; exit 101 ;;
esac
"#;

    #[test]
    fn the_script_tells_what_became_of_each_test() {
        let folder = Folder::new("script");
        let path = |name: &str| folder.0.join(name).to_string_lossy().into_owned();
        fs::write(path("run"), script()).expect("it is written");
        fs::write(path("unpacked/tests"), TESTS_STAND_IN).expect("it is written");
        command("chmod").args(["+x", &path("unpacked/tests")]).run().expect("it is a program");
        command("tar")
            .args(["-cJf", &path("bundle.tar.xz"), "-C", &path("unpacked"), "."])
            .run()
            .expect("it is packed");
        let run = |fine: &str, tests: &[&str]| {
            let mut bash = std::process::Command::new("bash");
            let output = bash.arg(path("run")).args(tests).env("SKIPS_ARE_FINE", fine).output().expect("bash is there");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let results = text.lines().filter_map(|line| line.split_once(" s  ")?.1.split_once("  "));
            (results.map(|(result, _)| result.trim().to_owned()).collect::<Vec<_>>(), output.status.code())
        };
        let told = |results: &[&str], code| (results.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>(), Some(code));
        assert_eq!(run("", &["holds"]), told(&["ok"], 0));
        let skips = ["skips", "skips_in_a_line", "skips_one"];
        for skip in skips {
            assert_eq!(run("", &["holds", skip]), told(&["ok", "skipped"], 1));
        }
        assert_eq!(run("1", &skips), told(&["skipped"; 3], 0));
        assert_eq!(run("1", &["fails", "holds", "absent"]), told(&["FAILED", "ok", "absent"], 1));
    }

    /// The functions of a file that are in no other item, each with its text, and whether it is a test that runs by itself.
    fn functions(source: &str) -> Vec<(&str, String, bool)> {
        let mut all: Vec<(&str, String, bool)> = vec![];
        let (mut attributes, mut open) = (String::new(), false);
        for line in source.lines() {
            let head = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("fn ");
            if let Some(name) = head.and_then(|rest| rest.split(['(', '<']).next()) {
                let test = attributes.contains("#[test]") && !attributes.contains("#[ignore");
                all.push((name, String::new(), test));
                open = true;
            }
            if line.starts_with("#[") {
                attributes.push_str(line);
            } else {
                attributes.clear();
            }
            if let (true, Some((_, text, _))) = (open, all.last_mut()) {
                text.push_str(line);
                text.push('\n');
            }
            open &= !line.starts_with('}');
        }
        all
    }

    /// Whether a function calls another one of its file.
    fn calls(text: &str, name: &str) -> bool {
        text.match_indices(&format!("{name}(")).any(|(at, _)| {
            let before = &text[..at];
            !before.ends_with("fn ") && !before.ends_with(|c: char| c.is_alphanumeric() || "_:.".contains(c))
        })
    }

    /// Tests of a file that ask for the GPU, themselves or by functions beside them.
    fn asking(source: &str) -> Vec<&str> {
        let functions = functions(source);
        let mut asks: Vec<bool> = functions.iter().map(|(_, text, _)| text.contains("machine::gpu()")).collect();
        while let Some(next) = (0..functions.len()).find(|i| {
            let by = |j: usize| asks[j] && calls(&functions[*i].1, functions[j].0);
            !asks[*i] && (0..functions.len()).any(by)
        }) {
            asks[next] = true;
        }
        functions.iter().zip(asks).filter(|((_, _, test), asks)| *test && *asks).map(|((name, ..), _)| *name).collect()
    }

    fn sources(folder: &Path, list: &mut Vec<PathBuf>) {
        for item in fs::read_dir(folder).expect("a folder") {
            let path = item.expect("an item").path();
            let stand_in = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("stand-in"));
            if path.is_dir() && !stand_in {
                sources(&path, list);
            } else if path.extension().is_some_and(|e| e == "rs") {
                list.push(path);
            }
        }
    }

    /// Those that reach it through another file's functions are not seen.
    #[test]
    fn every_test_that_asks_for_the_gpu_is_in_the_list() {
        let root = crate::root().join("tests");
        let mut files = vec![];
        sources(&root, &mut files);
        let mut found = vec![];
        for file in files {
            let source = fs::read_to_string(&file).expect("it is read");
            let module = file.strip_prefix(&root).expect("it is within").with_extension("");
            let module = module.to_string_lossy().replace('/', "::");
            let module = module.trim_end_matches("::mod");
            found.extend(asking(&source).into_iter().map(|test| format!("{module}::{test}")));
        }
        assert!(found.len() > 20, "{found:?}");
        let missing: Vec<_> = found.iter().filter(|test| !TESTS.contains(&test.as_str())).collect();
        assert!(missing.is_empty(), "not in TESTS: {missing:?}");
    }
}
