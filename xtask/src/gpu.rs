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
const TESTS: [&str; 35] = [
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
    "devices::a_stream_does_everything_in_order",
    "devices::calls_that_wait_are_ordered_with_streams",
    "devices::an_event_orders_two_streams_and_tells_the_time",
    "devices::buffers_and_kernels_may_be_dropped_while_they_are_used",
    "devices::a_transfer_that_is_dropped_is_done",
    "devices::a_graph_replays_what_was_captured",
    "devices::a_graph_outlives_what_it_was_captured_from",
    "devices::a_failed_capture_spoils_nothing",
    "devices::what_a_kernel_needs_is_told_where_it_is_known",
    "filetests::every_file_holds",
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
    for library in libraries(&command("ldd").arg(&tests.to_string_lossy()).output()?) {
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

/// Paths of the libraries that `ldd` lists and that are not everywhere.
fn libraries(ldd: &str) -> Vec<&str> {
    let paths = ldd.lines().filter_map(|line| line.split_once("=> ")?.1.split_once(" (").map(|(path, _)| path.trim()));
    paths.filter(|path| path.starts_with('/') && !THERE.iter().any(|there| path.contains(there))).collect()
}

/// Unpacks the bundle beside it and runs every test that uses a GPU, or those whose names are given; one line a test at the end.
fn script() -> String {
    let tests = TESTS.join(" ");
    format!(
        r#"#!/usr/bin/env bash
# Runs the tests that use a GPU, from the root of the checkout; arguments name other tests.
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
        result="absent"
        failed=1
    elif "$there/tests" --exact "$test" --nocapture; then
        result="ok    "
    else
        result="FAILED"
        failed=1
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
\tlibmissing.so => not found
";
        let libs = ["/lib/x86_64-linux-gnu/libLLVM.so.22.1", "/lib/x86_64-linux-gnu/libmd.so.0"];
        assert_eq!(libraries(ldd), libs);
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

    #[test]
    fn the_script_is_one_that_bash_takes() {
        assert!(command("bash").args(["-n", "-c", &script()]).quiet());
    }
}
