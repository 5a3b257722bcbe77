//! Races of workgroups on global memory.

use std::fmt;

use crate::gcn::error::Site;

/// What a workgroup does to a byte.
#[derive(Clone, PartialEq, Debug)]
pub struct MemoryAccess {
    /// Its id.
    pub workgroup: [u32; 3],
    /// It stores there, else it loads.
    pub writes: bool,
    /// Its first instruction that does; `None` if it did something else when it ran again for this, as it may where other devices
    /// change what it loads.
    pub site: Option<Box<Site>>,
}

/// Two workgroups of a launch touch the same byte of global memory, nothing orders them, and one of them stores there; if both do,
/// different values.
#[derive(Clone, PartialEq, Debug)]
pub struct MemoryRace {
    /// The lowest byte that the two touch so.
    pub address: u64,
    /// What the lower workgroup does.
    pub first: MemoryAccess,
    /// What the other one does.
    pub second: MemoryAccess,
}

impl MemoryRace {
    /// Whether the same instructions are to blame.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let of = |race: &Self| {
            [&race.first, &race.second].map(|access| (access.writes, access.site.as_ref().map(|site| site.pc)))
        };
        of(self) == of(other)
    }

    /// In words, with what `place` says of an instruction before what is said of it.
    pub(crate) fn describe(&self, place: impl Fn(&Site) -> String) -> String {
        let (first, second) = (&self.first, &self.second);
        let place = |access: &MemoryAccess| access.site.as_ref().map_or_else(String::new, |site| place(site));
        let pc = |access: &MemoryAccess| access.site.as_ref().map(|site| format!("pc {:#x} `{}`", site.pc, site.text));
        let at = |access: &MemoryAccess| pc(access).map_or_else(String::new, |pc| format!(" ({pc})"));
        let does = |access: &MemoryAccess| if access.writes { "stores" } else { "loads" };
        let id = |access: &MemoryAccess| {
            let [x, y, z] = access.workgroup;
            format!("workgroup ({x}, {y}, {z})")
        };
        let (which, does_first) =
            if first.writes && second.writes { ("where", "stores another value") } else { ("which", does(first)) };
        format!(
            "{}{} {} byte {:#x} of global memory{}, {which} {}{} {does_first}{}: nothing orders workgroups of a launch",
            place(second),
            id(second),
            does(second),
            self.address,
            at(second),
            place(first),
            id(first),
            at(first),
        )
    }
}

impl fmt::Display for MemoryRace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|_| String::new()))
    }
}
