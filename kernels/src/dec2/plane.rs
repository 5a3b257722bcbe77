//! Feature planes: e4m3 codes of a pixel's channels, 32 at a time.
//!
//! A cell is the 32 codes of one pixel in eight words, word `4h + t` as [`word_k`] has them: a word of a
//! plane is a word of an A quad. Cells lie by rows of pixels, planes one behind the other.

use super::fragment::{STEP, word_k};
use super::geometry::Extents;

/// Words of a cell.
pub const CELL_WORDS: u32 = 8;

/// Codes of a word.
const WORD: u32 = 4;

/// Where an image's features lie.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlaneLayout {
    /// Width and height in pixels.
    pub extents: Extents,
    /// Planes of 32 channels.
    pub planes: u32,
}

/// Data whose length is not the layout's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{planes} planes of {extents} have {expected} codes, not {found}", planes = layout.planes, extents = layout.extents)]
pub struct PlaneError {
    layout: PlaneLayout,
    expected: u64,
    found: usize,
}

impl PlaneLayout {
    /// `channels` is rounded up to whole planes of 32.
    pub const fn new(extents: Extents, channels: u32) -> Self {
        Self { extents, planes: channels.div_ceil(STEP) }
    }

    /// Bytes of all planes.
    pub const fn bytes(&self) -> u64 {
        self.words() * WORD as u64
    }

    /// Words of all planes.
    pub const fn words(&self) -> u64 {
        self.extents.pixels() * (CELL_WORDS * self.planes) as u64
    }

    /// Index of word `word` of a pixel's cell in a plane; all must be inside.
    pub const fn word(&self, plane: u32, x: u32, y: u32, word: u32) -> u64 {
        let cell = (plane as u64 * self.extents.y as u64 + y as u64) * self.extents.x as u64 + x as u64;
        cell * CELL_WORDS as u64 + word as u64
    }

    /// Offset of a pixel's channel, in bytes.
    pub const fn byte(&self, channel: u32, x: u32, y: u32) -> u64 {
        let c = channel % STEP;
        let (word, byte) = (4 * ((c >> 3) & 1) + ((c >> 1) & 3), 2 * (c >> 4) + (c & 1));
        self.word(channel / STEP, x, y, word) * WORD as u64 + byte as u64
    }

    /// Channel that byte `byte` of word `word` of a plane's cell holds.
    pub const fn channel(plane: u32, word: u32, byte: u32) -> u32 {
        STEP * plane + word_k(word & 3, word >> 2, byte)
    }

    /// The planes of codes `[y][x][channel]`.
    ///
    /// # Errors
    /// `dense` has another length.
    pub fn pack(&self, dense: &[u8]) -> Result<Vec<u8>, PlaneError> {
        self.check(dense)?;
        let mut planes = vec![0; dense.len()];
        self.each(|at, place| planes[at] = dense[place]);
        Ok(planes)
    }

    /// The codes `[y][x][channel]` of planes.
    ///
    /// # Errors
    /// `planes` has another length.
    pub fn unpack(&self, planes: &[u8]) -> Result<Vec<u8>, PlaneError> {
        self.check(planes)?;
        let mut dense = vec![0; planes.len()];
        self.each(|at, place| dense[place] = planes[at]);
        Ok(dense)
    }

    fn check(&self, codes: &[u8]) -> Result<(), PlaneError> {
        let expected = self.bytes();
        if codes.len() as u64 == expected {
            Ok(())
        } else {
            Err(PlaneError { layout: *self, expected, found: codes.len() })
        }
    }

    /// Each code's offset in planes and in dense order.
    fn each(&self, mut f: impl FnMut(usize, usize)) {
        let channels = self.planes * STEP;
        let mut place = 0;
        for y in 0..self.extents.y {
            for x in 0..self.extents.x {
                for channel in 0..channels {
                    f(self.byte(channel, x, y) as usize, place);
                    place += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_the_channels_that_a_quad_word_does() {
        let mut all = vec![];
        for word in 0..CELL_WORDS {
            let channels: Vec<_> = (0..4).map(|byte| PlaneLayout::channel(0, word, byte)).collect();
            let first = 8 * (word >> 2) + 2 * (word & 3);
            assert_eq!(channels, [first, first + 1, first + 16, first + 17]);
            all.extend(channels);
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..32));
    }

    #[test]
    fn every_byte_has_one_channel_of_one_pixel() {
        for (x, y, channels) in [(1, 1, 32), (3, 2, 96), (5, 7, 128)] {
            let layout = PlaneLayout::new(Extents::new(x, y), channels);
            assert_eq!(layout.bytes(), u64::from(x * y * channels));
            let mut seen = vec![false; layout.bytes() as usize];
            for (px, py, plane, word) in (0..x).flat_map(|px| {
                (0..y).flat_map(move |py| (0..channels / 32).flat_map(move |q| (0..8).map(move |w| (px, py, q, w))))
            }) {
                let index = layout.word(plane, px, py, word);
                assert_eq!(index, u64::from(plane * 8 * x * y + 8 * x * py + 8 * px + word));
                for byte in 0..4 {
                    let at = layout.byte(PlaneLayout::channel(plane, word, byte), px, py);
                    assert_eq!(at, 4 * index + u64::from(byte));
                    assert!(!std::mem::replace(&mut seen[at as usize], true));
                }
            }
            assert!(seen.into_iter().all(|s| s));
        }
        assert_eq!(PlaneLayout::new(Extents::new(320, 184), 96).bytes(), 5_652_480);
    }

    #[test]
    fn packing_leads_back_and_wrong_lengths_are_told() {
        let layout = PlaneLayout::new(Extents::new(3, 2), 96);
        let dense: Vec<u8> = (0..576u32).map(|i| (i * 7 % 251) as u8).collect();
        let planes = layout.pack(&dense).unwrap();
        assert_eq!(planes[0], dense[0]);
        assert_eq!(planes[2], dense[16]);
        assert_eq!(planes[16], dense[8]);
        assert_eq!(planes[32], dense[96]);
        assert_ne!(planes, dense);
        assert_eq!(layout.unpack(&planes).unwrap(), dense);
        assert_eq!(layout.pack(&dense[1..]).unwrap_err().to_string(), "3 planes of 3×2 have 576 codes, not 575");
        assert_eq!(layout.unpack(&[]).unwrap_err().to_string(), "3 planes of 3×2 have 576 codes, not 0");
    }
}
