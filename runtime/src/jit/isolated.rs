//! Compiling in a child process, for hosts that cannot risk a crash of the compiler.
//!
//! ```text
//! host                                            worker (`lathe compile-worker`, or any program that calls `serve`)
//!   request ── standard input ───────────────────►  one request, to the end of input
//!   answer  ◄─ standard output ──────────────────   one answer; status 0
//! ```
//!
//! One worker a compile: nothing that went wrong in one can reach the next. The host needs no LLVM.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use lathe_dsl::artifact::{Artifact, CompileRecord};
use lathe_dsl::{Target, ir};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Code, Compiler};
use crate::error::Error;
use crate::key::Fingerprint;

/// What every message begins with.
const MAGIC: &[u8; 8] = b"lathe-w\n";

/// Host and worker must be of one version: messages hold Kernel IR.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Longest message that is read, in bytes.
const MAX_MESSAGE: u64 = 1 << 30;

/// Most of a worker's standard error that is kept, in bytes.
const MAX_STDERR: u64 = 64 << 10;

/// Time limit of a compile, unless another is set.
const TIMEOUT: Duration = Duration::from_secs(300);

/// What a host asks.
#[derive(Serialize, Deserialize)]
enum Request {
    /// Which toolchain is it?
    Toolchain,
    /// Compile this.
    Compile {
        kernel: Box<ir::Kernel>,
        /// Chip name.
        target: String,
        reproducer_dir: Option<PathBuf>,
    },
}

/// What a worker answers.
#[derive(Serialize, Deserialize)]
enum Answer {
    Toolchain(Toolchain),
    Compiled(Box<Artifact>, Toolchain),
    /// The compiler's error, in its own words.
    Failed(String),
}

/// [`Fingerprint`] as it travels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Toolchain {
    llvm: String,
    lathe: String,
}

fn encode(message: &impl Serialize) -> Result<Vec<u8>, String> {
    let head = [MAGIC.as_slice(), &[VERSION.len() as u8], VERSION.as_bytes()].concat();
    postcard::to_extend(message, head).map_err(|e| format!("cannot be written: {e}"))
}

/// Reads a whole message; says what is wrong with it.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let (len, rest) = bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first).ok_or("is no message of Lathe's")?;
    let (version, body) = rest.split_at_checked(usize::from(*len)).ok_or("ends in its head")?;
    if version != VERSION.as_bytes() {
        return Err(format!("is of Lathe {}, not {VERSION}", String::from_utf8_lossy(version)));
    }
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(format!("has {} bytes too many", rest.len())),
        Err(e) => Err(format!("is damaged: {e}")),
    }
}

/// How a worker ended, if not with an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum End {
    /// It could not be started; why.
    NotStarted(String),
    /// A signal ended it, SIGSEGV (11) or SIGABRT (6) say.
    Signal(i32),
    /// It ended with this status, not 0.
    Status(i32),
    /// It ended with status 0, but what it wrote is no answer; what is wrong with it.
    Garbage(String),
    /// It took longer than allowed, and was killed.
    TimedOut(Duration),
    /// It was made with another toolchain than the worker that was asked first.
    OtherToolchain,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
            Self::Signal(signal) => {
                let name = match signal {
                    4 => " (SIGILL)",
                    6 => " (SIGABRT)",
                    7 => " (SIGBUS)",
                    8 => " (SIGFPE)",
                    9 => " (SIGKILL)",
                    11 => " (SIGSEGV)",
                    15 => " (SIGTERM)",
                    _ => "",
                };
                write!(f, "was ended by signal {signal}{name}")
            }
            Self::Status(status) => write!(f, "ended with status {status}"),
            Self::Garbage(what) => write!(f, "gave no answer: what it wrote {what}"),
            Self::TimedOut(limit) => write!(f, "was killed after {:.3} s without an answer", limit.as_secs_f64()),
            Self::OtherToolchain => f.write_str("was replaced by one of another toolchain while this process ran"),
        }
    }
}

/// A kernel was not compiled by a worker.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IsolatedError {
    /// The compiler refused the kernel or failed in an orderly way: its own message.
    #[error("{0}")]
    Compiler(String),
    /// The worker gave no answer.
    #[error("kernel `{}` was not compiled for {}: the compile worker `{}` {}{}{}", .0.kernel, .0.target, .0.program.display(),
        .0.end, said(&.0.stderr), reproducer(&.0.reproducer))]
    Worker(Box<WorkerLost>),
}

