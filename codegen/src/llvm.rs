//! LLVM: from MLIR's LLVM dialect to an object or assembly text.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::ops::Deref;
use std::sync::{Mutex, Once, PoisonError};

use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};
use lathe_dsl::Target;
use melior::ir::operation::OperationLike;

use crate::signed_zero;
use crate::target::Output;

unsafe extern "C" {
    // libLLVM exports it; llvm-sys has no declaration.
    fn LLVMInitializeAMDGPUDisassembler();
}

/// LLVM's version as its library reports it: major, minor, patch.
pub fn version() -> (u32, u32, u32) {
    inkwell::support::get_llvm_version()
}

/// Registers LLVM's targets, once a process.
pub fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let all = InitializationConfig::default();
        LlvmTarget::initialize_amd_gpu(&all);
        LlvmTarget::initialize_nvptx(&all);
        // SAFETY: adds to LLVM's registry, once, after the target it belongs to.
        unsafe { LLVMInitializeAMDGPUDisassembler() };
    });
}

/// An LLVM context that keeps what LLVM says instead of printing it or ending the process.
pub struct Llvm {
    context: Context,
    /// Boxed: LLVM holds its address.
    errors: Box<RefCell<Vec<String>>>,
}

extern "C" fn on_diagnostic(info: LLVMDiagnosticInfoRef, errors: *mut c_void) {
    // SAFETY: LLVM passes a valid diagnostic, and `errors` is the cell that `Llvm` owns; its context calls this
    // handler on the one thread that uses it. The description is copied, then released once.
    unsafe {
        if !matches!(LLVMGetDiagInfoSeverity(info), LLVMDiagnosticSeverity::LLVMDSError) {
            return;
        }
        let text = LLVMGetDiagInfoDescription(info);
        let errors = &*errors.cast::<RefCell<Vec<String>>>();
        errors.borrow_mut().push(CStr::from_ptr(text).to_string_lossy().trim().to_owned());
        LLVMDisposeMessage(text);
    }
}

impl Llvm {
    /// A fresh context.
    pub fn new() -> Self {
        initialize();
        let context = Context::create();
        let errors = Box::new(RefCell::new(vec![]));
        let cell = (&raw const *errors).cast_mut().cast::<c_void>();
        // SAFETY: `errors` lives in a box that is dropped together with the context, after its last use.
        unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(on_diagnostic), cell) };
        Self { context, errors }
    }

    /// Fails with what LLVM said, even if it claims success.
    fn outcome(&self, result: Result<(), String>) -> Result<(), String> {
        let mut errors = std::mem::take(&mut *self.errors.borrow_mut());
        errors.extend(result.err().filter(|e| !e.trim().is_empty()).map(|e| e.trim().to_owned()));
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    /// Translates an MLIR operation that holds only LLVM's dialects, and verifies the outcome. `None` if MLIR refused,
    /// which its own diagnostics explain.
    pub fn translate<'c: 'a, 'a>(
        &self,
        operation: &impl OperationLike<'c, 'a>,
        file: &str,
        machine: &TargetMachine,
    ) -> Result<Option<Module<'_>>, String> {
        // SAFETY: the operation is verified, and the LLVM context outlives the module that is made in it.
        let raw = unsafe { mlir_sys::mlirTranslateModuleToLLVMIR(operation.to_raw(), self.context.raw().cast()) };
        if raw.is_null() {
            self.outcome(Ok(()))?;
            return Ok(None);
        }
        // SAFETY: the module is owned by nobody else.
        let module = unsafe { Module::new(raw.cast()) };
        module.set_name(file);
        module.set_source_file_name(file);
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        mark_convergent(&module, &self.context);
        self.outcome(module.verify().map_err(|e| e.to_string()))?;
        Ok(Some(module))
    }

    /// Runs LLVM's optimiser and verifies the outcome.
    pub fn optimise(&self, module: &Module<'_>, machine: &TargetMachine) -> Result<(), String> {
        let options = PassBuilderOptions::create();
        self.outcome(module.run_passes("default<O3>", machine, options).map_err(|e| e.to_string()))?;
        self.outcome(module.verify().map_err(|e| e.to_string()))
    }

    /// See [`signed_zero`].
    pub fn keep_signed_zeros(&self, module: &Module<'_>) -> Result<(), String> {
        signed_zero::keep(module, &self.context)?;
        self.outcome(module.verify().map_err(|e| e.to_string()))
    }

    /// Emits an object or assembly text.
    pub fn emit(&self, module: &Module<'_>, machine: &TargetMachine, output: Output) -> Result<Vec<u8>, String> {
        let file_type = match output {
            Output::Object => FileType::Object,
            Output::Assembly => FileType::Assembly,
        };
        let buffer = machine.write_to_memory_buffer(module, file_type).map_err(|e| e.to_string());
        self.outcome(buffer.as_ref().map(drop).map_err(Clone::clone))?;
        let buffer = buffer?;
        Ok(buffer.as_slice().to_vec())
    }
}

