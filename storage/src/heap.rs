//! A binary heap of indexes whose order the caller knows: the order changes as inputs advance, which the
//! standard library's heap does not allow.

/// Makes a heap of `heap`; `before(a, b)` says whether `a` belongs above `b`.
pub(crate) fn heapify(heap: &mut [usize], before: impl Fn(usize, usize) -> bool) {
    for at in (0..heap.len() / 2).rev() {
        sift_down(heap, at, &before);
    }
}

/// Moves what lies at `at` down to where it belongs.
pub(crate) fn sift_down(heap: &mut [usize], mut at: usize, before: impl Fn(usize, usize) -> bool) {
    loop {
        let mut first = at;
        for child in 2 * at + 1..(2 * at + 3).min(heap.len()) {
            if before(heap[child], heap[first]) {
                first = child;
            }
        }
        if first == at {
            return;
        }
        heap.swap(at, first);
        at = first;
    }
}