/// A worker that gave no answer.
#[derive(Clone, Debug)]
pub struct WorkerLost {
    /// Kernel name.
    pub kernel: String,
    /// The chip.
    pub target: Target,
    /// The worker's program.
    pub program: PathBuf,
    /// How it ended.
    pub end: End,
    /// What it wrote to its standard error, up to 64 KiB.
    pub stderr: String,
    /// A directory with the kernel and the request (feed it to the worker's standard input to see the failure again), or why
    /// there is none.
    pub reproducer: Result<PathBuf, String>,
}

/// The first line of a worker's standard error.
fn said(stderr: &str) -> String {
    match stderr.lines().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("; it said: {}", line.trim()),
        None => String::new(),
    }
}

fn reproducer(path: &Result<PathBuf, String>) -> String {
    match path {
        Ok(path) => format!(" (reproducer: {})", path.display()),
        Err(reason) => format!(" (no reproducer: {reason})"),
    }
}

/// Compiles in child processes.
///
/// ```no_run
/// use lathe_runtime::jit::{Isolated, Jit};
/// let jit = Jit::new(Isolated::new("/usr/bin/lathe", ["compile-worker"]));
/// ```
#[derive(Debug)]
pub struct Isolated {
    program: PathBuf,
    args: Vec<OsString>,
    timeout: Duration,
    reproducer_dir: Option<PathBuf>,
    /// Of the first worker that was asked; `None` if it did not say.
    toolchain: OnceLock<Option<Toolchain>>,
}

impl Isolated {
    /// Compiles with `program args…`, which must call this module's `serve` (`lathe compile-worker` does). A compile may take 5 minutes.
    pub fn new(program: impl Into<PathBuf>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            timeout: TIMEOUT,
            reproducer_dir: None,
            toolchain: OnceLock::new(),
        }
    }

    /// Kills a worker that takes longer than this.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Leaves reproducers of failed compiles under `dir`, not in the system's temporary directory.
    pub fn with_reproducer_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.reproducer_dir = Some(dir.into());
        self
    }

    /// Runs one worker on one request.
    fn ask(&self, request: Vec<u8>) -> Result<Answer, (End, String)> {
        let deadline = Instant::now() + self.timeout;
        let not_started = |e: io::Error| (End::NotStarted(e.to_string()), String::new());
        let piped = || Stdio::piped();
        let child = Command::new(&self.program).args(&self.args).stdin(piped()).stdout(piped()).stderr(piped()).spawn();
        let mut child = child.map_err(not_started)?;

        // Threads move the bytes, so that a worker that neither reads nor writes can be waited for with a time limit. They
        // end when the pipes close; nobody waits for them, since a grandchild may hold a pipe open for ever.
        if let Some(mut stdin) = child.stdin.take() {
            let feed = move || {
                // A worker that died early is found out by how it ended.
                let _ = stdin.write_all(&request);
            };
            spawn(feed).map_err(|e| stop(&mut child, e))?;
        }
        let output = collect(child.stdout.take(), MAX_MESSAGE).map_err(|e| stop(&mut child, e))?;
        let errors = collect(child.stderr.take(), MAX_STDERR).map_err(|e| stop(&mut child, e))?;

        let left = || deadline.saturating_duration_since(Instant::now());
        let received = output.recv_timeout(left());
        let status = match received {
            Err(RecvTimeoutError::Timeout) => None,
            _ => wait(&mut child, deadline),
        };
        let Some(status) = status else {
            let _ = child.kill();
            let _ = child.wait();
            let stderr = errors.recv_timeout(Duration::from_millis(50)).unwrap_or_default();
            return Err((End::TimedOut(self.timeout), text(&stderr)));
        };
        let stderr = || text(&errors.recv_timeout(Duration::from_millis(500)).unwrap_or_default());
        match ended_badly(status) {
            Some(end) => Err((end, stderr())),
            None => decode(&received.unwrap_or_default()).map_err(|what| (End::Garbage(what), stderr())),
        }
    }

    fn toolchain(&self) -> Option<&Toolchain> {
        let ask = || match self.ask(encode(&Request::Toolchain).ok()?) {
            Ok(Answer::Toolchain(toolchain)) => Some(toolchain),
            Ok(_) => None,
            Err((end, stderr)) => {
                tracing::warn!(program = %self.program.display(), %end, stderr, "the compile worker names no toolchain");
                None
            }
        };
        self.toolchain.get_or_init(ask).as_ref()
    }

    /// The toolchain that cache keys were made with, if any was asked for.
    fn known(&self) -> Option<&Toolchain> {
        self.toolchain.get()?.as_ref()
    }

    fn run(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<Artifact, IsolatedError> {
        let request = encode(&Request::Compile {
            kernel: Box::new(ir::Kernel::clone(kernel)),
            target: target.to_string(),
            reproducer_dir: self.reproducer_dir.clone(),
        })
        .map_err(|what| IsolatedError::Compiler(format!("kernel `{}` {what}", kernel.name)))?;
        let (end, stderr) = match self.ask(request.clone()) {
            Ok(Answer::Compiled(_, toolchain)) if self.known().is_some_and(|t| *t != toolchain) => {
                (End::OtherToolchain, String::new())
            }
            Ok(Answer::Compiled(artifact, _)) if artifact.target == target && artifact.symbol == kernel.name => {
                return Ok(*artifact);
            }
            Ok(Answer::Failed(message)) => return Err(IsolatedError::Compiler(message)),
            Ok(Answer::Compiled(..) | Answer::Toolchain(_)) => {
                (End::Garbage("answers another request".into()), String::new())
            }
            Err(lost) => lost,
        };
        let root = self.reproducer_dir.clone().unwrap_or_else(std::env::temp_dir);
        let reproducer = write_reproducer(&root, kernel, target, &request, &format!("{end}\n\n{stderr}"));
        let (kernel, program) = (kernel.name.clone(), self.program.clone());
        Err(IsolatedError::Worker(Box::new(WorkerLost { kernel, target, program, end, stderr, reproducer })))
    }
}