/// Products by `mma.sync` take the whole warp, which LLVM does not know of their intrinsics: it would draw one into both arms of a
/// branch.
fn mark_convergent(module: &Module<'_>, context: &Context) {
    let convergent = context.create_enum_attribute(Attribute::get_named_enum_kind_id("convergent"), 0);
    for function in module.get_functions() {
        if function.get_name().to_bytes().starts_with(b"llvm.nvvm.mma.") {
            function.add_attribute(AttributeLoc::Function, convergent);
        }
    }
}

/// An LLVM code generator for a chip, borrowed from the process's idle ones.
///
/// Making one is cheap; its first use is not: it fills tables of the chip's registers that later uses find ready.
pub struct Machine {
    target: Target,
    features: &'static str,
    machine: TargetMachine,
}

/// A code generator that nobody uses.
struct Idle(Target, &'static str, TargetMachine);

// SAFETY: LLVM ties a target machine to no thread; it must not be used by two at once, and an idle one is used by none.
unsafe impl Send for Idle {}

static IDLE: Mutex<Vec<Idle>> = Mutex::new(vec![]);

/// Most idle code generators that are kept.
const MOST_IDLE: usize = 16;

impl Machine {
    /// One that is idle, or a new one, for a chip with these subtarget features.
    pub fn borrow(target: Target, features: &'static str) -> Result<Self, String> {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = idle.iter().position(|i| (i.0, i.1) == (target, features)).map(|i| idle.swap_remove(i).2);
        drop(idle);
        let machine = found.map_or_else(|| machine(target, features), Ok)?;
        Ok(Self { target, features, machine })
    }

    /// Leaves it to the next compile. After a failure it is dropped instead: nobody knows what state it is in.
    pub fn give_back(self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push(Idle(self.target, self.features, self.machine));
        }
    }
}

impl Deref for Machine {
    type Target = TargetMachine;

    fn deref(&self) -> &TargetMachine {
        &self.machine
    }
}

/// Whether inline assembly with these constraints can have these types, as LLVM's own parser of its text form decides.
/// Made in memory, LLVM would not ask, and its code generators trip over what it refuses.
pub fn check_asm(constraints: &str, args: &[String], results: &[String]) -> Result<(), String> {
    let result = match results {
        [] => "void".to_owned(),
        [one] => one.clone(),
        several => format!("{{ {} }}", several.join(", ")),
    };
    let params: Vec<String> = args.iter().enumerate().map(|(i, t)| format!("{t} %a{i}")).collect();
    let params = params.join(", ");
    let escaped: String = constraints.bytes().map(|b| format!("\\{b:02X}")).collect();
    let name = if results.is_empty() { "" } else { "%r = " };
    let text = format!(
        "define void @f({params}) {{\n  {name}call {result} asm \"\", \"{escaped}\"({params})\n  ret void\n}}\n"
    );
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "constraints");
    match Context::create().create_module_from_ir(buffer) {
        Ok(_) => Ok(()),
        Err(e) => {
            // The line it quotes is none of the author's.
            let said = e.to_string();
            let reason = said.lines().next().and_then(|l| l.rsplit("error: ").next()).unwrap_or("").to_owned();
            Err(format!(
                "constraints \"{constraints}\" with operands ({}) and result {result}: {reason}",
                args.join(", ")
            ))
        }
    }
}

/// LLVM's code generator for a chip.
fn machine(target: Target, features: &str) -> Result<TargetMachine, String> {
    initialize();
    let chip = target.chip();
    let triple = TargetTriple::create(chip.triple);
    LlvmTarget::from_triple(&triple)
        .map_err(|e| e.to_string())?
        .create_target_machine(
            &triple,
            chip.name,
            features,
            OptimizationLevel::Aggressive,
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or_else(|| format!("LLVM makes no code for {}", chip.name))
}
