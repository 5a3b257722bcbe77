//! Counts of the wait instructions.

use super::number;
use crate::gcn::error::ErrorKind;
use crate::gcn::wait::WaitCounts;

/// Counts of a wait instruction; `None` for any other instruction.
pub(super) fn parse(mnemonic: &str, text: &str) -> Result<Option<WaitCounts>, ErrorKind> {
    if mnemonic == "s_waitcnt" {
        return gfx9(text).map(Some);
    }
    let Some(names) = mnemonic.strip_prefix("s_wait_").filter(|n| n.ends_with("cnt")) else { return Ok(None) };
    let bits = number(text).and_then(|n| u32::try_from(n).ok());
    let bits = bits.ok_or_else(|| ErrorKind::Decode(format!("wait count `{text}`")))?;
    let mut counts = WaitCounts::default();
    match names.split_once("_dscnt") {
        // Two counters share the number: six bits each, from bit 8 and from bit 0.
        Some((other, "")) => {
            set(&mut counts, other, bits >> 8 & 0x3F)?;
            set(&mut counts, "dscnt", bits & 0x3F)?;
        }
        _ => set(&mut counts, names, bits)?,
    }
    Ok(Some(counts))
}

fn set(counts: &mut WaitCounts, name: &str, n: u32) -> Result<(), ErrorKind> {
    match name {
        "loadcnt" => counts.vm = Some(n),
        "dscnt" => counts.ds = Some(n),
        "kmcnt" => counts.km = Some(n),
        "expcnt" => counts.exp = Some(n),
        "storecnt" => counts.store = Some(n),
        // Images are not executed.
        "samplecnt" | "bvhcnt" => {}
        _ => return Err(ErrorKind::Decode(format!("wait counter `{name}`"))),
    }
    Ok(())
}

fn gfx9(text: &str) -> Result<WaitCounts, ErrorKind> {
    let mut w = WaitCounts::default();
    for part in text.split([' ', '&']).filter(|p| !p.is_empty()) {
        let count = |name: &str| {
            part.strip_prefix(name).and_then(|p| p.strip_prefix('(')).and_then(|p| p.strip_suffix(')')?.parse().ok())
        };
        if let Some(n) = count("vmcnt") {
            w.vm = Some(n);
        } else if let Some(n) = count("lgkmcnt") {
            w.lgkm = Some(n);
        } else if let Some(n) = count("expcnt") {
            w.exp = Some(n);
        } else if let Some(bits) = number(part) {
            let bits = bits as u32;
            w.vm = Some((bits & 0xF) | (bits >> 14 & 3) << 4);
            w.exp = Some(bits >> 4 & 7);
            w.lgkm = Some(bits >> 8 & 0xF);
        } else {
            return Err(ErrorKind::Decode(format!("wait count `{part}`")));
        }
    }
    Ok(w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_both_families() {
        let counts = |m, t| parse(m, t).unwrap().unwrap();
        assert_eq!(
            counts("s_waitcnt", "vmcnt(2) lgkmcnt(1)"),
            WaitCounts { vm: Some(2), lgkm: Some(1), ..Default::default() }
        );
        assert_eq!(counts("s_wait_loadcnt", "0x3"), WaitCounts { vm: Some(3), ..Default::default() });
        assert_eq!(counts("s_wait_kmcnt", "0x0"), WaitCounts { km: Some(0), ..Default::default() });
        assert_eq!(
            counts("s_wait_loadcnt_dscnt", "0x102"),
            WaitCounts { vm: Some(1), ds: Some(2), ..Default::default() }
        );
        assert_eq!(
            counts("s_wait_storecnt_dscnt", "0x105"),
            WaitCounts { store: Some(1), ds: Some(5), ..Default::default() }
        );
        assert_eq!(parse("s_wait_alu", "depctr_sa_sdst(0)").unwrap(), None);
        assert!(parse("s_wait_frobcnt", "0x0").is_err());
        assert!(parse("s_wait_loadcnt", "vmcnt(0)").is_err());
    }
}
