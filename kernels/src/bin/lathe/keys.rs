//! Keys files: which kernels to compile, one a line.

use std::collections::HashMap;
use std::path::Path;

use lathe_kernels::registry::{Build, Entry};

use crate::failure::Failure;

/// Reads a keys file: on each line a kernel's name and the key fields to set, as in `mla_combine ranks=8 tokens=8`; what
/// follows a `#` is a comment.
pub fn read(path: &Path) -> Result<Vec<Box<dyn Build>>, Failure> {
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| Failure::request(format!("cannot read {file}: {e}")))?;
    let mut builds = vec![];
    let mut lines = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |message: String| Failure::request(format!("{file}:{number}: {message}"));
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(name) = words.next() else { continue };
        let kernel = Entry::find(name).map_err(|e| wrong(e.to_string()))?;
        let settings = words.map(crate::setting).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let build = kernel.build(&settings).map_err(|e| wrong(e.to_string()))?;
        if let Some(first) = lines.insert((name, build.fields()), number) {
            return Err(wrong(format!("`{name}` {{{}}} is the build of line {first} already", build.key())));
        }
        builds.push(build);
    }
    if builds.is_empty() {
        return Err(Failure::request(format!("{file} names no kernel; a line is KERNEL [FIELD=VALUE]...")));
    }
    Ok(builds)
}
