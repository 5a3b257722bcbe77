//! All GPUs, and how their streams get on.
//!
//! A kernel that waits for others runs together with all of that kind that other streams were given, on whatever GPU, and what comes
//! before those: streams get on by themselves on GPUs, too. So launches that wait for each other must have been given before somebody
//! waits for one of them.

use std::sync::Arc;
use std::time::Instant;

use hip_sys::hiprt::hipError_t::{self, *};
use lathe_runtime::gcn::{self, ErrorKind, GcnError, Launch, Options, Rank};

use crate::Done;
use crate::gpu::{Gpu, Handle, Module, Place, Step};

/// A stream, with the number of its GPU: the default streams have one handle.
pub type Stream = (usize, Handle);

/// The GPUs.
pub struct Machine {
    pub gpus: Vec<Gpu>,
}

/// A launch that was taken from its stream.
struct Taken {
    module: Arc<Module>,
    symbol: String,
    grid: [u32; 3],
    block: [u32; 3],
    kernarg: Vec<u8>,
}

impl Taken {
    fn launch(&self) -> Launch<'_> {
        let Self { module, symbol, grid, block, kernarg } = self;
        Launch { object: &module.object, kernel: symbol, grid: *grid, block: *block, kernarg }
    }
}

impl Machine {
    /// Adds work to a stream. The default stream does it at once, after everything that all streams of its GPU were given before.
    pub fn give(&mut self, stream: Stream, step: Step) -> Done {
        self.gpus[stream.0].give(stream.1, step)?;
        if stream.1 == Handle::DEFAULT_STREAM { self.finish(stream, u64::MAX) } else { Ok(()) }
    }

    /// Whether a stream has done everything up to a ticket; if not, it does one step of it.
    pub fn query(&mut self, stream: Stream, ticket: u64) -> Done {
        let gpu = &self.gpus[stream.0];
        gpu.sound()?;
        if gpu.is_done(stream.1, ticket) {
            return Ok(());
        }
        self.step(stream, &mut vec![])?;
        Err(hipErrorNotReady)
    }

    /// A stream does everything up to a ticket; for the default stream, so do all of its GPU.
    pub fn finish(&mut self, stream: Stream, ticket: u64) -> Done {
        self.finish_while(stream, ticket, &mut vec![])
    }

    /// The same while a step of each of the streams of `busy` is under way.
    fn finish_while(&mut self, stream: Stream, ticket: u64, busy: &mut Vec<Stream>) -> Done {
        let gpu = &self.gpus[stream.0];
        gpu.sound()?;
        if !gpu.has(stream.1) && ticket == u64::MAX {
            return Err(hipErrorInvalidHandle);
        }
        if stream.1 == Handle::DEFAULT_STREAM {
            let others = gpu.streams().filter(|s| *s != stream.1).map(|s| (stream.0, s)).collect::<Vec<_>>();
            others.into_iter().try_for_each(|other| self.finish_while(other, u64::MAX, busy))?;
        }
        while !self.gpus[stream.0].is_done(stream.1, ticket) {
            self.step(stream, busy)?;
        }
        Ok(())
    }

    /// Does the next step of a stream, if there is one.
    fn step(&mut self, stream: Stream, busy: &mut Vec<Stream>) -> Done {
        if self.gpus[stream.0].waits(stream.1) == Some(0) {
            return self.together(stream, busy);
        }
        let gpu = &mut self.gpus[stream.0];
        let Some(step) = gpu.next(stream.1) else { return Ok(()) };
        let done = match step {
            Step::Wait { stream: on, ticket } => return self.wait(stream, (on, ticket), busy),
            Step::Record { event } => {
                gpu.pass(event, Instant::now());
                Ok(())
            }
            Step::Copy { to, from, bytes } => copy(gpu, to, from, bytes),
            Step::Fill { to, value, bytes } => {
                gpu.memory.write(to, &vec![value; bytes]).map_err(|_| hipErrorIllegalAddress)
            }
            Step::Launch { module, symbol, grid, block, kernarg } => {
                let (object, options) = (&module.object, Options::default());
                let done = gcn::launch(object, &symbol, grid, block, &kernarg, &mut gpu.memory, &options);
                done.map(|_| ()).map_err(|error| failure(&symbol, &error))
            }
        };
        done.inspect_err(|error| self.gpus[stream.0].fail(*error))
    }

