//! Links a relocatable AMD object into a code object, with lld inside this process.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fs;
use std::ptr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

unsafe extern "C" {
    fn lathe_lld_link(argv: *const *const c_char, argc: usize, messages: *mut *mut c_char) -> c_int;
    fn lathe_lld_free(messages: *mut c_char);
}

/// lld keeps its state in globals: one link at a time, and none after a crash.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Linker {
    Idle,
    Busy,
    Dead,
}

static LINKER: Mutex<Linker> = Mutex::new(Linker::Idle);
static FREED: Condvar = Condvar::new();

thread_local! {
    /// Whether this thread is inside lld.
    static LINKING: Cell<bool> = const { Cell::new(false) };
}

fn linker() -> MutexGuard<'static, Linker> {
    LINKER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn release(to: Linker) {
    LINKING.set(false);
    *linker() = to;
    FREED.notify_all();
}

/// Called on a thread that will never run again: if it is inside lld, nobody must wait for it.
pub fn abandon() {
    if LINKING.get() {
        release(Linker::Dead);
    }
}

/// Links one relocatable object into a shared code object; every symbol must be defined.
///
/// # Errors
/// What lld or the file system said.
pub fn shared(object: &[u8]) -> Result<Vec<u8>, String> {
    let io = |what: &str| {
        let what = what.to_owned();
        move |e: std::io::Error| format!("{what}: {e}")
    };
    let dir = tempfile::Builder::new().prefix("lathe-link").tempdir().map_err(io("temporary directory"))?;
    let (input, output) = (dir.path().join("kernel.o"), dir.path().join("kernel.co"));
    fs::write(&input, object).map_err(io("object file"))?;

    let arg = |s: &str| CString::new(s).map_err(|_| "temporary path holds a zero byte".to_owned());
    let path = |p: &std::path::Path| p.to_str().ok_or("temporary path is not UTF-8".to_owned()).and_then(arg);
    let arguments = [
        arg("ld.lld")?,
        arg("-shared")?,
        arg("--no-undefined")?,
        arg("--threads=1")?,
        path(&input)?,
        arg("-o")?,
        path(&output)?,
    ];
    run(&arguments)?;
    fs::read(&output).map_err(io("linked file"))
}

/// Runs lld with these arguments, when it is free.
fn run(arguments: &[CString]) -> Result<(), String> {
    let mut state = FREED.wait_while(linker(), |s| *s == Linker::Busy).unwrap_or_else(PoisonError::into_inner);
    if *state == Linker::Dead {
        return Err("lld crashed earlier in this process and cannot run again".into());
    }
    *state = Linker::Busy;
    drop(state);
    LINKING.set(true);

    let argv: Vec<*const c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    let mut messages: *mut c_char = ptr::null_mut();
    // SAFETY: `argv` holds `argc` valid C strings; lld runs on one thread at a time, as `LINKER` sees to.
    let code = unsafe { lathe_lld_link(argv.as_ptr(), argv.len(), &mut messages) };
    release(if code == -1 { Linker::Dead } else { Linker::Idle });

    let text = if messages.is_null() {
        String::new()
    } else {
        // SAFETY: the shim hands out a zero-terminated string, released exactly once, after it was copied.
        unsafe {
            let text = CStr::from_ptr(messages).to_string_lossy().trim().to_owned();
            lathe_lld_free(messages);
            text
        }
    };
    match code {
        0 => Ok(()),
        -1 => Err(format!("lld crashed: {text}")),
        code if text.is_empty() => Err(format!("lld failed with code {code}")),
        _ => Err(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_an_error_with_lld_s_words_and_lld_runs_again() {
        for _ in 0..2 {
            let message = shared(b"not an object").unwrap_err();
            assert!(message.contains("kernel.o"), "{message}");
        }
    }
}
