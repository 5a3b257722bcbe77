//! MLIR: its context, its diagnostics, its verifier, and the passes down to the LLVM dialect.

use std::cell::RefCell;
use std::rc::Rc;

use lathe_dsl::ir::OpNumber;
use melior::Context;
use melior::diagnostic::{Diagnostic, DiagnosticSeverity};
use melior::dialect::DialectRegistry;
use melior::ir::Module;
use melior::ir::operation::{OperationLike, OperationMutLike, WalkOrder, WalkResult};
use melior::pass::PassManager;
use melior::utility::{
    parse_pass_pipeline, register_all_dialects, register_all_llvm_translations, register_all_passes,
};

use crate::lower::Blame;

/// Dialects that lowering writes. Those that passes need they load themselves, out of the registered ones.
const DIALECTS: [&str; 7] = ["arith", "gpu", "llvm", "nvvm", "rocdl", "scf", "vector"];

/// A fresh MLIR context that prints nothing by itself.
pub struct Mlir {
    /// All dialects registered, none loaded; single-threaded.
    pub context: Context,
    errors: Rc<RefCell<Vec<Blame>>>,
}

impl Mlir {
    /// A fresh context. One a compile: a context keeps every type and attribute it ever made.
    pub fn new() -> Self {
        register_all_passes();
        let registry = DialectRegistry::new();
        register_all_dialects(&registry);
        let context = Context::new_with_registry(&registry, false);
        register_all_llvm_translations(&context);
        // Types and attributes need their dialect before any operation of it is made.
        for dialect in DIALECTS {
            context.get_or_load_dialect(dialect);
        }
        let errors = Rc::new(RefCell::new(vec![]));
        let sink = Rc::clone(&errors);
        context.attach_diagnostic_handler(move |diagnostic| {
            if matches!(diagnostic.severity(), DiagnosticSeverity::Error) {
                sink.borrow_mut().push(blame(&diagnostic));
            }
            true
        });
        Self { context, errors }
    }

    /// Runs MLIR's verifier.
    pub fn verify(&self, module: &Module<'_>) -> Result<(), Blame> {
        let fine = module.as_operation().verify();
        self.outcome(fine, "MLIR's verifier refused the module")
    }

    /// Runs a pass pipeline, then the verifier.
    pub fn run(&self, module: &mut Module<'_>, pipeline: &str) -> Result<(), Blame> {
        let passes = PassManager::new(&self.context);
        passes.enable_verifier(false);
        parse_pass_pipeline(passes.as_operation_pass_manager(), pipeline)
            .map_err(|e| Blame::from(format!("pass pipeline: {e}")))?;
        let fine = passes.run(module).is_ok();
        self.outcome(fine, "an MLIR pass failed")?;
        self.verify(module)
    }

    /// Puts what a loop says about unrolling where LLVM's dialect looks for it: MLIR's conversion of `cf` leaves it behind
    /// under the name that it had outside.
    pub fn keep_loop_hints(&self, module: &mut Module<'_>) {
        const OUTSIDE: &str = "llvm.loop_annotation";
        module.as_operation_mut().walk_mut(WalkOrder::PreOrder, |mut operation| {
            if let Ok(annotation) = operation.attribute(OUTSIDE)
                && operation.name().as_string_ref().as_str() == Ok("llvm.br")
            {
                operation.set_attribute("loop_annotation", annotation);
            }
            WalkResult::Advance
        });
    }

    /// Fails with what MLIR said, even if it claims success.
    pub fn outcome(&self, fine: bool, otherwise: &str) -> Result<(), Blame> {
        let errors = std::mem::take(&mut *self.errors.borrow_mut());
        if fine && errors.is_empty() {
            return Ok(());
        }
        let op = errors.iter().find_map(|e| e.op);
        let texts: Vec<String> = errors.into_iter().map(|e| e.message).collect();
        let message = if texts.is_empty() { otherwise.to_owned() } else { texts.join("; ") };
        Err(Blame { op, message })
    }
}

/// A diagnostic with its notes, and the operation that its location names.
fn blame(diagnostic: &Diagnostic<'_>) -> Blame {
    let location = diagnostic.location();
    let op = location
        .is_file_line_col_range()
        .then(|| location.file_line_col_range_start_line())
        .and_then(|line| u32::try_from(line).ok())
        .filter(|line| *line > 0)
        .map(OpNumber);
    let mut message = diagnostic.to_string();
    for i in 0..diagnostic.note_count() {
        if let Ok(note) = diagnostic.note(i) {
            message.push_str(&format!(" (note: {note})"));
        }
    }
    Blame { op, message }
}