    /// Has another stream do everything up to a ticket, for one that waits for it.
    fn wait(&mut self, stream: Stream, (on, ticket): (Stream, u64), busy: &mut Vec<Stream>) -> Done {
        if self.gpus[on.0].is_done(on.1, ticket) {
            return Ok(());
        }
        // That one waits for this one.
        if busy.contains(&on) {
            self.gpus[stream.0].fail(hipErrorLaunchFailure);
            return Err(hipErrorLaunchFailure);
        }
        busy.push(stream);
        let done = self.finish_while(on, ticket, busy);
        busy.pop();
        // Another GPU's failure is not this one's.
        if on.0 == stream.0 { done } else { Ok(()) }
    }

    /// Runs the kernel that waits at the head of a stream with all that wait elsewhere.
    fn together(&mut self, first: Stream, busy: &mut Vec<Stream>) -> Done {
        let mut ready = vec![first];
        busy.push(first);
        let all = |(number, gpu): (usize, &Gpu)| gpu.streams().map(move |s| (number, s)).collect::<Vec<_>>();
        for other in self.gpus.iter().enumerate().flat_map(all).collect::<Vec<_>>() {
            // What comes before is done; where that fails, nobody of that GPU gets on.
            while !busy.contains(&other)
                && self.gpus[other.0].sound().is_ok()
                && let Some(steps) = self.gpus[other.0].waits(other.1)
            {
                if steps == 0 {
                    ready.push(other);
                    break;
                }
                if self.step(other, busy).is_err() {
                    break;
                }
            }
        }
        busy.pop();
        // One that was at the head may have run with another meanwhile.
        let mut taken: Vec<(usize, Vec<Taken>)> = vec![];
        for (number, stream) in ready {
            let mut launches = vec![];
            while self.gpus[number].waits(stream) == Some(0) {
                if let Some(Step::Launch { module, symbol, grid, block, kernarg }) = self.gpus[number].next(stream) {
                    launches.push(Taken { module, symbol, grid, block, kernarg });
                }
            }
            if !launches.is_empty() {
                taken.push((number, launches));
            }
        }
        let ranks: Vec<Rank<'_>> = taken
            .iter()
            .map(|(number, launches)| Rank { memory: *number, launches: launches.iter().map(Taken::launch).collect() })
            .collect();
        let mut memories: Vec<_> = self.gpus.iter_mut().map(|gpu| &mut gpu.memory).collect();
        let Err((rank, error)) = gcn::launch_group(&ranks, &mut memories, &Options::default()) else { return Ok(()) };
        let (blamed, launches) = &taken[rank];
        let names: Vec<&str> = launches.iter().map(|l| l.symbol.as_str()).collect();
        let reason = failure(&names.join(", "), &error);
        // The others will not get what they wait for.
        for (number, _) in &taken {
            self.gpus[*number].fail(if number == blamed { reason } else { hipErrorLaunchFailure });
        }
        self.gpus[first.0].sound()
    }
}

/// Tells why a kernel failed.
fn failure(symbol: &str, error: &GcnError) -> hipError_t {
    eprintln!("stand-in for HIP: {symbol}: {error}");
    match error.kind {
        ErrorKind::OutsideAllocations { .. } | ErrorKind::ReadOnly { .. } => hipErrorIllegalAddress,
        _ => hipErrorLaunchFailure,
    }
}

fn copy(gpu: &mut Gpu, to: Place, from: Place, bytes: usize) -> Done {
    let gone = |_| hipErrorIllegalAddress;
    let data = match from {
        Place::Device(address) => gpu.memory.read(address, bytes).map_err(gone)?,
        Place::Host(address) => {
            let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
            // SAFETY: whoever asked for the copy keeps the memory until it is done.
            unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec()
        }
    };
    match to {
        Place::Device(address) => gpu.memory.write(address, &data).map_err(gone),
        Place::Host(address) => {
            let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
            // SAFETY: as above.
            unsafe { to.copy_from_nonoverlapping(data.as_ptr(), bytes) };
            Ok(())
        }
    }
}