impl Compiler for Isolated {
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
        let artifact = self.run(kernel, target).map_err(Error::compile)?;
        let record = artifact.record.clone();
        Ok((Code::Object(Box::new(artifact)), record))
    }

    /// The first worker's; `None` if it does not answer, which the compile that follows explains.
    fn fingerprint(&self) -> Option<Fingerprint> {
        self.toolchain().map(|t| Fingerprint { llvm: t.llvm.clone(), lathe: t.lathe.clone() })
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("lathe-isolated".into()).spawn(work).map(drop)
}

/// Ends a worker that cannot be used for want of a thread.
fn stop(child: &mut Child, error: io::Error) -> (End, String) {
    let _ = child.kill();
    let _ = child.wait();
    (End::NotStarted(format!("no thread to talk to it: {error}")), String::new())
}

/// Reads a pipe to its end, on a thread of its own; keeps `limit` bytes.
fn collect(pipe: Option<impl Read + Send + 'static>, limit: u64) -> io::Result<std::sync::mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = channel();
    spawn(move || {
        let mut bytes = vec![];
        if let Some(mut pipe) = pipe {
            // Cut short, it is no message; the rest is read all the same, for the worker not to block.
            let _ = pipe.by_ref().take(limit).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        let _ = sender.send(bytes);
    })?;
    Ok(receiver)
}

/// Waits for a worker whose output has ended; `None` if it does not end in time.
fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn ended_badly(status: ExitStatus) -> Option<End> {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Some(End::Signal(signal));
    }
    match status.code() {
        Some(0) => None,
        code => Some(End::Status(code.unwrap_or(-1))),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Writes `kernel.kir`, `request.bin` and `error.txt` into a fresh directory.
fn write_reproducer(
    root: &Path,
    kernel: &ir::Kernel,
    target: Target,
    request: &[u8],
    error: &str,
) -> Result<PathBuf, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |e: io::Error| format!("{path}: {e}")
    };
    std::fs::create_dir_all(root).map_err(failed(root))?;
    let dir = loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = root.join(format!("lathe-isolated-{}-{target}-{}-{n}", kernel.name, std::process::id()));
        match std::fs::create_dir(&dir) {
            Ok(()) => break dir,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(&dir)(e)),
        }
    };
    let kir = kernel.to_string();
    for (name, bytes) in [("kernel.kir", kir.as_bytes()), ("request.bin", request), ("error.txt", error.as_bytes())] {
        let path = dir.join(name);
        std::fs::write(&path, bytes).map_err(failed(&path))?;
    }
    Ok(dir)
}

