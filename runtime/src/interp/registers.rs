//! Places virtual registers in the rows of the two register files. Rows are reused: a large unrolled kernel's wave then
//! stays in the host's cache.

use super::program::{Class, Instr, Reg};

/// Row `row` of virtual register `id`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct VReg {
    pub(super) id: u32,
    pub(super) row: u32,
}

impl VReg {
    /// The register `n` rows further on.
    pub(super) fn at(self, n: u32) -> Self {
        Self { row: self.row + n, ..self }
    }
}

/// Places every virtual register (class and number of rows each) so that two share a row only if their live ranges are
/// apart. Returns the code and the rows of the two files.
///
/// A range runs from the first to the last mention in code order. A register from outside a loop that is mentioned in
/// it stays live to the loop's end. Branches need nothing more: both sides are executed in code order, under masks.
pub(super) fn place<const W: usize>(code: &[Instr<W, VReg>], vregs: &[(Class, u32)]) -> (Vec<Instr<W, Reg>>, [u32; 2]) {
    // Position of each loop's end, by position of its head.
    let mut loop_end = vec![0; code.len()];
    for (at, instr) in code.iter().enumerate() {
        if let Some(head) = instr.closes_loop() {
            loop_end[head as usize] = at;
        }
    }

    let mut range: Vec<Option<(usize, usize)>> = vec![None; vregs.len()];
    let mut open: Vec<usize> = vec![];
    for (at, instr) in code.iter().enumerate() {
        instr.map_regs(|r| {
            let (first, last) = range[r.id as usize].get_or_insert((at, at));
            // The outermost loop that the register enters from outside.
            let through = open.iter().find(|start| **start > *first);
            *last = (*last).max(through.map_or(at, |start| loop_end[*start]));
        });
        if instr.opens_loop() {
            open.push(at);
        } else if instr.closes_loop().is_some() {
            open.pop();
        }
    }

    let mut ending: Vec<Vec<u32>> = vec![vec![]; code.len()];
    for (id, range) in range.iter().enumerate() {
        if let Some((_, last)) = range {
            ending[*last].push(id as u32);
        }
    }
    let mut files = [File::default(), File::default()];
    let mut start: Vec<Option<Reg>> = vec![None; vregs.len()];
    let placed = code
        .iter()
        .enumerate()
        .map(|(at, instr)| {
            let instr = instr.map_regs(|r| {
                let id = r.id as usize;
                let (class, n) = vregs[id];
                first_row(&mut start[id], &mut files[class as usize], n) + r.row
            });
            // After the results have their rows, so that those never overlap an operand.
            for id in &ending[at] {
                let (class, n) = vregs[*id as usize];
                if let Some(first) = start[*id as usize] {
                    files[class as usize].give(first, n);
                }
            }
            instr
        })
        .collect();
    (placed, files.map(|f| f.rows))
}

fn first_row(start: &mut Option<Reg>, file: &mut File, n: u32) -> Reg {
    *start.get_or_insert_with(|| file.take(n))
}

/// Free rows of one register file.
#[derive(Default)]
struct File {
    rows: u32,
    /// Free runs `(first, length)`, ascending, never adjacent.
    free: Vec<(Reg, u32)>,
}

impl File {
    /// The first run of `n` free rows; grows the file if there is none.
    fn take(&mut self, n: u32) -> Reg {
        if let Some(i) = self.free.iter().position(|(_, len)| *len >= n) {
            let (first, len) = &mut self.free[i];
            let at = *first;
            *first += n;
            *len -= n;
            if *len == 0 {
                self.free.remove(i);
            }
            return at;
        }
        // A free run at the file's end counts towards the new one.
        let at = match self.free.last() {
            Some((first, len)) if first + len == self.rows => {
                let at = *first;
                self.free.pop();
                at
            }
            _ => self.rows,
        };
        self.rows = at + n;
        at
    }

    fn give(&mut self, first: Reg, n: u32) {
        let i = self.free.partition_point(|(f, _)| *f < first);
        self.free.insert(i, (first, n));
        if i + 1 < self.free.len() && first + n == self.free[i + 1].0 {
            self.free[i].1 += self.free.remove(i + 1).1;
        }
        if i > 0 && self.free[i - 1].0 + self.free[i - 1].1 == first {
            self.free[i - 1].1 += self.free.remove(i).1;
        }
    }
}

#[cfg(test)]
mod tests {
    use lathe_dsl::ir::Scalar;

    use super::*;

    fn v(id: u32) -> VReg {
        VReg { id, row: 0 }
    }

    fn fill(id: u32) -> Instr<32, VReg> {
        Instr::Fill { dst: v(id), class: Class::R32, n: 1, bits: id.into() }
    }

    fn mov(dst: u32, a: u32) -> Instr<32, VReg> {
        Instr::Move { dst: v(dst), a: v(a), class: Class::R32, n: 1, masked: false }
    }

    fn rows_of(code: &[Instr<32>]) -> Vec<Vec<u32>> {
        code.iter()
            .map(|i| {
                let mut rows = vec![];
                i.map_regs(|r| rows.push(r));
                rows
            })
            .collect()
    }

    #[test]
    fn a_chain_reuses_rows_but_never_an_operand_s_for_its_result() {
        let code = [fill(0), mov(1, 0), mov(2, 1), mov(3, 2), Instr::End {}];
        let (placed, rows) = place(&code, &[(Class::R32, 1); 4]);
        assert_eq!(rows, [2, 0]);
        for r in &rows_of(&placed)[1..4] {
            assert_ne!(r[0], r[1]);
        }
    }

    #[test]
    fn a_register_from_outside_a_loop_lives_to_its_end() {
        // 0 is read early in the loop; 3 is defined after that and must not take 0's row: the next iteration reads 0.
        let code = [
            fill(0),
            fill(1),
            fill(2),
            Instr::Loop { index: v(1), hi: v(2), ty: Scalar::U32, exit: 7 },
            mov(4, 0),
            fill(3),
            Instr::Next { index: v(1), hi: v(2), ty: Scalar::U32, step: 1, body: 4 },
            Instr::Pop {},
            Instr::End {},
        ];
        let (placed, _) = place(&code, &[(Class::R32, 1); 5]);
        let rows = rows_of(&placed);
        assert_ne!(rows[5][0], rows[0][0]);
    }

    #[test]
    fn free_runs_join_again() {
        let mut f = File::default();
        let (a, b, c) = (f.take(2), f.take(3), f.take(1));
        assert_eq!((a, b, c), (0, 2, 5));
        f.give(a, 2);
        f.give(c, 1);
        f.give(b, 3);
        assert_eq!(f.free, [(0, 6)]);
        assert_eq!(f.take(7), 0);
        assert_eq!(f.rows, 7);
    }
}
