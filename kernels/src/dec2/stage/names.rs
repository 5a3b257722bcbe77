//! Names of the epilogues: `dec2.e1` to `dec2.e38`.

use super::Dec2Stage;
use crate::dec2::phases::PHASES;
use crate::registry::Entry;

/// An epilogue as a kernel with a name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    name: &'static str,
    doc: &'static str,
    stages: &'static [&'static str],
    /// The setting that the name makes.
    instance: &'static [(&'static str, &'static str)],
}

impl Named {
    pub(crate) const fn entry(&self) -> Entry {
        Entry::of_family::<Dec2Stage>(self.name, self.doc, self.stages, self.instance)
    }
}

/// A row of the table below: number, what it does, its stages.
macro_rules! epilogues {
    ($($number:literal $doc:literal [$($stage:literal),+];)*) => {
        &[$(Named {
            name: concat!("dec2.e", $number),
            doc: concat!("Epilogue ", $number, " of dec2: ", $doc),
            stages: &[$($stage),+],
            instance: &[("instance", stringify!($number))],
        }),*]
    };
}

/// All of them, by number.
pub const EPILOGUES: &[Named] = epilogues! {
    1 "patches into the grid, skip features, norm" ["PatchScatter", "SkipResidual", "RowNorm", "StageQuads", "LoadQuad", "LoadB"];
    2 "weights of a projection" ["LoadB"];
    3 "weights of a projection" ["LoadB"];
    4 "weights of a projection" ["LoadB"];
    5 "weights of a projection" ["LoadB"];
    6 "weights of a projection" ["LoadB"];
    7 "both factors of the scores and their bias" ["ScoreSeed"];
    8 "probabilities and transposed values" ["CubicSoftmax", "TransposePack"];
    9 "heads' results through shared memory, bias plus residual" ["StageQuads", "LoadQuad", "LoadB", "ColAdd"];
    10 "the next head's result and projection" ["LoadQuad", "LoadB"];
    11 "the next head's result and projection" ["LoadQuad", "LoadB"];
    12 "the next head's result and projection" ["LoadQuad", "LoadB"];
    13 "norm before the MLP, its first chunk" ["RowNorm", "PackQuads", "LoadB", "LoadCol"];
    14 "activation, bias plus residual" ["CubicAct", "LoadB", "ColAdd"];
    15 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    16 "activation" ["CubicAct", "LoadB"];
    17 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    18 "activation" ["CubicAct", "LoadB"];
    19 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    20 "activation" ["CubicAct", "LoadB"];
    21 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    22 "activation" ["CubicAct", "LoadB"];
    23 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    24 "activation" ["CubicAct", "LoadB"];
    25 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    26 "activation" ["CubicAct", "LoadB"];
    27 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    28 "activation" ["CubicAct", "LoadB"];
    29 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    30 "activation" ["CubicAct", "LoadB"];
    31 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    32 "activation" ["CubicAct", "LoadB"];
    33 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    34 "activation" ["CubicAct", "LoadB"];
    35 "the MLP's next chunk" ["PackQuads", "LoadB", "LoadCol"];
    36 "activation" ["CubicAct", "LoadB"];
    37 "features to the arena, the head's weights" ["PackQuads", "PlaneScatter", "LoadB", "LoadCol"];
    38 "filter and gate" ["StageOutputs", "KernelGate"];
};

const _: () = assert!(EPILOGUES.len() == PHASES as usize);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dec2::stage::Table;
    use crate::dec2::weights::WeightLayout;

    #[test]
    fn names_tell_the_tables_stages() {
        let layout = WeightLayout::dec2().unwrap();
        for (number, named) in (1..).zip(EPILOGUES) {
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