/// A worker's whole life: reads one request from standard input, does it, writes one answer to standard output. Nothing else
/// may be written there.
///
/// # Errors
/// The request is none, or the streams fail. The worker must then end with a status other than 0.
#[cfg(feature = "jit")]
pub fn serve() -> Result<(), String> {
    let mut bytes = vec![];
    io::stdin().lock().take(MAX_MESSAGE).read_to_end(&mut bytes).map_err(|e| format!("standard input: {e}"))?;
    let request = decode(&bytes).map_err(|what| format!("the request on standard input {what}"))?;
    let answer = encode(&answer(request)).map_err(|what| format!("the answer {what}"))?;
    let mut out = io::stdout().lock();
    out.write_all(&answer).and_then(|()| out.flush()).map_err(|e| format!("standard output: {e}"))
}

#[cfg(feature = "jit")]
fn answer(request: Request) -> Answer {
    let toolchain = lathe_codegen::toolchain();
    let toolchain = Toolchain { llvm: toolchain.llvm, lathe: toolchain.lathe.to_owned() };
    let (kernel, target, reproducer_dir) = match request {
        Request::Toolchain => return Answer::Toolchain(toolchain),
        Request::Compile { kernel, target, reproducer_dir } => (kernel, target, reproducer_dir),
    };
    let target: Target = match target.parse() {
        Ok(target) => target,
        Err(unknown) => return Answer::Failed(format!("kernel `{}`: {unknown}", kernel.name)),
    };
    let mut options = lathe_codegen::Options::default();
    options.reproducer_dir = reproducer_dir;
    match lathe_codegen::compile(&kernel, target, &options) {
        Ok(artifact) => Answer::Compiled(Box::new(artifact), toolchain),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

#[cfg(all(test, not(loom), unix))]
mod tests {
    use super::*;
    use lathe_dsl::builder;

    fn kernel() -> Arc<ir::Kernel> {
        let launch = ir::Launch::linear(1, 64);
        Arc::new(builder::build("idle", Target::GFX950, launch, vec![], |k| k.barrier()).unwrap())
    }

    fn lost(compiler: &Isolated) -> WorkerLost {
        match compiler.run(&kernel(), Target::GFX950) {
            Err(IsolatedError::Worker(lost)) => *lost,
            other => panic!("expected a lost worker, not {other:?}"),
        }
    }

    fn shell(script: &str, dir: &Path) -> Isolated {
        Isolated::new("/bin/sh", ["-c", script]).with_reproducer_dir(dir)
    }

    #[test]
    fn every_death_of_a_worker_is_an_error_that_says_how() {
        let dir = tempfile::tempdir().unwrap();
        let cases = [
            ("kill -SEGV $$", End::Signal(11), "was ended by signal 11 (SIGSEGV)"),
            ("cat > /dev/null; kill -ABRT $$", End::Signal(6), "was ended by signal 6 (SIGABRT)"),
            ("echo out of cheese >&2; exit 3", End::Status(3), "ended with status 3; it said: out of cheese"),
            ("cat > /dev/null", End::Garbage("is no message of Lathe's".into()), "gave no answer"),
            ("echo hello", End::Garbage("is no message of Lathe's".into()), "gave no answer"),
        ];
        for (script, end, words) in cases {
            let lost = lost(&shell(script, dir.path()));
            assert_eq!(lost.end, end, "{script}");
            let reproducer = lost.reproducer.clone().unwrap();
            let message = IsolatedError::Worker(Box::new(lost)).to_string();
            assert!(message.starts_with("kernel `idle` was not compiled for gfx950: the compile worker `/bin/sh` "));
            assert!(message.contains(words) && message.contains(reproducer.to_str().unwrap()), "{message}");
            assert!(reproducer.starts_with(dir.path()));
            assert_eq!(std::fs::read_to_string(reproducer.join("kernel.kir")).unwrap(), kernel().to_string());
            let request = std::fs::read(reproducer.join("request.bin")).unwrap();
            let Ok(Request::Compile { kernel: read, target, .. }) = decode(&request) else { panic!("no request") };
            assert_eq!((&*read, target.as_str()), (&*kernel(), "gfx950"));
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let nobody = Isolated::new(dir.path().join("nobody"), ["x"]).with_reproducer_dir(dir.path());
        assert!(matches!(lost(&nobody).end, End::NotStarted(_)));
        assert!(nobody.fingerprint().is_none());
    }

    #[test]
    fn a_worker_that_hangs_is_killed_in_time() {
        let dir = tempfile::tempdir().unwrap();
        // The last one closes its output and still does not end; the one before leaves a grandchild with the pipes.
        for script in ["exec sleep 600", "sleep 600", "exec >&- ; exec sleep 600"] {
            let limit = Duration::from_millis(200);
            let start = Instant::now();
            let lost = lost(&shell(script, dir.path()).with_timeout(limit));
            assert_eq!(lost.end, End::TimedOut(limit), "{script}");
            assert!(start.elapsed() < Duration::from_secs(20), "{script}: {:?}", start.elapsed());
        }
    }

    /// A worker that answers from a file.
    fn answers(answer: &Answer, change: impl FnOnce(&mut Vec<u8>)) -> (tempfile::TempDir, Isolated) {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = encode(answer).unwrap();
        change(&mut bytes);
        let file = dir.path().join("answer");
        std::fs::write(&file, bytes).unwrap();
        let worker = shell(&format!("cat '{}'", file.display()), dir.path());
        (dir, worker)
    }

    fn artifact(symbol: &str, target: Target) -> Artifact {
        Artifact { target, symbol: symbol.to_owned(), code: vec![1, 2, 3], record: CompileRecord::default() }
    }

    fn toolchain(llvm: &str) -> Toolchain {
        Toolchain { llvm: llvm.to_owned(), lathe: VERSION.to_owned() }
    }

    #[test]
    fn an_answer_comes_through_and_a_damaged_one_does_not() {
        let good = Answer::Compiled(Box::new(artifact("idle", Target::GFX950)), toolchain("22"));
        let (_dir, worker) = answers(&good, |_| ());
        let (Code::Object(got), _) = worker.compile(&kernel(), Target::GFX950).unwrap() else { panic!("no object") };
        assert_eq!(*got, artifact("idle", Target::GFX950));

        let damages: [fn(&mut Vec<u8>); 4] =
            [|b| b.truncate(b.len() - 1), |b| b.push(0), |b| b.clear(), |b| b[10] ^= 1];
        for damage in damages {
            let (_dir, worker) = answers(&good, damage);
            assert!(matches!(lost(&worker).end, End::Garbage(_)));
        }
    }

    #[test]
    fn an_answer_to_another_question_is_refused() {
        for wrong in [artifact("other", Target::GFX950), artifact("idle", Target::SM_90)] {
            let (_dir, worker) = answers(&Answer::Compiled(Box::new(wrong), toolchain("22")), |_| ());
            assert_eq!(lost(&worker).end, End::Garbage("answers another request".into()));
        }
    }

    #[test]
    fn the_compiler_s_own_error_keeps_its_words() {
        let (_dir, worker) = answers(&Answer::Failed("at k.rs:3: no".to_owned()), |_| ());
        let error = worker.compile(&kernel(), Target::GFX950).unwrap_err();
        assert_eq!(error.to_string(), "at k.rs:3: no");
    }

    #[test]
    fn a_worker_replaced_by_one_of_another_toolchain_is_noticed() {
        let (dir, worker) = answers(&Answer::Toolchain(toolchain("22")), |_| ());
        assert_eq!(worker.fingerprint().unwrap().llvm, "22");
        let other = Answer::Compiled(Box::new(artifact("idle", Target::GFX950)), toolchain("23"));
        std::fs::write(dir.path().join("answer"), encode(&other).unwrap()).unwrap();
        assert_eq!(lost(&worker).end, End::OtherToolchain);
    }

    #[test]
    fn a_message_of_another_version_is_refused() {
        let bytes = encode(&Answer::Failed(String::new())).unwrap();
        let other = [MAGIC.as_slice(), &[5], b"9.9.9", &bytes[9 + VERSION.len()..]].concat();
        assert_eq!(decode::<Answer>(&other).err().unwrap(), format!("is of Lathe 9.9.9, not {VERSION}"));
    }
}
