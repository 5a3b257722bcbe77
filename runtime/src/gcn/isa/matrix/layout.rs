//! Which element of a matrix a lane's register holds.
//!
//! Written from AMD's ISA documents, apart from the layout tables of the DSL, which it checks.

/// A product of `m` × `k` and `k` × `n` by a wave of `lanes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) lanes: usize,
}

impl Shape {
    /// Groups of lanes that share the rows of A (columns of B); each has its own part of K.
    pub(super) fn groups(self) -> usize {
        self.lanes / self.m
    }

    /// Elements of A (of B) that a lane holds.
    pub(super) fn per_lane(self) -> usize {
        self.k / self.groups()
    }

    /// Row of A (column of B) of a lane.
    pub(super) fn row(self, lane: usize) -> usize {
        lane % self.m
    }

    /// Place along K of element `j` of a lane. A lane's elements follow each other; but where it holds 32 bytes of the
    /// formats of f8f6f4 (`split`), its first 16 are from the first half of K, the others from the second.
    pub(super) fn k_of(self, lane: usize, j: usize, split: bool) -> usize {
        let group = lane / self.m;
        if split { j / 16 * (16 * self.groups()) + 16 * group + j % 16 } else { group * self.per_lane() + j }
    }

    /// Lane whose scale register holds the scale of a row and a block of 32 along K.
    pub(super) fn scale_lane(self, row: usize, block: usize) -> usize {
        row + self.m * block
    }

    /// Results that a lane holds.
    pub(super) fn results(self) -> usize {
        self.m * self.n / self.lanes
    }

    /// Row and column of result register `r` of a lane.
    pub(super) fn result(self, lane: usize, r: usize) -> (usize, usize) {
        let (group, column) = (lane / self.n, lane % self.n);
        let row = if self.lanes == 32 {
            // RDNA: all rows of a half.
            self.results() * group + r
        } else {
            // CDNA: four rows a group in turn.
            4 * self.groups() * (r / 4) + 4 * group + r % 4
        };
        (row, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_one_place() {
        for (m, k, lanes) in [
            (16, 4, 64),
            (16, 16, 64),
            (16, 32, 64),
            (16, 128, 64),
            (32, 2, 64),
            (32, 8, 64),
            (32, 64, 64),
            (16, 16, 32),
        ] {
            let s = Shape { m, n: m, k, lanes };
            let mut results: Vec<_> = (0..lanes).flat_map(|l| (0..s.results()).map(move |r| s.result(l, r))).collect();
            results.sort_unstable();
            results.dedup();
            assert_eq!(results.len(), m * m, "{s:?}");
            assert!(results.iter().all(|(row, column)| *row < m && *column < m), "{s:?}");
            for split in [false, s.per_lane() == 32] {
                let mut places: Vec<_> =
                    (0..lanes).flat_map(|l| (0..s.per_lane()).map(move |j| (s.row(l), s.k_of(l, j, split)))).collect();
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), m * k, "{s:?}");
                assert!(places.iter().all(|(row, at)| *row < m && *at < k), "{s:?}");
            }
        }
    }

    /// Lane, element and their place, as the ISA documents' figures have them.
    #[test]
    fn places_are_those_of_the_documents() {
        let s = |m, k, lanes| Shape { m, n: m, k, lanes };
        assert_eq!(s(16, 32, 64).k_of(17, 5, false), 13, "8 halves a lane");
        assert_eq!(s(32, 8, 64).k_of(33, 1, false), 5, "4 halves a lane");
        assert_eq!(s(16, 128, 64).k_of(16, 3, false), 35, "32 nibbles a lane");
        assert_eq!([0, 16].map(|j| s(16, 128, 64).k_of(16, j, true)), [16, 80], "two runs of 16 bytes");
        assert_eq!([0, 16].map(|j| s(32, 64, 64).k_of(32, j, true)), [16, 48]);
        assert_eq!(s(16, 16, 32).k_of(20, 2, false), 10, "RDNA: 8 elements a lane");
        assert_eq!(s(16, 32, 64).result(17, 2), (6, 1));
        assert_eq!(s(32, 16, 64).result(33, 5), (13, 1));
        assert_eq!(s(16, 16, 32).result(17, 3), (11, 1));
        assert_eq!(s(16, 128, 64).scale_lane(3, 2), 35);
        assert_eq!(s(32, 64, 64).scale_lane(3, 1), 35);
    }
}
