//! Which segments to merge next.
//!
//! A key's newest version is in the segment with the highest sequence, so only neighbours in sequence order
//! may be merged: what lies between two merged segments would otherwise end up above or below both.
//!
//! The policy is size-tiered over such windows. A window of at least [`FAN_IN`] neighbours is merged if none
//! of them is larger than all others together. Each merge thus at least doubles what holds any one row, so a
//! row is rewritten a logarithmic number of times; and where no window qualifies, sizes fall geometrically from
//! the largest segment to either side, so their number is logarithmic too.

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
/// is not worth its cost. `segments` must be all committed segments of the table, those not visible to everyone
/// included, in any order.
pub fn choose(segments: &[SegmentInfo]) -> Option<Vec<usize>> {
    let order = in_sequence(segments);
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
            // The cheapest way to have one segment less.
            let cost = total / (count as u64 - 1);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, &order[start..=end]));
            }
        }
    }
    best.map(|(_, window)| window.to_vec())
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
        assert_eq!(choose(&sizes(&[5, 5, 5])), None);
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn equal_neighbours_are_merged_in_order_of_sequence() {
        let mut segments = sizes(&[5, 5, 5, 5]);
        segments.reverse();
        assert_eq!(choose(&segments), Some(vec![3, 2, 1, 0]));
    }

    #[test]
    fn a_large_segment_is_not_rewritten_for_small_ones() {
        assert_eq!(choose(&sizes(&[100, 1, 1, 1])), None);
        assert_eq!(choose(&sizes(&[100, 1, 1, 1, 1])), Some(vec![1, 2, 3, 4]));
    }

    #[test]
    fn a_bulk_segment_not_visible_to_all_is_not_merged_nor_jumped_over() {
        let mut segments = sizes(&[2, 2, 2, 2, 2, 2]);
        segments[3].bulk = true;
        segments[3].visible_to_all = false;
        assert_eq!(choose(&segments), None);
        assert_eq!(choose_all(&segments), vec![vec![0, 1, 2], vec![4, 5]]);
        segments[3].visible_to_all = true;
        assert_eq!(choose(&segments).map(|window| window.len()), Some(6));
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
    fn any_number_of_flushes_leaves_few_segments_and_rewrites_little() {
        let mut segments: Vec<SegmentInfo> = Vec::new();
        let (mut written, mut most) = (0, 0);
        for sequence in 1..=5000 {
            segments.push(segment(sequence, 1 + sequence % 3));
            while let Some(window) = choose(&segments) {
                let bytes: u64 = window.iter().map(|index| segments[*index].bytes).sum();
                written += bytes;
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
            most = most.max(segments.len());
        }
        let total: u64 = segments.iter().map(|segment| segment.bytes).sum();
        assert!(most <= 24, "{most} segments");
        assert!(written <= 12 * total, "{written} bytes written for {total}");
    }
}
