//! Which segments to merge next.
//!
//! A key's newest version is in the segment with the highest sequence, so only neighbours in sequence order
//! may be merged: what lies between two merged segments would otherwise end up above or below both.
//!
//! The policy is size-tiered over such windows. A window of at least [`FAN_IN`] neighbours is merged if none
//! of them is larger than all others together. Each merge thus at least doubles what holds any one row, so a
//! row is rewritten a logarithmic number of times; and where no window qualifies, sizes fall geometrically from
//! the largest segment to either side, so their number is logarithmic too.
//!
//! Where that leaves several, neighbours that are together small enough are merged all the same: every read looks
//! into each of them, and writing them again costs little. A merge of this kind writes no more than the limit, once
//! for each segment that a flush adds. Autovacuum flushes a fifth of a table or more, so that a table below the limit
//! is written about five times for each change to it.

/// Segments merged at least at a time.
pub const FAN_IN: usize = 4;
/// Segments merged at most at a time, so that the merge's memory and its key comparisons stay small.
pub const MAX_INPUTS: usize = 32;
/// Segments count as at least this large: below it the cost of having one more outweighs its bytes.
const MIN_BYTES: u64 = 1 << 20;

/// What the policy needs to know of a committed segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Sequences the segment stands for, both inclusive. A merged segment has the union of its inputs'.
    pub sequence_low: u64,
    /// See `sequence_low`.
    pub sequence_high: u64,
    /// Size on disk.
    pub bytes: u64,
    /// Written by a bulk load, whose rows some snapshots may not see yet.
    pub bulk: bool,
    /// The segment's list row is visible to everyone.
    pub visible_to_all: bool,
    /// Smallest key in it.
    pub min_key: Vec<u8>,
    /// Largest key in it.
    pub max_key: Vec<u8>,
}

impl SegmentInfo {
    /// A bulk segment may be merged only once everybody sees it.
    fn may_be_merged(&self) -> bool {
        !self.bulk || self.visible_to_all
    }

    fn overlaps(&self, other: &SegmentInfo) -> bool {
        self.min_key <= other.max_key && other.min_key <= self.max_key
    }
}

/// The segments to merge next, as indexes into `segments` in ascending order of sequence, or `None` if merging
/// is not worth its cost. Neighbours of `eager_bytes` together are always worth it. `segments` must be all committed
/// segments of the table, those not visible to everyone included, in any order.
pub fn choose(segments: &[SegmentInfo], eager_bytes: u64) -> Option<Vec<usize>> {
    let order = in_sequence(segments);
    let window = choose_tiered(segments, &order).or_else(|| choose_small(segments, &order, eager_bytes));
    window.map(<[usize]>::to_vec)
}

/// The window whose merge is the cheapest way to have one segment less, of those that the size-tiered policy allows.
fn choose_tiered<'a>(segments: &[SegmentInfo], order: &'a [usize]) -> Option<&'a [usize]> {
    let mut best: Option<(u64, &[usize])> = None;
    for start in 0..order.len() {
        let (mut total, mut largest) = (0u64, 0u64);
        for end in start..order.len().min(start + MAX_INPUTS) {
            let segment = &segments[order[end]];
            if !segment.may_be_merged() {
                break;
            }
            let bytes = segment.bytes.max(MIN_BYTES);
            total = total.saturating_add(bytes);
            largest = largest.max(bytes);
            let count = end - start + 1;
            if count < FAN_IN || largest > total - largest {
                continue;
            }
            let cost = total / (count as u64 - 1);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, &order[start..=end]));
            }
        }
    }
    best.map(|(_, window)| window)
}

/// The longest window of at least two neighbours that are together no larger than `limit`.
fn choose_small<'a>(segments: &[SegmentInfo], order: &'a [usize], limit: u64) -> Option<&'a [usize]> {
    let mut best: &[usize] = &[];
    for start in 0..order.len() {
        let mut total = 0u64;
        for end in start..order.len().min(start + MAX_INPUTS) {
            let segment = &segments[order[end]];
            total = total.saturating_add(segment.bytes);
            if !segment.may_be_merged() || total > limit {
                break;
            }
            if end - start + 1 > best.len() {
                best = &order[start..=end];
            }
        }
    }
    (best.len() > 1).then_some(best)
}

