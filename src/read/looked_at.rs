//! Which segments a scan has looked at.

/// Segments a scan has read from or passed over, by their place among those that its snapshot sees. All processes of a
/// parallel scan have the same snapshot, so that the places of one are those of the others.
#[derive(Clone, Debug, Default)]
pub struct LookedAt {
    /// A cursor was opened on the segment.
    read: Vec<u64>,
    /// The segment has nothing of at least one of the ranges: by its first and last key, or by its filter.
    passed: Vec<u64>,
}

/// Places in a word.
const BITS: usize = u64::BITS as usize;

/// Words for as many places.
pub fn words_for(places: usize) -> usize {
    places.div_ceil(BITS)
}

impl LookedAt {
    /// Notes that a cursor is opened on the segment at `place`.
    pub fn read(&mut self, place: usize) {
        set(&mut self.read, place);
    }

    /// Notes that the segment at `place` is passed over for a range.
    pub fn pass(&mut self, place: usize) {
        set(&mut self.passed, place);
    }

    /// Adds what is noted in words like those of [`LookedAt::words`].
    pub fn add(&mut self, index: usize, read: u64, passed: u64) {
        add(&mut self.read, index, read);
        add(&mut self.passed, index, passed);
    }

    /// Word by word, a bit for each place: what was read, and what was passed over.
    pub fn words(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let word = |words: &[u64], index| words.get(index).copied().unwrap_or(0);
        (0..self.read.len().max(self.passed.len()))
            .map(move |index| (word(&self.read, index), word(&self.passed, index)))
    }

    /// How many segments were read.
    pub fn count_read(&self) -> u64 {
        self.words().map(|(read, _)| u64::from(read.count_ones())).sum()
    }

    /// How many segments were looked at and not read for any range.
    pub fn count_skipped(&self) -> u64 {
        self.words().map(|(read, passed)| u64::from((passed & !read).count_ones())).sum()
    }
}

fn set(words: &mut Vec<u64>, place: usize) {
    add(words, place / BITS, 1 << (place % BITS));
}

fn add(words: &mut Vec<u64>, index: usize, bits: u64) {
    if words.len() <= index {
        words.resize(index + 1, 0);
    }
    words[index] |= bits;
}
