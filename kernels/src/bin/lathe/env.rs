//! `lathe env`.

use lathe_runtime::drivers::{self, Driver, NoDriver};
use lathe_runtime::env::ALL;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::say;

#[derive(clap::Args)]
pub struct Env {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// One kind of device that a driver gives, or why it gives none.
struct Gpus {
    /// As devices are named: `cuda`, `hip`.
    kind: &'static str,
    /// What its version is one of.
    vendor: &'static str,
    version: fn(i32) -> String,
    found: Result<Driver, NoDriver>,
}

impl Env {
    pub fn execute(&self) -> Result<(), Failure> {
        let values = ALL.iter().map(|v| v.value()).collect::<Result<Vec<_>, _>>().map_err(Failure::request)?;
        let gpus = [
            Gpus { kind: "cuda", vendor: "CUDA", version: drivers::cuda_version, found: drivers::cuda() },
            Gpus { kind: "hip", vendor: "HIP", version: drivers::hip_version, found: drivers::hip() },
        ];
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
            let gpus: serde_json::Map<String, Value> =
                gpus.iter().map(|gpus| (gpus.kind.to_owned(), gpus.json())).collect();
            say!("{}", json!({ "variables": variables, "gpus": gpus }));
            return Ok(());
        }
        for (v, value) in ALL.iter().zip(values) {
            let set = if v.is_set() { "set" } else { "default" };
            say!("{} = {value}  ({set})", v.name());
            say!("  {}", v.doc());
            say!("  default {}; allowed: {}", v.default(), v.allowed());
        }
        for line in gpus.iter().flat_map(Gpus::lines) {
            say!("{line}");
        }
        Ok(())
    }
}

impl Gpus {
    /// A missing or broken driver is something to tell, not a failure.
    fn json(&self) -> Value {
        match &self.found {
            Err(reason) => json!({ "absent": reason.to_string() }),
            Ok(driver) => json!({
                "library": driver.library, "version": (self.version)(driver.version), "driver": driver.build,
                "devices": driver.devices,
            }),
        }
    }

    fn lines(&self) -> Vec<String> {
        let kind = self.kind;
        let driver = match &self.found {
            Ok(driver) => driver,
            Err(reason) => return vec![format!("{kind}: no GPU: {reason}")],
        };
        let build = driver.build.as_ref().map_or(String::new(), |build| format!(", driver {build}"));
        let with = format!("{}, {} {}{build}", driver.library, self.vendor, (self.version)(driver.version));
        if driver.devices.is_empty() {
            return vec![format!("{kind}: no GPU: {with}, has no device")];
        }
        let mut lines = vec![format!("{kind}: {with}")];
        for (i, device) in driver.devices.iter().enumerate() {
            let chip = device.chip().unwrap_or_else(|| "unknown chip".to_owned());
            lines.push(format!("  {kind}:{i}  {}, {chip}, {}", device.name, device.memory()));
        }
        if driver.devices.len() > 1 {
            // As wide as the longest name.
            let names: Vec<String> = (0..driver.devices.len()).map(|i| format!("{kind}:{i}")).collect();
            let width = names.iter().map(String::len).max().unwrap_or_default();
            let row = |first: &str, rest: Vec<&str>| {
                let rest: Vec<String> = rest.iter().map(|text| format!("{text:>width$}")).collect();
                format!("  {first:<width$}  {}", rest.join("  "))
            };
            lines.push("  kernels of the first reach memory of:".to_owned());
            lines.push(row("", names.iter().map(String::as_str).collect()));
            for (name, device) in names.iter().zip(&driver.devices) {
                let cell = |reaches: &Option<bool>| match reaches {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "?",
                };
                lines.push(row(name, device.peers.iter().map(cell).collect()));
            }
        }
        lines
    }
}
