//! Runs compiler code so that neither its fatal errors nor its panics end the process.
//!
//! LLVM reports a fatal error (an instruction that cannot be selected, say) to a handler and ends the process if that
//! returns. So each compile runs on a thread of its own; the handler reports to whoever waits for that thread and then
//! parks it for ever, leaking what it holds.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler;

use crate::link;

/// Why a contained piece of work gave no value.
#[derive(Debug)]
pub enum Lost {
    /// LLVM's fatal error; its thread is parked.
    Fatal(String),
    /// A Rust panic.
    Panic(String),
    /// No thread to run it on.
    Thread(io::Error),
}

/// Stack of a compile thread: LLVM recurses over expression trees.
const STACK_BYTES: usize = 16 << 20;

/// Takes a fatal error's text to whoever waits.
type Report = Box<dyn Fn(String)>;

thread_local! {
    /// Tells this thread's waiter about a fatal error; set on contained threads only.
    static ON_FATAL: RefCell<Option<Report>> = const { RefCell::new(None) };
}

/// Runs `work` on a thread of its own and waits for it.
pub fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Lost> {
    static INSTALL: Once = Once::new();
    // SAFETY: the handler is a plain function that lives as long as the process.
    INSTALL.call_once(|| unsafe { LLVMInstallFatalErrorHandler(Some(on_fatal)) });

    let (sender, receiver) = channel();
    let report: Sender<Result<T, Lost>> = sender.clone();
    thread::Builder::new()
        .name("lathe-compile".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            ON_FATAL.set(Some(Box::new(move |reason| drop(report.send(Err(Lost::Fatal(reason)))))));
            let value = catch_unwind(AssertUnwindSafe(work)).map_err(|p| Lost::Panic(panic_text(&*p)));
            ON_FATAL.set(None);
            // The waiter never hangs up before it has heard.
            let _ = sender.send(value);
        })
        .map_err(Lost::Thread)?;
    receiver.recv().unwrap_or_else(|_| Err(Lost::Panic("the compile thread ended without an answer".into())))
}

/// What a panic said.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}

/// LLVM's fatal-error handler: does not return on contained threads.
extern "C" fn on_fatal(reason: *const c_char) {
    // SAFETY: LLVM passes a zero-terminated string that lives until the handler returns.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().trim().to_owned();
    let reporter = ON_FATAL.try_with(|cell| cell.borrow_mut().take()).ok().flatten();
    match reporter {
        Some(report) => {
            link::abandon();
            report(reason);
            loop {
                thread::park();
            }
        }
        // A thread that is not ours: LLVM ends the process, so at least say why.
        None => eprintln!("LLVM: fatal error: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_panics_come_back() {
        assert_eq!(run(|| 6 * 7).unwrap(), 42);
        let Err(Lost::Panic(text)) = run(|| -> u32 { panic!("lost {}", "here") }) else { panic!("expected a panic") };
        assert_eq!(text, "lost here");
    }

    #[test]
    fn a_fatal_error_comes_back_and_its_thread_is_parked() {
        let Err(Lost::Fatal(text)) = run(|| on_fatal(c"cannot go on".as_ptr())) else {
            panic!("expected a fatal error")
        };
        assert_eq!(text, "cannot go on");
        assert_eq!(run(|| 1).unwrap(), 1);
    }
}
