//! Layouts: which element of a matrix a lane's register holds.

/// What a set bit in the number of a lane, or of an element among those that a lane holds, adds to the place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// So many rows.
    Row(u32),
    /// So many columns.
    Col(u32),
}

/// A matrix spread over lanes: bit `i` of the lane's number and bit `j` of the element's number each stand for a power of two
/// of rows or of columns. Every element of the matrix is held once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    lane: Vec<Step>,
    element: Vec<Step>,
}

impl Layout {
    /// The layout of these bits, lowest first.
    pub(super) fn new(lane: impl IntoIterator<Item = Step>, element: impl IntoIterator<Item = Step>) -> Self {
        Self { lane: lane.into_iter().collect(), element: element.into_iter().collect() }
    }

    /// Some layout of a matrix of about this size over so many lanes: where no product says which.
    pub(crate) fn any(rows: u32, cols: u32, lanes: u32) -> Self {
        let all = |n: u32| (0..n.clamp(1, 64).next_power_of_two().trailing_zeros()).map(|i| 1 << i);
        let mut steps: Vec<Step> = all(cols).map(Step::Col).chain(all(rows).map(Step::Row)).collect();
        let element = steps.split_off(steps.len().min(lanes.trailing_zeros() as usize));
        Self { lane: steps, element }
    }

    /// Bits of the lane's number, lowest first.
    pub fn lane_steps(&self) -> &[Step] {
        &self.lane
    }

    /// Bits of the element's number, lowest first.
    pub fn element_steps(&self) -> &[Step] {
        &self.element
    }

    /// Lanes that hold the matrix.
    pub fn lanes(&self) -> u32 {
        1 << self.lane.len()
    }

    /// Elements a lane.
    pub fn elements(&self) -> u32 {
        1 << self.element.len()
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> u32 {
        1 << self.steps().filter(|s| matches!(s, Step::Row(_))).count()
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> u32 {
        1 << self.steps().filter(|s| matches!(s, Step::Col(_))).count()
    }

    /// Row and column of element `element` of lane `lane`; both counted within the group, higher bits of either do not count.
    pub fn at(&self, lane: u32, element: u32) -> (u32, u32) {
        let (mut row, mut col) = (0, 0);
        let bits = self.lane.iter().enumerate().map(|(i, s)| (lane >> i & 1, s));
        for (bit, step) in bits.chain(self.element.iter().enumerate().map(|(i, s)| (element >> i & 1, s))) {
            match step {
                Step::Row(n) => row += bit * n,
                Step::Col(n) => col += bit * n,
            }
        }
        (row, col)
    }

    /// Lane and element that hold this place; higher bits of row and column do not count.
    pub fn holder(&self, row: u32, col: u32) -> (u32, u32) {
        let set = |step: &Step| match step {
            Step::Row(n) => row & n != 0,
            Step::Col(n) => col & n != 0,
        };
        let number = |steps: &[Step]| steps.iter().enumerate().map(|(i, s)| u32::from(set(s)) << i).sum();
        (number(&self.lane), number(&self.element))
    }

    /// Rows and columns exchanged.
    pub fn transposed(&self) -> Self {
        let turned = |steps: &[Step]| {
            let turn = |s: &Step| match *s {
                Step::Row(n) => Step::Col(n),
                Step::Col(n) => Step::Row(n),
            };
            steps.iter().map(turn).collect()
        };
        Self { lane: turned(&self.lane), element: turned(&self.element) }
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.lane.iter().chain(&self.element)
    }
}

/// Rows of `from`, `2·from`, … below `to`.
pub(super) fn rows(from: u32, to: u32) -> impl Iterator<Item = Step> {
    powers(from, to).map(Step::Row)
}

/// Columns of `from`, `2·from`, … below `to`.
pub(super) fn cols(from: u32, to: u32) -> impl Iterator<Item = Step> {
    powers(from, to).map(Step::Col)
}

fn powers(from: u32, to: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(from), |n| Some(n * 2)).take_while(move |n| *n < to)
}
