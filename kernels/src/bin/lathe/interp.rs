//! `lathe interp`.

use std::collections::HashMap;
use std::path::PathBuf;

use lathe_dsl::ir::{Access, Bits, Kernel, Param, ParamKind, Scalar, Type};
use lathe_dsl::numerics::MmaRounding;
use lathe_dsl::{Warning, verify};
use lathe_runtime::interp::{self, ArgValue, Checks, Error, GlobalBuffer, Program};

use crate::failure::Failure;
use crate::output::{self, say};
use crate::{setup, text};

#[derive(clap::Args)]
pub struct Interp {
    /// File with one kernel as Kernel IR text.
    file: PathBuf,
    /// Chip whose wave width and limits the device takes on; without it, the first one with the kernel's wave width.
    #[arg(long)]
    target: Option<String>,
    /// Value of a parameter. A scalar: a number. A buffer, or an image row by row: its elements with commas between, `zeros`,
    /// `iota` (0, 1, 2, …), or `@FILE` for the bytes of a file. What is only written needs none.
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = argument)]
    args: Vec<(String, String)>,
    /// Seed of the order in which workgroups begin and waves are interleaved; without it they run in order.
    #[arg(long)]
    seed: Option<u64>,
    /// Host threads; without it, all.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// What is checked besides what always is: `all`, `none`, `default` (all but `nan`), or some of races, waits, nan with commas
    /// between.
    #[arg(long, default_value = "default")]
    checks: Checks,
    /// How the sums of matrix products are rounded: `exact`, or bit for bit as `sm_90` does.
    #[arg(long, value_parser = setup::rounding, default_value = "exact")]
    mma_rounding: MmaRounding,
    /// Print every element.
    #[arg(long)]
    full: bool,
}

/// A `--arg NAME=VALUE`.
fn argument(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "an argument is NAME=VALUE, such as x=1,2,3".to_owned())
}

/// Elements that are printed of a buffer, without `--full`.
const SHOWN: usize = 16;

/// What a parameter is launched with.
enum Given {
    Buffer(GlobalBuffer),
    Scalar(u64),
}

impl Interp {
    pub fn execute(&self) -> Result<(), Failure> {
        let kernel = text::read(&self.file)?;
        let target = text::target(&kernel, self.target.as_deref())?;
        let warnings = verify::verify(&kernel, target)
            .map_err(|refusal| Failure::request(format!("kernel `{}` is refused: {refusal}", kernel.name)))?;
        output::warn(&warnings.iter().map(Warning::to_string).collect::<Vec<_>>());
        let program = Program::new(&kernel).map_err(Failure::request)?;
        let given = self.given(&kernel)?;
        let values: Vec<ArgValue<'_>> = given
            .iter()
            .map(|g| match g {
                Given::Buffer(buffer) => ArgValue::Buffer(buffer),
                Given::Scalar(bits) => ArgValue::Scalar(*bits),
            })
            .collect();
        let options = interp::Options {
            seed: self.seed,
            threads: self.threads.map(usize::from),
            checks: self.checks,
            mma: self.mma_rounding,
            ..interp::Options::default()
        };
        let report = interp::launch(&program, &values, &options).map_err(|error| match error {
            Error::Fault(_) => Failure::outcome(error),
            _ => Failure::request(error),
        })?;
        for (param, given) in kernel.params.iter().zip(&given) {
            let (Some((elem, _, access)), Given::Buffer(buffer)) = (param.kind.elements(), given) else { continue };
            if access != Access::Read {
                say!("{}: {}", param.name, shown(elem, &buffer.to_vec(), if self.full { usize::MAX } else { SHOWN }));
            }
        }
        for finding in &report.findings {
            say!("finding  {finding}");
        }
        if report.findings_omitted > 0 {
            say!("finding  {} more", report.findings_omitted);
        }
        if report.findings.is_empty() { Ok(()) } else { Err(Failure::check()) }
    }

    /// The arguments, in order.
    fn given(&self, kernel: &Kernel) -> Result<Vec<Given>, Failure> {
        let mut values: HashMap<&str, &str> = HashMap::new();
        for (name, value) in &self.args {
            if !kernel.params.iter().any(|p| p.name == name) {
                let known: Vec<&str> = kernel.params.iter().map(|p| p.name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Failure::request(format!("`{}` has no parameter `{name}`; it has: {known}", kernel.name)));
            }
            if values.insert(name, value).is_some() {
                return Err(Failure::request(format!("argument `{name}` is given twice")));
            }
        }
        let one = |param: &Param| {
            value(param, values.get(param.name).copied())
                .map_err(|wrong| Failure::request(format!("argument `{}` {wrong}", param.name)))
        };
        kernel.params.iter().map(one).collect()
    }
}