/// All segments that may be merged into one, for a full compaction: the longest windows of neighbours, each
/// with at least two segments.
pub fn choose_all(segments: &[SegmentInfo]) -> Vec<Vec<usize>> {
    let order = in_sequence(segments);
    order
        .split(|index| !segments[*index].may_be_merged())
        .filter(|window| window.len() > 1)
        .map(<[usize]>::to_vec)
        .collect()
}

/// Whether a merge of `chosen` may drop tombstones: no segment outside it that is older can hold a key they
/// hide. A tombstone dropped while an older segment has its key would bring the row back.
pub fn may_drop_tombstones(segments: &[SegmentInfo], chosen: &[usize]) -> bool {
    segments.iter().enumerate().filter(|(index, _)| !chosen.contains(index)).all(|(_, outside)| {
        chosen
            .iter()
            .filter_map(|index| segments.get(*index))
            .all(|inside| outside.sequence_low > inside.sequence_high || !outside.overlaps(inside))
    })
}

fn in_sequence(segments: &[SegmentInfo]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_by_key(|index| segments[*index].sequence_low);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn segment(sequence: u64, megabytes: u64) -> SegmentInfo {
        SegmentInfo {
            sequence_low: sequence,
            sequence_high: sequence,
            bytes: megabytes * MB,
            bulk: false,
            visible_to_all: true,
            min_key: vec![0],
            max_key: vec![255],
        }
    }

    fn sizes(megabytes: &[u64]) -> Vec<SegmentInfo> {
        megabytes.iter().zip(1..).map(|(size, sequence)| segment(sequence, *size)).collect()
    }

    #[test]
    fn fewer_than_four_segments_stay() {
        assert_eq!(choose(&sizes(&[5, 5, 5]), 0), None);
        assert_eq!(choose(&[], 0), None);
    }

    #[test]
    fn equal_neighbours_are_merged_in_order_of_sequence() {
        let mut segments = sizes(&[5, 5, 5, 5]);
        segments.reverse();
        assert_eq!(choose(&segments, 0), Some(vec![3, 2, 1, 0]));
    }

    #[test]
    fn a_large_segment_is_not_rewritten_for_small_ones() {
        assert_eq!(choose(&sizes(&[100, 1, 1, 1]), 0), None);
        assert_eq!(choose(&sizes(&[100, 1, 1, 1, 1]), 0), Some(vec![1, 2, 3, 4]));
    }

    #[test]
    fn a_bulk_segment_not_visible_to_all_is_not_merged_nor_jumped_over() {
        let mut segments = sizes(&[2, 2, 2, 2, 2, 2]);
        segments[3].bulk = true;
        segments[3].visible_to_all = false;
        assert_eq!(choose(&segments, 0), None);
        assert_eq!(choose_all(&segments), vec![vec![0, 1, 2], vec![4, 5]]);
        segments[3].visible_to_all = true;
        assert_eq!(choose(&segments, 0).map(|window| window.len()), Some(6));
    }

    #[test]
    fn tombstones_go_only_with_the_oldest_segment_that_overlaps() {
        let mut segments = sizes(&[9, 2, 2]);
        assert!(!may_drop_tombstones(&segments, &[1, 2]));
        assert!(may_drop_tombstones(&segments, &[0, 1]));
        segments[0].max_key = vec![9];
        segments[1].min_key = vec![10];
        segments[2].min_key = vec![10];
        assert!(may_drop_tombstones(&segments, &[1, 2]));
    }

    #[test]
    fn neighbours_below_the_limit_are_merged_however_few_they_are() {
        assert_eq!(choose(&sizes(&[3, 1]), 4 * MB), Some(vec![0, 1]));
        assert_eq!(choose(&sizes(&[3, 2]), 4 * MB), None);
        assert_eq!(choose(&sizes(&[4]), 4 * MB), None);
        assert_eq!(choose(&sizes(&[9, 2, 1, 1]), 4 * MB), Some(vec![1, 2, 3]));
        assert_eq!(choose(&sizes(&[1, 1, 9, 1, 1]), 4 * MB), Some(vec![0, 1]));
    }

    #[test]
    fn the_limit_does_not_reach_over_a_bulk_segment_that_is_not_visible_to_all() {
        let mut segments = sizes(&[1, 1, 1]);
        segments[1].bulk = true;
        segments[1].visible_to_all = false;
        assert_eq!(choose(&segments, 4 * MB), None);
        segments[1].visible_to_all = true;
        assert_eq!(choose(&segments, 4 * MB), Some(vec![0, 1, 2]));
    }

    /// What became of a table after `flushes`, whose sizes are given: the largest number of segments there were after a
    /// VACUUM, bytes written by merges, and the largest number of bytes that one VACUUM wrote.
    struct Course {
        segments: Vec<SegmentInfo>,
        most: usize,
        written: u64,
        written_at_once: u64,
    }

    /// Flushes one segment after another; where `overwriting`, a merge keeps only as much as its largest input has.
    fn run(flushes: impl Iterator<Item = u64>, eager_bytes: u64, overwriting: bool) -> Course {
        let mut course = Course { segments: Vec::new(), most: 0, written: 0, written_at_once: 0 };
        for (bytes, sequence) in flushes.zip(1..) {
            let segments = &mut course.segments;
            segments.push(SegmentInfo { bytes, ..segment(sequence, 0) });
            let mut at_once = 0;
            while let Some(window) = choose(segments, eager_bytes) {
                let sizes = window.iter().map(|index| segments[*index].bytes);
                let bytes = if overwriting { sizes.max().unwrap_or(0) } else { sizes.sum() };
                at_once += bytes;
                let merged = SegmentInfo {
                    sequence_low: segments[window[0]].sequence_low,
                    sequence_high: segments[window[window.len() - 1]].sequence_high,
                    bytes,
                    ..segment(0, 0)
                };
                let mut index = 0;
                segments.retain(|_| {
                    index += 1;
                    !window.contains(&(index - 1))
                });
                segments.push(merged);
            }
            course.most = course.most.max(segments.len());
            course.written += at_once;
            course.written_at_once = course.written_at_once.max(at_once);
        }
        course
    }

    #[test]
    fn any_number_of_flushes_leaves_few_segments_and_rewrites_little() {
        for eager_bytes in [0, 4 * MB] {
            let course = run((1..=5000).map(|number| (1 + number % 3) * MB), eager_bytes, false);
            let total: u64 = course.segments.iter().map(|segment| segment.bytes).sum();
            assert!(course.most <= 24, "{} segments", course.most);
            assert!(course.written <= 12 * total, "{} bytes written for {total}", course.written);
        }
    }

    #[test]
    fn a_small_table_that_is_overwritten_again_and_again_stays_one_segment() {
        let course = run([2 * MB].into_iter().chain([MB / 2; 100]), 4 * MB, true);
        assert_eq!(course.most, 1);
        assert!(course.written <= 100 * 2 * MB, "{} bytes written", course.written);
    }

    #[test]
    fn tiny_flushes_never_have_a_vacuum_write_more_than_the_limit_beyond_the_tiers() {
        let flushes = || [8192; 20_000].into_iter();
        let (tiered, eager) = (run(flushes(), 0, false), run(flushes(), 4 * MB, false));
        assert!(eager.most < tiered.most, "{} segments, {} in tiers", eager.most, tiered.most);
        let more = eager.written.saturating_sub(tiered.written);
        assert!(more <= 20_000 * 2 * MB, "{more} bytes more");
        assert!(eager.written_at_once <= tiered.written_at_once.max(4 * MB) * 2, "{}", eager.written_at_once);
    }
}
