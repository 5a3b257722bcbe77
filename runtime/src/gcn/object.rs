//! Linked AMD code objects: ELF, kernel descriptors, the metadata note, the line table.

use gimli::{EndianSlice, LittleEndian};
use lathe_codegen::Disassembler;
use lathe_dsl::target::Target;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, RelocationFlags, SymbolKind};
use serde::Deserialize;

use crate::gcn::decode::{self, Inst, Kind};
use crate::gcn::error::{ErrorKind, GcnError, Result};
use crate::gcn::isa::chip::Family;
use crate::gcn::isa::{self, Isa, Op, ds, transfer};
use crate::gcn::memory::code_address;
use crate::gcn::state::{Mode, Registers};

/// More than any kernel has; bounds what a damaged header can make us allocate.
const MAX_IMAGE: u64 = 1 << 26;
/// Bytes of kernel arguments, likewise: what HIP allows, sixteen times over.
const MAX_KERNARG: u32 = 1 << 16;
const DESCRIPTOR_BYTES: usize = 64;
/// Note type of the AMDGPU metadata (LLVM's AMDGPU usage guide).
const NT_AMDGPU_METADATA: elf::NoteType = elf::NoteType(32);
/// Relocation: load address + addend (same source).
const R_AMDGPU_RELATIVE64: elf::RelocationType = elf::RelocationType(13);

/// A code object, loaded and decoded.
#[derive(Clone)]
pub struct CodeObject {
    pub(crate) target: Target,
    pub(crate) isa: &'static Isa,
    /// Memory image by virtual address, relocated.
    pub(crate) image: Vec<u8>,
    kernels: Vec<Kernel>,
    program: Program,
    lines: Lines,
}

/// A kernel of a code object.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Symbol, without `.kd`.
    pub name: String,
    /// Address of its first instruction.
    pub entry: u64,
    /// Bytes of its code.
    pub size: u64,
    /// What the hardware is told.
    pub(crate) descriptor: Descriptor,
    /// What the runtime is told.
    pub metadata: KernelMetadata,
}

/// Kernel descriptor: the 64 bytes that the command processor reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Descriptor {
    pub(crate) lds: u32,
    pub(crate) scratch: u32,
    pub(crate) kernarg_size: u32,
    pub(crate) registers: Registers,
    pub(crate) mode: Mode,
    pub(crate) user_sgprs: u32,
    pub(crate) workgroup_id: [bool; 3],
    /// User SGPRs in order: which ones are there.
    pub(crate) private_segment_buffer: bool,
    pub(crate) dispatch_ptr: bool,
    pub(crate) queue_ptr: bool,
    pub(crate) kernarg_ptr: bool,
    pub(crate) dispatch_id: bool,
    pub(crate) flat_scratch_init: bool,
    pub(crate) private_segment_size: bool,
    /// Kernel argument words copied to SGPRs before the start: first word, words.
    pub(crate) preload: (u32, u32),
}

/// What the metadata note says about one kernel.
#[derive(Clone, Debug, Deserialize)]
pub struct KernelMetadata {
    #[serde(rename = ".name")]
    name: String,
    #[serde(rename = ".symbol")]
    symbol: String,
    /// Bytes of kernel arguments.
    #[serde(rename = ".kernarg_segment_size")]
    pub kernarg_bytes: u32,
    /// Bytes of static LDS.
    #[serde(rename = ".group_segment_fixed_size")]
    pub lds_bytes: u32,
    /// Bytes of scratch a lane.
    #[serde(rename = ".private_segment_fixed_size")]
    pub scratch_bytes: u32,
    /// Vector registers, accumulation registers included.
    #[serde(rename = ".vgpr_count")]
    pub vgprs: u32,
    /// Accumulation registers.
    #[serde(rename = ".agpr_count", default)]
    pub agprs: u32,
    /// Scalar registers.
    #[serde(rename = ".sgpr_count")]
    pub sgprs: u32,
    /// Lanes a wave.
    #[serde(rename = ".wavefront_size")]
    pub lanes: u32,
    /// Most threads a workgroup may have.
    #[serde(rename = ".max_flat_workgroup_size")]
    pub max_threads: u32,
    /// The only workgroup shape, if fixed.
    #[serde(rename = ".reqd_workgroup_size", default)]
    pub block: Option<[u32; 3]>,
    /// Arguments.
    #[serde(rename = ".args", default)]
    pub args: Vec<Argument>,
}