/// A parameter's value from its text; what is wrong with it otherwise.
fn value(param: &Param, text: Option<&str>) -> Result<Given, String> {
    if let ParamKind::Scalar(scalar) = param.kind {
        return match text {
            Some(text) => constant(scalar, text).map(|bits| Given::Scalar(bits.0)),
            None => Err(format!("is missing: --arg {}=… with a {scalar}", param.name)),
        };
    }
    let (elem, len, access) = param.kind.elements().ok_or("has no elements")?;
    let bytes = usize::try_from(len * u64::from(elem.bytes())).ok();
    let buffer = bytes.and_then(GlobalBuffer::try_uninit);
    let (bytes, buffer) = bytes.zip(buffer).ok_or("does not fit this machine's memory")?;
    let data = match text {
        None if access == Access::Write => return Ok(Given::Buffer(buffer)),
        None => {
            return Err(format!(
                "is missing: --arg {}=… with {len} elements of {elem}, `zeros`, `iota` or `@FILE`",
                param.name
            ));
        }
        Some("zeros") => vec![0; bytes],
        Some("iota") => iota(elem, len)?,
        Some(text) => match text.strip_prefix('@') {
            Some(path) => std::fs::read(path).map_err(|e| format!("cannot be read from {path}: {e}"))?,
            None => elements(elem, text)?,
        },
    };
    if data.len() != bytes {
        let (given, elem_bytes) = (data.len(), elem.bytes());
        return Err(format!("has {given} bytes; {len} elements of {elem}, {elem_bytes} bytes each, are wanted"));
    }
    buffer.write(0, &data).map_err(|e| e.to_string())?;
    Ok(Given::Buffer(buffer))
}

fn constant(scalar: Scalar, text: &str) -> Result<Bits, String> {
    scalar.parse_constant(text.trim()).map_err(|wanted| format!("is `{text}` where {wanted} is wanted"))
}

/// Elements with commas between, as bytes.
fn elements(elem: Scalar, text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = vec![];
    for item in text.split(',') {
        bytes.extend_from_slice(&constant(elem, item)?.0.to_le_bytes()[..elem.bytes() as usize]);
    }
    Ok(bytes)
}

/// 0, 1, 2, … as bytes.
fn iota(elem: Scalar, len: u64) -> Result<Vec<u8>, String> {
    let one = |i: u64| Ok(constant(elem, &i.to_string())?.0.to_le_bytes()[..elem.bytes() as usize].to_vec());
    (0..len).map(one).collect::<Result<Vec<_>, String>>().map(|all| all.concat())
}

/// A buffer's type, length and elements; what repeats, and what is past `most`, as a count.
fn shown(elem: Scalar, bytes: &[u8], most: usize) -> String {
    let element = |chunk: &[u8]| chunk.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let all: Vec<u64> = bytes.chunks(elem.bytes() as usize).map(element).collect();
    let mut out = format!("{elem}[{}]", all.len());
    let mut rest = all.as_slice();
    let mut items = 0;
    while let Some(first) = rest.first() {
        if items == most {
            out.push_str(&format!(" and {} more", rest.len()));
            break;
        }
        let run = rest.iter().take_while(|e| *e == first).count();
        let times = if run > 1 { format!(" x{run}") } else { String::new() };
        out.push_str(&format!(" {}{times}", Type::Scalar(elem).constant(Bits(*first))));
        rest = &rest[run..];
        items += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_shown_short() {
        assert_eq!(shown(Scalar::I8, &[255, 255, 255, 1, 2], 16), "i8[5] -1 x3 1 2");
        assert_eq!(shown(Scalar::U8, &[1, 2, 3, 4, 4], 3), "u8[5] 1 2 3 and 2 more");
        assert_eq!(shown(Scalar::F32, &[0, 0, 0x80, 0x3F, 0, 0, 0, 0x80], 16), "f32[2] 1.0 -0.0");
        assert_eq!(shown(Scalar::U64, &[], 16), "u64[0]");
    }

    #[test]
    fn elements_are_typed() {
        assert_eq!(elements(Scalar::U16, "1, 0x203"), Ok(vec![1, 0, 3, 2]));
        assert_eq!(elements(Scalar::F16, "1.0,nan"), Ok(vec![0, 0x3C, 0, 0x7E]));
        assert_eq!(elements(Scalar::U8, "1,256").unwrap_err(), "is `256` where a number of type u8 is wanted");
        assert!(elements(Scalar::U8, "").is_err());
        assert_eq!(iota(Scalar::F16, 3), Ok(vec![0, 0, 0, 0x3C, 0, 0x40]));
        assert_eq!(iota(Scalar::U8, 257).unwrap_err(), "is `256` where a number of type u8 is wanted");
    }
}
