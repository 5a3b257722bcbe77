//! Names of the epilogues: `dec2.e1` to `dec2.e38`.

use crate::dec2::phases::PHASES;

/// An epilogue as a kernel with a name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its stages.
    pub stages: &'static [&'static str],
    /// The setting that the name makes.
    pub instance: &'static [(&'static str, &'static str)],
}

/// The table by number, from rows of it: numbers of epilogues that do the same, what they do, their stages.
macro_rules! epilogues {
    ($($($number:literal)+ : $doc:literal $stages:tt;)*) => {{
        let mut all = [Named { name: "", doc: "", stages: &[], instance: &[] }; PHASES as usize];
        $($(all[$number - 1] = Named {
            name: concat!("dec2.e", $number),
            doc: concat!("Epilogue ", $number, " of dec2: ", $doc),
            stages: &$stages,
            instance: &[("instance", stringify!($number))],
        };)+)*
        all
    }};
}

/// All of them, by number.
pub const EPILOGUES: &[Named; PHASES as usize] = &epilogues! {
    1: "patches into the grid, skip features, norm" ["PatchScatter", "SkipResidual", "RowNorm", "StageQuads", "LoadQuad", "LoadB"];
    2 3 4 5 6: "weights of a projection" ["LoadB"];
    7: "both factors of the scores and their bias" ["ScoreSeed"];
    8: "probabilities and transposed values" ["CubicSoftmax", "TransposePack"];
    9: "heads' results through shared memory, bias plus residual" ["StageQuads", "LoadQuad", "LoadB", "ColAdd"];
    10 11 12: "the next head's result and projection" ["LoadQuad", "LoadB"];
    13: "norm before the MLP, its first chunk" ["RowNorm", "PackQuads", "LoadB", "LoadCol"];
    14: "activation, bias plus residual" ["CubicAct", "LoadB", "ColAdd"];
    15 17 19 21 23 25 27 29 31 33 35: "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    16 18 20 22 24 26 28 30 32 34 36: "activation" ["CubicAct", "LoadB"];
    37: "features to the arena, the head's weights" ["PackQuads", "PlaneScatter", "LoadB", "LoadCol"];
    38: "filter and gate" ["StageOutputs", "KernelGate"];
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dec2::stage::Table;
    use crate::dec2::weights::WeightLayout;
    use crate::registry::Entry;

    #[test]
    fn names_tell_the_tables_stages() {
        let layout = WeightLayout::dec2().unwrap();
        for (number, named) in (1..).zip(EPILOGUES) {
            assert_eq!(named.name, format!("dec2.e{number}"));
            let table = Table::new(&layout, number).unwrap();
            let stages: Vec<_> = table.instance.stages.iter().map(|s| s.name()).filter(|s| *s != "Barrier").collect();
            assert_eq!(stages, named.stages, "{number}");
            let entry = Entry::find(named.name).unwrap();
            assert!(entry.fields.iter().all(|f| f.name != "instance"));
            let build = entry.build(&[("ex".to_owned(), "9".to_owned())]).unwrap();
            assert_eq!(build.fields()[..2], [("instance", number), ("ex", 9)], "{number}");
        }
    }
}
