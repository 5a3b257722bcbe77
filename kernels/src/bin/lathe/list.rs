//! `lathe list`.

use lathe_kernels::registry::KERNELS;
use serde_json::json;

use crate::failure::Failure;
use crate::output::say;

#[derive(clap::Args)]
pub struct List {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn execute(&self) -> Result<(), Failure> {
        if self.json {
            let kernels: Vec<_> = KERNELS
                .iter()
                .map(|kernel| {
                    let fields: Vec<_> = kernel
                        .fields
                        .iter()
                        .map(|f| json!({"name": f.name, "doc": f.doc, "default": f.default, "allowed": f.allowed.to_string()}))
                        .collect();
                    json!({"name": kernel.name, "doc": kernel.doc, "stages": kernel.stages, "key": fields})
                })
                .collect();
            say!("{}", json!({ "kernels": kernels }));
            return Ok(());
        }
        for kernel in KERNELS {
            say!("{}\n  {}", kernel.name, kernel.doc);
            say!("  stages: {}", kernel.stages.join(", "));
            for f in kernel.fields {
                say!("  {} = {}  {} ({})", f.name, f.default, f.doc, f.allowed);
            }
        }
        Ok(())
    }
}
