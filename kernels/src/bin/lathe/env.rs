//! `lathe env`.

use lathe_runtime::env::ALL;
use serde_json::json;

use crate::failure::Failure;
use crate::output::say;

#[derive(clap::Args)]
pub struct Env {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Env {
    pub fn execute(&self) -> Result<(), Failure> {
        let values = ALL.iter().map(|v| v.value()).collect::<Result<Vec<_>, _>>().map_err(Failure::request)?;
        if self.json {
            let variables: Vec<_> = ALL
                .iter()
                .zip(values)
                .map(|(v, value)| {
                    json!({
                        "name": v.name(), "doc": v.doc(), "allowed": v.allowed(), "default": v.default(), "value": value,
                        "set": v.is_set(),
                    })
                })
                .collect();
            say!("{}", json!({ "variables": variables }));
            return Ok(());
        }
        for (v, value) in ALL.iter().zip(values) {
            let set = if v.is_set() { "set" } else { "default" };
            say!("{} = {value}  ({set})", v.name());
            say!("  {}", v.doc());
            say!("  default {}; allowed: {}", v.default(), v.allowed());
        }
        Ok(())
    }
}
