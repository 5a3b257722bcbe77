//! `lathe run`.

use lathe_dsl::artifact::CompileRecord;
use lathe_dsl::numerics::MmaRounding;
use lathe_kernels::registry::{Entry, RunReport};
use lathe_runtime::Engine;
use lathe_runtime::device::CpuOptions;
use lathe_runtime::interp::Checks;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, say};
use crate::picture::PictureArgs;
use crate::setup::{self, CacheArgs};

#[derive(clap::Args)]
pub struct Run {
    /// Which kernel; `lathe list` names them.
    kernel: String,
    /// Sets a key field.
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = crate::setting)]
    settings: Vec<(String, String)>,
    /// Where to run it: cpu, cpu:CHIP, gcn:gfx950, gcn:gfx942, gcn:gfx1201, cuda, cuda:NUMBER, hip, hip:NUMBER.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Seed of the input data and of the order in which workgroups begin and waves are interleaved.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What device `cpu` checks besides what it always does: `all`, `none`, `default` (all but `nan`), or some of races, waits,
    /// nan with commas between.
    #[arg(long)]
    checks: Option<Checks>,
    /// How device `cpu` rounds the sums of matrix products: `exact`, or bit for bit as `sm_90` does.
    #[arg(long, value_parser = setup::rounding)]
    mma_rounding: Option<MmaRounding>,
    #[command(flatten)]
    picture: PictureArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Run {
    pub fn execute(&self) -> Result<(), Failure> {
        let kernel = Entry::find(&self.kernel).map_err(Failure::request)?;
        if let Some(pictures) = self.picture.open(kernel, self.seed)? {
            let report = pictures.run(kernel, &self.engine()?, &self.settings, self.seed)?;
            return self.tell(&report.run, &report, &report.lines());
        }
        // What is wrong with them is told before a device is looked for.
        kernel.build(&self.settings).map_err(Failure::request)?;
        let engine = self.engine()?;
        let build = kernel.build_for(&*engine.device, &self.settings).map_err(Failure::request)?;
        let report = build.run(&engine, self.seed).map_err(|error| match error.is_request() {
            true => Failure::request(error),
            false => Failure::outcome(error),
        })?;
        self.tell(&report, &report, &[])
    }

    /// The device with its compiler, as options and environment say.
    fn engine(&self) -> Result<Engine, Failure> {
        let cache = self.cache.cache()?;
        let options = CpuOptions {
            seed: Some(self.seed),
            checks: self.checks.unwrap_or_default(),
            mma: self.mma_rounding.unwrap_or_default(),
            ..CpuOptions::default()
        };
        let engine = Engine::open_with(&self.device, options, setup::llvm()?, cache).map_err(Failure::request)?;
        let given = [("--checks", self.checks.is_some()), ("--mma-rounding", self.mma_rounding.is_some())];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given)
            && !engine.device.name().starts_with("cpu")
        {
            let device = &self.device;
            return Err(Failure::request(format!("{option} is for device `cpu`; `{device}` has no such choice")));
        }
        Ok(engine)
    }

    /// Prints a report, as JSON `whole`, as text with `more` lines; its verdict is the exit status.
    fn tell(&self, report: &RunReport, whole: &impl Serialize, more: &[String]) -> Result<(), Failure> {
        output::warn(&report.record.warnings);
        if self.json {
            say!("{}", serde_json::to_string(whole).map_err(Failure::outcome)?);
        } else {
            print(report)?;
            for line in more {
                say!("{line}");
            }
        }
        if report.ok { Ok(()) } else { Err(Failure::check()) }
    }
}

fn print(report: &RunReport) -> Result<(), Failure> {
    let key: Vec<String> = report.key.iter().map(|(field, value)| format!("{field}={value}")).collect();
    say!("kernel   {} {{{}}}", report.kernel, key.join(", "));
    say!("device   {}, seed {}", report.device, report.seed);
    say!("compile  {}", compile_line(&report.record));
    for check in &report.checks {
        let verdict = if check.ok { "ok    " } else { "FAILED" };
        say!(
            "check    {verdict} against {}: max error {:.3e}, allowed: {}",
            check.against,
            check.max_abs_error,
            check.allowed
        );
        if let Some(failure) = &check.first_failure {
            say!("         {failure}");
        }
    }
    for finding in &report.findings {
        say!("finding  {finding}");
    }
    say!("time     {:.3} ms", report.launch_ms);
    Ok(())
}

/// A compile record in one line.
pub fn compile_line(record: &CompileRecord) -> String {
    let r = &record.resources;
    let mut parts = vec![
        format!("{} ops", record.kir_ops),
        format!("trace {:.3} ms", record.trace_ms),
        format!("compile {:.3} ms", record.compile_ms),
    ];
    let mut count = |what: &str, n: Option<u32>| parts.extend(n.map(|n| format!("{n} {what}")));
    count("VGPR", r.vgpr);
    count("SGPR", r.sgpr);
    count("PTX registers", r.ptx_registers);
    count("spills", r.spills);
    count("instructions", Some(r.instructions).filter(|n| *n > 0));
    count("B code", Some(r.code_bytes as u32).filter(|n| *n > 0));
    count("B LDS", Some(r.lds_bytes));
    parts.push(format!("cache: {}", record.cache));
    parts.join(", ")
}