/// One kernel argument.
#[derive(Clone, Debug, Deserialize)]
pub struct Argument {
    /// First byte in the argument block.
    #[serde(rename = ".offset")]
    pub offset: u32,
    /// Bytes.
    #[serde(rename = ".size")]
    pub size: u32,
    /// `by_value`, `global_buffer`, `hidden_…`.
    #[serde(rename = ".value_kind")]
    pub kind: String,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "amdhsa.kernels", default)]
    kernels: Vec<KernelMetadata>,
    #[serde(rename = "amdhsa.target", default)]
    target: String,
}

/// Decoded code: instruction by address.
#[derive(Clone)]
struct Program {
    start: u64,
    /// Index + 1 into `insts` for every word of the text.
    slots: Vec<u32>,
    insts: Vec<Decoded>,
}

/// One instruction of the text; a mnemonic without semantics is an error only once it is reached.
#[derive(Clone)]
pub(crate) struct Decoded {
    pub(crate) pc: u64,
    pub(crate) text: String,
    pub(crate) inst: std::result::Result<Inst, ErrorKind>,
}

/// Line table, sorted by address.
#[derive(Clone)]
struct Lines {
    files: Vec<String>,
    /// Address, file index (`u32::MAX` = end of a sequence), line.
    rows: Vec<(u64, u32, u32)>,
}

fn malformed(what: impl Into<String>) -> GcnError {
    ErrorKind::Object(what.into()).into()
}

fn bad<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> GcnError {
    move |e| malformed(format!("{what}: {e}"))
}

impl CodeObject {
    /// Loads a linked code object (`ET_DYN`, HSA ABI) for `target` and decodes all its functions.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedTarget`] without a table for the chip; [`ErrorKind::WrongTarget`] for another chip's
    /// object; [`ErrorKind::Object`] for anything malformed, or if ELF, descriptor, metadata and register use
    /// contradict each other.
    pub fn load(bytes: &[u8], target: Target) -> Result<Self> {
        let isa = isa::for_target(target)?;
        let file = ElfFile64::<Endianness>::parse(bytes).map_err(bad("ELF"))?;
        let header = file.elf_header();
        let endian = file.endian();
        if header.e_machine.get(endian) != elf::EM_AMDGPU || endian != Endianness::Little {
            return Err(malformed(format!("ELF machine {} is not AMDGPU", header.e_machine.get(endian))));
        }
        if header.e_type.get(endian) != elf::ET_DYN {
            return Err(malformed("not linked: expected a shared object"));
        }
        let metadata = metadata(&file, bytes)?;
        let found = metadata.target.rsplit("--").next().unwrap_or_default();
        // Behind the chip come feature flags: `gfx950:xnack-`.
        if found.split(':').next() != Some(target.chip().name) {
            return Err(ErrorKind::WrongTarget { expected: target.to_string(), found: metadata.target.clone() }.into());
        }
        let image = image(&file, bytes)?;
        let mut text = Vec::new();
        for section in file.sections() {
            let h = section.elf_section_header();
            if h.sh_flags(endian).0 & elf::SHF_EXECINSTR.0 != 0 {
                text.push((section.address(), h.sh_offset(endian), section.size()));
            }
        }
        // Zeros behind the file's own bytes are no code: decoding takes time in proportion to the file.
        if text.iter().any(|(_, offset, size)| offset.checked_add(*size).is_none_or(|end| end > bytes.len() as u64)) {
            return Err(malformed("code outside the file"));
        }
        let program = Program::decode(&file, &image, target, isa, &text)?;
        let lines = Lines::read(&file, bytes.len())?;
        let mut kernels: Vec<Kernel> = Vec::new();
        for m in metadata.kernels {
            if let Some(twin) = kernels.iter().find(|k| k.name == m.name || k.metadata.symbol == m.symbol) {
                return Err(malformed(format!("kernel `{}` twice, as `{}` and `{}`", twin.name, twin.name, m.name)));
            }
            kernels.push(Kernel::read(&file, &image, isa, m, &program)?);
        }
        Ok(Self { target, isa, image, kernels, program, lines })
    }

    /// The chip it is for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// All kernels.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// A kernel by name.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`] naming what there is.
    pub fn kernel(&self, name: &str) -> Result<&Kernel> {
        self.kernels.iter().find(|k| k.name == name).ok_or_else(|| {
            let known = self.kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ");
            ErrorKind::NoKernel { name: name.to_owned(), known }.into()
        })
    }

