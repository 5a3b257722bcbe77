//! What compiled code needs of the chip, read out of the code itself.

use lathe_dsl::Target;
use lathe_dsl::artifact::Resources;
use lathe_dsl::ir::Kernel;
use object::elf::{FileHeader64, NoteType};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection};
use serde::Deserialize;

use crate::listing;

/// Type of the note that holds a code object's metadata.
const NT_AMDGPU_METADATA: NoteType = NoteType(32);

/// The part of a code object's metadata note (a MessagePack map) that is of interest.
#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "amdhsa.kernels")]
    kernels: Vec<KernelMetadata>,
}

/// One kernel's entry in [`Metadata`].
#[derive(Deserialize)]
struct KernelMetadata {
    #[serde(rename = ".name")]
    name: String,
    #[serde(rename = ".vgpr_count")]
    vgpr: u32,
    #[serde(rename = ".sgpr_count")]
    sgpr: u32,
    #[serde(rename = ".vgpr_spill_count", default)]
    vgpr_spills: u32,
    #[serde(rename = ".sgpr_spill_count", default)]
    sgpr_spills: u32,
    #[serde(rename = ".group_segment_fixed_size")]
    lds_bytes: u32,
    #[serde(rename = ".private_segment_fixed_size")]
    scratch_bytes: u32,
}

/// Resources of a kernel in a linked AMD code object.
pub fn of_code_object(target: Target, kernel: &str, code: &[u8]) -> Result<Resources, String> {
    let elf = ElfFile64::<LittleEndian>::parse(code).map_err(|e| format!("code object: {e}"))?;
    let metadata = metadata(&elf, code)?;
    let entry = metadata
        .kernels
        .into_iter()
        .find(|k| k.name == kernel)
        .ok_or_else(|| format!("the code object's metadata names no kernel `{kernel}`"))?;
    let text_bytes = elf.section_by_name(".text").map_or(0, |text| text.size());
    let (body, address) = listing::kernel_text(&elf, kernel)?;
    Ok(Resources {
        vgpr: Some(entry.vgpr),
        sgpr: Some(entry.sgpr),
        ptx_registers: None,
        lds_bytes: entry.lds_bytes,
        dynamic_lds_bytes: 0,
        spills: Some(entry.vgpr_spills + entry.sgpr_spills),
        scratch_bytes: Some(entry.scratch_bytes),
        code_bytes: text_bytes,
        instructions: listing::decode(target, body, address)?.len() as u32,
    })
}

/// Finds the metadata note among the program's notes.
fn metadata(elf: &ElfFile64<'_, LittleEndian>, code: &[u8]) -> Result<Metadata, String> {
    let broken = |e: object::Error| format!("code object: {e}");
    let endian = LittleEndian;
    let header: &FileHeader64<LittleEndian> = elf.elf_header();
    for segment in header.program_headers(endian, code).map_err(broken)? {
        let Some(mut notes) = segment.notes(endian, code).map_err(broken)? else { continue };
        while let Some(note) = notes.next().map_err(broken)? {
            if note.name() == b"AMDGPU" && note.n_type(endian) == NT_AMDGPU_METADATA {
                return rmp_serde::from_slice(note.desc()).map_err(|e| format!("code object metadata: {e}"));
            }
        }
    }
    Err("the code object has no metadata note".into())
}

/// Resources of a kernel in PTX text.
pub fn of_ptx(kernel: &Kernel, dynamic_lds_bytes: u32, code: &[u8]) -> Result<Resources, String> {
    let text = std::str::from_utf8(code).map_err(|e| format!("PTX: {e}"))?;
    let mut registers = 0;
    // `.reg .b32 %r<12>;` declares %r1 to %r11 for use, `.reg .b64 %SP;` one.
    for line in text.lines().map(str::trim).filter(|line| line.starts_with(".reg")) {
        let Some((_, rest)) = line.split_once('<') else {
            registers += 1;
            continue;
        };
        let count = rest.split_once('>').and_then(|(n, _)| n.parse::<u32>().ok());
        registers += count.ok_or_else(|| format!("PTX register declaration `{line}`"))?.saturating_sub(1);
    }
    let instructions = listing::ptx(text).len() as u32;
    Ok(Resources {
        ptx_registers: Some(registers),
        lds_bytes: kernel.lds_layout().1,
        dynamic_lds_bytes,
        code_bytes: code.len() as u64,
        instructions,
        ..Resources::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_code_object_is_an_error() {
        assert!(of_code_object(Target::GFX950, "k", b"\x7fELF").unwrap_err().contains("code object"));
    }
}
