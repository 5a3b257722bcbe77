//! Compiled code as a list of instructions, for digests and coverage.

use std::collections::BTreeMap;

use lathe_dsl::artifact::Artifact;
use lathe_dsl::{Arch, Target};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};

use crate::Disassembler;

/// The instructions of an artifact's kernel, in order, as the target's assembler spells them: of an AMD code object up to
/// and with the last `s_endpgm`, of PTX those of the entry's body.
///
/// # Errors
/// The artifact's code is not what its target says: not an ELF file, no such symbol, words that are no instruction.
pub fn listing(artifact: &Artifact) -> Result<Vec<String>, String> {
    match artifact.target.chip().arch {
        Arch::Amdgpu => code_object(artifact),
        Arch::Nvptx => std::str::from_utf8(&artifact.code).map(ptx).map_err(|e| format!("PTX: {e}")),
    }
}

/// How often each mnemonic stands in an artifact's kernel.
///
/// # Errors
/// As [`listing`].
pub fn mnemonics(artifact: &Artifact) -> Result<BTreeMap<String, u32>, String> {
    let mut counts = BTreeMap::new();
    for instruction in listing(artifact)? {
        let mut words = instruction.split_whitespace();
        let mnemonic = match words.next() {
            // A PTX guard is no mnemonic.
            Some(guard) if guard.starts_with('@') => words.next(),
            first => first,
        };
        *counts.entry(mnemonic.unwrap_or_default().trim_end_matches(';').to_owned()).or_insert(0) += 1;
    }
    Ok(counts)
}

fn code_object(artifact: &Artifact) -> Result<Vec<String>, String> {
    let elf = ElfFile64::<LittleEndian>::parse(artifact.code.as_slice()).map_err(|e| format!("code object: {e}"))?;
    let (body, address) = kernel_text(&elf, &artifact.symbol)?;
    decode(artifact.target, body, address)
}

/// The bytes from a kernel's first instruction to the end of `.text`, and their address.
pub(crate) fn kernel_text<'d>(elf: &ElfFile64<'d, LittleEndian>, symbol: &str) -> Result<(&'d [u8], u64), String> {
    let text = elf.section_by_name(".text").ok_or("the code object has no .text")?;
    let bytes = text.data().map_err(|e| format!(".text: {e}"))?;
    let found =
        elf.dynamic_symbols().find(|s| s.name() == Ok(symbol)).ok_or_else(|| format!("no symbol `{symbol}`"))?;
    let body = found.address().checked_sub(text.address()).and_then(|at| bytes.get(usize::try_from(at).ok()?..));
    body.map(|body| (body, found.address())).ok_or_else(|| format!("symbol `{symbol}` lies outside .text"))
}

/// Instructions up to and with the last `s_endpgm`; what follows is padding.
pub(crate) fn decode(target: Target, code: &[u8], address: u64) -> Result<Vec<String>, String> {
    let mut disassembler = Disassembler::new(target).map_err(|e| e.to_string())?;
    let (mut at, mut instructions, mut end) = (0, vec![], 0);
    while let Some((size, text)) = disassembler.decode(&code[at..], address + at as u64) {
        let last = text.starts_with("s_endpgm");
        instructions.push(text);
        if last {
            end = instructions.len();
        }
        at += size;
    }
    instructions.truncate(end);
    if end == 0 { Err("the kernel has no s_endpgm".into()) } else { Ok(instructions) }
}

/// Instructions of the entry's body.
pub(crate) fn ptx(text: &str) -> Vec<String> {
    // Calls and inline assembly have braces of their own.
    let mut depth = 0u32;
    let mut instructions = vec![];
    // What a line began and another one ends, such as a matrix product.
    let mut begun = String::new();
    for line in text.lines().map(|l| l.split("//").next().unwrap_or("").trim()) {
        match line {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ if depth == 0 || line.is_empty() || line.ends_with(':') || line.starts_with('.') => {}
            _ => {
                if !begun.is_empty() {
                    begun.push(' ');
                }
                begun += line;
                if line.ends_with(';') {
                    instructions.push(std::mem::take(&mut begun));
                }
            }
        }
    }
    instructions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_end_at_the_last_s_endpgm() {
        // s_nop 0 · s_endpgm · s_nop 0 · s_endpgm · padding that does not count
        let words = [0xBF80_0000u32, 0xBF81_0000, 0xBF80_0000, 0xBF81_0000, 0xBF80_0000, 0xBF80_0000];
        let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(decode(Target::GFX950, &code, 0).unwrap(), ["s_nop 0", "s_endpgm", "s_nop 0", "s_endpgm"]);
        assert!(decode(Target::GFX950, &code[..4], 0).is_err());
    }

    #[test]
    fn ptx_declarations_are_no_instructions() {
        let text =
            ".visible .entry k(\n)\n{\n\t.reg .b32 %r<3>;\n\tmov.u32 %r1, %tid.x; // why\n\t@%p1 bra L;\nL:\n\tret;\n}";
        assert_eq!(ptx(text), ["mov.u32 %r1, %tid.x;", "@%p1 bra L;", "ret;"]);
        let text = ".entry k()\n{\n\tnot.b32 %r1, %r2;\n\t{\n\tcall f;\n\t}\n\tret;\n}\n\texit;";
        assert_eq!(ptx(text), ["not.b32 %r1, %r2;", "call f;", "ret;"]);
        let text = ".entry k()\n{\n\tmma.sync \n\t\t{%r1},\n\t\t{%r2};\n\t.loc 1 2 3\nL:\n\tret;\n}";
        assert_eq!(ptx(text), ["mma.sync {%r1}, {%r2};", "ret;"]);
    }
}
