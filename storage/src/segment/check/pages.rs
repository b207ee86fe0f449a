//! A set of pages of a run.

/// A bit for each page of a run.
pub(super) struct PageSet {
    words: Vec<u64>,
    page_count: u32,
}

impl PageSet {
    pub(super) fn new(page_count: u32) -> Self {
        PageSet { words: vec![0; (page_count as usize).div_ceil(64)], page_count }
    }

    /// Adds a page. False if it was there already, or the run has no such page.
    pub(super) fn insert(&mut self, page_no: u32) -> bool {
        if page_no >= self.page_count {
            return false;
        }
        let Some(word) = self.words.get_mut(page_no as usize / 64) else { return false };
        let bit = 1 << (page_no % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    pub(super) fn contains(&self, page_no: u32) -> bool {
        self.words.get(page_no as usize / 64).is_some_and(|word| word & 1 << (page_no % 64) != 0)
    }
}