    /// Instruction at an address.
    pub(crate) fn at(&self, pc: u64) -> Option<&Decoded> {
        self.program.at(pc)
    }

    /// Words of code that may hold an instruction.
    pub(crate) fn words(&self) -> usize {
        self.program.slots.len()
    }

    /// Place of an address among them.
    pub(crate) fn word(&self, pc: u64) -> usize {
        (pc.wrapping_sub(self.program.start) / 4) as usize
    }

    /// Every instruction: place, address, text.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, u64, &str)> {
        self.program.insts.iter().map(|d| (self.word(d.pc), d.pc, d.text.as_str()))
    }

    /// Every instruction of a kernel in address order: address and text.
    pub fn listing<'a>(&'a self, kernel: &'a Kernel) -> impl Iterator<Item = (u64, &'a str)> {
        self.program.within(kernel).map(|d| (d.pc, d.text.as_str()))
    }

    /// Mnemonics of all decoded functions, with encoding suffixes, both halves of pairs, sorted, each once.
    pub fn mnemonics(&self) -> Vec<&str> {
        let mut all: Vec<_> = self.program.insts.iter().flat_map(|d| d.text.split(" :: ").map(mnemonic)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// File and line of an address. In objects that Lathe emits the line is the Kernel IR op number.
    pub fn line(&self, pc: u64) -> Option<(&str, u32)> {
        self.lines.find(pc)
    }

    /// The word of code at an address.
    pub(crate) fn code_word(&self, pc: u64) -> Option<u32> {
        let at = usize::try_from(pc).ok()?;
        Some(u32::from_le_bytes(self.image.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    /// Words of the instruction at an address; none where no instruction with semantics starts.
    pub(crate) fn code_words(&self, pc: u64) -> Vec<u32> {
        let size = self.at(pc).and_then(|d| d.inst.as_ref().ok()).map_or(0, |i| u64::from(i.size));
        (pc..pc + size).step_by(4).filter_map(|at| self.code_word(at)).collect()
    }

    /// The same object with the instruction at `pc` replaced by one or several, as long together.
    ///
    /// # Errors
    /// If no instruction of so many words starts at `pc`, or one of the new ones does not end where the old one did.
    pub fn with_words(&self, pc: u64, words: &[u32]) -> Result<Self> {
        if words.is_empty() || self.code_words(pc).len() != words.len() {
            return Err(ErrorKind::NoInstruction(pc).into());
        }
        let mut new = self.clone();
        let at = usize::try_from(pc).map_err(bad("address"))?;
        let code = words.iter().flat_map(|word| word.to_le_bytes());
        new.image[at..at + 4 * words.len()].iter_mut().zip(code).for_each(|(old, new)| *old = new);
        new.program.decode_again(self.isa, self.target, &new.image[at..at + 4 * words.len()], pc)?;
        Ok(new)
    }

    /// The text of what `words` say as one instruction at `pc`, if they do.
    pub(crate) fn text_of(&self, disassembler: &mut Disassembler, pc: u64, words: &[u32]) -> Option<String> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (size, decoded) = decode(disassembler, self.isa, &code, pc);
        (size as usize == code.len() && decoded.inst.is_ok()).then_some(decoded.text)
    }
}

/// The first instruction in `code`, which lies at `pc`: how many bytes it takes, and what it is.
fn decode(disassembler: &mut Disassembler, isa: &Isa, code: &[u8], pc: u64) -> (u64, Decoded) {
    let (size, text, inst) = match disassembler.decode(code, pc) {
        Some((size, text)) if size % 4 == 0 && size > 0 => {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let inst = decode::parse(isa, &text, size as u32);
            (size as u64, text, inst)
        }
        _ => {
            let word = code.iter().take(4).rev().fold(0u32, |w, b| w << 8 | u32::from(*b));
            let error = ErrorKind::Decode(format!("libLLVM knows no instruction {word:#010x}"));
            (4, format!("<{word:#010x}>"), Err(error))
        }
    };
    (size, Decoded { pc, text, inst })
}

/// First word of a line of disassembly.
pub(crate) fn mnemonic(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

fn metadata(file: &ElfFile64<'_, Endianness>, bytes: &[u8]) -> Result<Metadata> {
    let endian = file.endian();
    for section in file.sections() {
        let notes = section.elf_section_header().notes(endian, bytes).map_err(bad("note section"))?;
        let Some(mut notes) = notes else { continue };
        while let Some(note) = notes.next().map_err(bad("note"))? {
            if note.name() == b"AMDGPU" && note.n_type(endian) == NT_AMDGPU_METADATA {
                return rmp_serde::from_slice(note.desc()).map_err(bad("metadata note"));
            }
        }
    }
    Err(malformed("no AMDGPU metadata note"))
}

/// Loads the segments and applies the relocations that a position-independent code object has.
fn image(file: &ElfFile64<'_, Endianness>, bytes: &[u8]) -> Result<Vec<u8>> {
    let endian = file.endian();
    let mut parts = Vec::new();
    let (mut image_bytes, mut copied) = (0, 0);
    for segment in file.elf_program_headers() {
        if segment.p_type(endian) != elf::PT_LOAD {
            continue;
        }
        let (start, size) = (segment.p_vaddr(endian), segment.p_memsz(endian));
        let end = start.checked_add(size).filter(|e| *e <= MAX_IMAGE);
        let end = end.ok_or_else(|| malformed(format!("segment of {size} bytes at {start:#x}")))? as usize;
        let data = segment.data(endian, bytes).map_err(|()| malformed("segment outside the file"))?;
        if data.len() as u64 > size {
            return Err(malformed("segment larger in the file than in memory"));
        }
        image_bytes = image_bytes.max(end);
        copied += data.len();
        // Segments may share a page of the file, not all of it many times over.
        if copied / 2 > bytes.len() {
            return Err(malformed("segments that hold the same bytes of the file"));
        }
        parts.push((start as usize, data));
    }
    let mut image = vec![0; image_bytes];
    for (start, data) in parts {
        image[start..start + data.len()].copy_from_slice(data);
    }
    for (offset, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        if r_type != R_AMDGPU_RELATIVE64 {
            return Err(malformed(format!("dynamic relocation of type {}", r_type.0)));
        }
        let value = code_address(relocation.addend() as u64);
        let at = usize::try_from(offset).ok().and_then(|o| image.get_mut(o..o.checked_add(8)?));
        at.ok_or_else(|| malformed("relocation outside the image"))?.copy_from_slice(&value.to_le_bytes());
    }
    Ok(image)
}

impl Program {
    fn decode(
        file: &ElfFile64<'_, Endianness>,
        image: &[u8],
        target: Target,
        isa: &Isa,
        text: &[(u64, u64, u64)],
    ) -> Result<Self> {
        let start = text.iter().map(|t| t.0).min().unwrap_or(0);
        let end = text.iter().filter_map(|t| t.0.checked_add(t.2)).max().unwrap_or(0);
        if end > image.len() as u64 || start > end {
            return Err(malformed("code outside the image"));
        }
        let mut program = Self { start, slots: vec![0; ((end - start) / 4) as usize], insts: Vec::new() };
        let mut disassembler = Disassembler::new(target).map_err(bad("disassembler"))?;
        for symbol in file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition()) {
            let (mut pc, size) = (symbol.address(), symbol.size());
            let last = pc.checked_add(size).filter(|e| *e <= end && pc >= start);
            let last = last.ok_or_else(|| malformed("function outside the code"))?;
            while pc < last {
                if pc % 4 != 0 || program.at(pc).is_some() {
                    break;
                }
                let (size, decoded) = decode(&mut disassembler, isa, &image[pc as usize..last as usize], pc);
                program.insts.push(decoded);
                if let Some(slot) = program.slots.get_mut(((pc - start) / 4) as usize) {
                    *slot = program.insts.len() as u32;
                }
                pc += size;
            }
        }
        program.mark_exchanges();
        Ok(program)
    }

    /// Decodes `code`, which takes the place of the one instruction at `pc`. What is new stands behind all others.
    fn decode_again(&mut self, isa: &Isa, target: Target, code: &[u8], pc: u64) -> Result<()> {
        let mut disassembler = Disassembler::new(target).map_err(bad("disassembler"))?;
        let mut at = 0;
        while at < code.len() {
            let (size, decoded) = decode(&mut disassembler, isa, &code[at..], pc + at as u64);
            let word = ((decoded.pc - self.start) / 4) as usize;
            let slot = &mut self.slots[word];
            if *slot == 0 {
                self.insts.push(decoded);
                *slot = self.insts.len() as u32;
            } else {
                self.insts[*slot as usize - 1] = decoded;
            }
            at += size as usize;
        }
        if at == code.len() { Ok(()) } else { Err(ErrorKind::NoInstruction(pc + at as u64).into()) }
    }

    /// Marks the loads that compare-and-store loops begin with: the next instruction of LDS, of buffers, or of other memory, is such a store at the
    /// same place. What they load is a guess that the store verifies.
    fn mark_exchanges(&mut self) {
        let [mut of_lds, mut of_buffers, mut of_memory] = [None::<usize>; 3];
        for i in 0..self.insts.len() {
            let Ok(inst) = &self.insts[i].inst else { continue };
            let load = match inst.op {
                Op::Ds(_) => &mut of_lds,
                Op::Mubuf(_) => &mut of_buffers,
                Op::Flat(..) => &mut of_memory,
                _ => continue,
            };
            let (is_exchange, is_load) = match inst.op {
                Op::Ds(row) => (ds::is_exchange_of as fn(&Inst, &Inst) -> bool, row.is_load()),
                Op::Mubuf(row) | Op::Flat(_, row) => (transfer::is_exchange_of as _, row.is_load()),
                _ => continue,
            };
            let begins = load.take().filter(|l| {
                let loaded = self.insts[*l].inst.as_ref().ok();
                loaded.is_some_and(|loaded| is_exchange(inst, loaded))
            });
            if is_load {
                *load = Some(i);
            }
            if let Some(Ok(first)) = begins.map(|l| &mut self.insts[l].inst) {
                first.begins_exchange = true;
            }
        }
    }

    fn at(&self, pc: u64) -> Option<&Decoded> {
        let offset = pc.checked_sub(self.start).filter(|o| o.is_multiple_of(4))?;
        let slot = *self.slots.get(usize::try_from(offset / 4).ok()?)?;
        self.insts.get((slot as usize).checked_sub(1)?)
    }

    fn within(&self, kernel: &Kernel) -> impl Iterator<Item = &Decoded> {
        let range = kernel.entry..kernel.entry.saturating_add(kernel.size);
        self.insts.iter().filter(move |d| range.contains(&d.pc))
    }
}

impl Kernel {
    fn read(
        file: &ElfFile64<'_, Endianness>,
        image: &[u8],
        isa: &Isa,
        metadata: KernelMetadata,
        program: &Program,
    ) -> Result<Self> {
        let name = metadata.name.clone();
        let find = |wanted: &str| {
            let symbol = file.symbols().find(|s| s.name() == Ok(wanted));
            symbol.ok_or_else(|| malformed(format!("kernel `{name}`: no symbol `{wanted}`")))
        };
        let descriptor_symbol = find(&metadata.symbol)?;
        let at = descriptor_symbol.address();
        let raw = usize::try_from(at).ok().and_then(|a| image.get(a..a.checked_add(DESCRIPTOR_BYTES)?));
        let raw: &[u8; DESCRIPTOR_BYTES] = raw
            .and_then(|r| r.try_into().ok())
            .ok_or_else(|| malformed(format!("kernel `{name}`: descriptor outside the image")))?;
        let (descriptor, offset) = Descriptor::parse(raw, isa, &name)?;
        let entry = at.wrapping_add_signed(offset);
        let code = metadata.symbol.strip_suffix(".kd").unwrap_or(&name);
        let code = find(code)?;
        if code.address() != entry {
            return Err(malformed(format!(
                "kernel `{name}`: descriptor points to {entry:#x}, symbol to {:#x}",
                code.address()
            )));
        }
        if program.at(entry).is_none() {
            return Err(malformed(format!("kernel `{name}`: no instruction at its entry {entry:#x}")));
        }
        let kernel = Self { name, entry, size: code.size(), descriptor, metadata };
        kernel.check(isa, program)?;
        Ok(kernel)
    }

    /// Descriptor, metadata and code must tell the same story.
    fn check(&self, isa: &Isa, program: &Program) -> Result<()> {
        let (d, m) = (&self.descriptor, &self.metadata);
        let fail = |what: String| Err(malformed(format!("kernel `{}`: {what}", self.name)));
        let pairs = [
            ("kernarg bytes", d.kernarg_size, m.kernarg_bytes),
            ("LDS bytes", d.lds, m.lds_bytes),
            ("scratch bytes", d.scratch, m.scratch_bytes),
        ];
        for (what, in_descriptor, in_metadata) in pairs {
            if in_descriptor != in_metadata {
                return fail(format!("{what}: descriptor says {in_descriptor}, metadata {in_metadata}"));
            }
        }
        if m.kernarg_bytes > MAX_KERNARG {
            return fail(format!("{} bytes of arguments, at most {MAX_KERNARG} are possible", m.kernarg_bytes));
        }
        let most = isa.chip.wave_scratch_bytes() / isa.chip.lanes as u32;
        if d.scratch > most {
            return fail(format!("{} bytes of scratch a lane, {} has {most}", d.scratch, isa.chip.name));
        }
        if m.lanes as usize != isa.chip.lanes {
            return fail(format!("wave of {} lanes on a chip with {}", m.lanes, isa.chip.lanes));
        }
        let registers = d.registers;
        let allocated = u32::from(registers.vgpr) + u32::from(registers.agpr);
        if m.vgprs > allocated || m.agprs > u32::from(registers.agpr) {
            return fail(format!("metadata counts {} VGPRs, the descriptor allocates {allocated}", m.vgprs));
        }
        if m.sgprs > u32::from(registers.sgpr) + 6 {
            return fail(format!("metadata counts {} SGPRs, the descriptor allocates {}", m.sgprs, registers.sgpr));
        }
        for decoded in program.within(self) {
            let Ok(inst) = &decoded.inst else { continue };
            let second = inst.second.iter().flat_map(|second| &second.args);
            for arg in inst.args.iter().chain(second) {
                let (what, end, limit) = match arg.kind {
                    Kind::V { first, count } => ("VGPR", first + count, m.vgprs),
                    Kind::A { first, count } => ("AGPR", first + count, m.agprs),
                    Kind::S { first, count } if first < decode::VCC => ("SGPR", first + count, m.sgprs),
                    _ => continue,
                };
                if u32::from(end) > limit {
                    return fail(format!("`{}` uses {what} {}, metadata counts {limit}", decoded.text, end - 1));
                }
            }
        }
        for a in &m.args {
            if a.offset.checked_add(a.size).is_none_or(|end| end > m.kernarg_bytes) {
                return fail(format!("argument at {} is outside {} bytes of arguments", a.offset, m.kernarg_bytes));
            }
        }
        Ok(())
    }
}

impl Descriptor {
    /// Parses the 64 bytes; also gives the offset of the entry from the descriptor.
    fn parse(raw: &[u8; DESCRIPTOR_BYTES], isa: &Isa, name: &str) -> Result<(Self, i64)> {
        let u32_at = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().expect("4 bytes of 64"));
        let u16_at = |at: usize| u32::from(u16::from_le_bytes(raw[at..at + 2].try_into().expect("2 bytes of 64")));
        let offset = i64::from_le_bytes(raw[16..24].try_into().expect("8 bytes of 64"));
        let fail = |what: String| Err(malformed(format!("kernel `{name}`: descriptor: {what}")));
        let (rsrc3, rsrc1, rsrc2) = (u32_at(44), u32_at(48), u32_at(52));
        let (properties, preload) = (u16_at(56), u16_at(58));
        let bit = |word: u32, n: u32| word >> n & 1 == 1;
        // Vector registers are given out in eights, arch registers first; the boundary is in fours.
        let total = ((rsrc1 & 0x3F) + 1) * 8;
        let gfx12 = isa.chip.family == Family::Gfx12;
        let vgpr = if gfx12 { total } else { ((rsrc3 & 0x3F) + 1) * 4 };
        if vgpr > total {
            return fail(format!("accumulation registers start at {vgpr} of {total}"));
        }
        // In sixteens, encoded as twice the granule count minus one; the count includes VCC and its like. On gfx12 every
        // wave has all of them.
        let sgpr = if gfx12 { u32::from(isa.chip.sgprs) } else { ((rsrc1 >> 6 & 0xF) / 2 + 1) * 16 };
        let mode = Mode {
            round32: (rsrc1 >> 12 & 3) as u8,
            round64: (rsrc1 >> 14 & 3) as u8,
            denorm32: (rsrc1 >> 16 & 3) as u8,
            denorm64: (rsrc1 >> 18 & 3) as u8,
            // gfx12 has no such modes: it clamps NaN to 0 and takes signalling NaNs for NaNs.
            dx10_clamp: gfx12 || bit(rsrc1, 21),
            ieee: !gfx12 && bit(rsrc1, 23),
        };
        if mode.round32 != 0 || mode.round64 != 0 {
            return fail("a rounding mode other than nearest even".into());
        }
        if bit(rsrc2, 10) {
            return fail("workgroup info register".into());
        }
        if bit(properties, 10) != (isa.chip.lanes == 32) {
            return fail(format!("wave size does not fit {}", isa.chip.name));
        }
        let descriptor = Self {
            lds: u32_at(0),
            scratch: u32_at(4),
            kernarg_size: u32_at(8),
            registers: Registers {
                vgpr: vgpr.min(256) as u16,
                agpr: (total - vgpr).min(256) as u16,
                sgpr: sgpr.min(u32::from(isa.chip.sgprs)) as u16,
            },
            mode,
            user_sgprs: rsrc2 >> 1 & 0x1F,
            workgroup_id: [bit(rsrc2, 7), bit(rsrc2, 8), bit(rsrc2, 9)],
            private_segment_buffer: bit(properties, 0),
            dispatch_ptr: bit(properties, 1),
            queue_ptr: bit(properties, 2),
            kernarg_ptr: bit(properties, 3),
            dispatch_id: bit(properties, 4),
            flat_scratch_init: bit(properties, 5),
            private_segment_size: bit(properties, 6),
            preload: (preload >> 7 & 0x1FF, preload & 0x7F),
        };
        Ok((descriptor, offset))
    }
}

impl Lines {
    /// Reads the table of a file of so many bytes. A row takes a byte at least, so that units which share a program
    /// cannot make more of them than there are bytes.
    fn read(file: &ElfFile64<'_, Endianness>, bytes: usize) -> Result<Self> {
        type Slice<'a> = EndianSlice<'a, LittleEndian>;
        let load = |id: gimli::SectionId| -> std::result::Result<Slice<'_>, object::Error> {
            let data = match file.section_by_name(id.name()) {
                Some(section) => section.data()?,
                None => &[],
            };
            Ok(EndianSlice::new(data, LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).map_err(bad("debug section"))?;
        let mut lines = Self { files: Vec::new(), rows: Vec::new() };
        let mut units = dwarf.units();
        while let Some(header) = units.next().map_err(bad("debug unit"))? {
            let unit = dwarf.unit(header).map_err(bad("debug unit"))?;
            let Some(program) = unit.line_program.clone() else { continue };
            let mut rows = program.rows();
            // File numbers are the unit's; `files` is the object's.
            let mut known: Vec<(u64, u32)> = Vec::new();
            while let Some((header, row)) = rows.next_row().map_err(bad("line table"))? {
                if lines.rows.len() > bytes {
                    return Err(malformed("line table: more rows than the file has bytes"));
                }
                if row.end_sequence() {
                    lines.rows.push((row.address(), u32::MAX, 0));
                    continue;
                }
                let number = row.file_index();
                let index = match known.iter().find(|k| k.0 == number) {
                    Some((_, index)) => *index,
                    None => {
                        let name = match row.file(header) {
                            Some(f) => dwarf
                                .attr_string(&unit, f.path_name())
                                .map_err(bad("line table"))?
                                .to_string_lossy()
                                .into_owned(),
                            None => "?".to_owned(),
                        };
                        lines.files.push(name);
                        let index = lines.files.len() as u32 - 1;
                        known.push((number, index));
                        index
                    }
                };
                let line = row.line().map_or(0, |l| l.get().min(u64::from(u32::MAX)) as u32);
                lines.rows.push((row.address(), index, line));
            }
        }
        // Stable: of several rows at one address the last one counts.
        lines.rows.sort_by_key(|r| r.0);
        Ok(lines)
    }

    /// The line of `pc`. Where the compiler found no single source for an instruction (line 0: it merged or made one),
    /// that of the nearest instruction before it that has one, else of the nearest after it.
    fn find(&self, pc: u64) -> Option<(&str, u32)> {
        let end = self.rows.partition_point(|r| r.0 <= pc);
        let inside = |r: &&(u64, u32, u32)| r.1 != u32::MAX;
        let mut before = self.rows[..end].iter().rev().take_while(inside).peekable();
        before.peek()?;
        let mut near = before.chain(self.rows[end..].iter().take_while(inside));
        let (_, file, line) = near.find(|r| r.2 != 0)?;
        Some((self.files.get(*file as usize)?, *line))
    }
}
