//! Reading the server's node trees: lists, tags, walks over expressions and queries.

use std::ffi::c_void;

use pgrx::pg_sys::{self, Node, NodeTag};
use pgrx::prelude::*;

/// The cells of a list; none for a null one.
///
/// # Safety
/// `list` is null or a live list, and stays unchanged while the result is used.
unsafe fn cells<'a>(list: *const pg_sys::List) -> &'a [pg_sys::ListCell] {
    // SAFETY: `elements` holds `length` cells while the list lives.
    unsafe {
        match list.as_ref() {
            Some(list) if list.length > 0 => std::slice::from_raw_parts(list.elements, list.length as usize),
            _ => &[],
        }
    }
}

/// The pointers of a list; empty for a null one.
///
/// # Safety
/// `list` is null or a live list of pointers, of nodes of type `T` where the caller reads them so.
pub unsafe fn pointers<'a, T: 'a>(
    list: *const pg_sys::List,
) -> impl DoubleEndedIterator<Item = *mut T> + ExactSizeIterator + 'a {
    // SAFETY: the caller's promise; every cell of a list of pointers holds one.
    unsafe { cells(list).iter().map(|cell| cell.ptr_value.cast()) }
}

/// The integers of an integer list; empty for a null one.
///
/// # Safety
/// `list` is null or a live list of integers.
pub unsafe fn integers<'a>(list: *const pg_sys::List) -> impl Iterator<Item = i32> + 'a {
    // SAFETY: the caller's promise; every cell of a list of integers holds one.
    unsafe { cells(list).iter().map(|cell| cell.int_value) }
}

/// The OIDs of an OID list; empty for a null one.
///
/// # Safety
/// `list` is null or a live list of OIDs.
pub unsafe fn oids<'a>(list: *const pg_sys::List) -> impl Iterator<Item = pg_sys::Oid> + 'a {
    // SAFETY: the caller's promise; every cell of a list of OIDs holds one.
    unsafe { cells(list).iter().map(|cell| cell.oid_value) }
}

/// A list of these pointers, in the current memory context.
pub fn list_of<T>(pointers: impl IntoIterator<Item = *mut T>) -> *mut pg_sys::List {
    pointers.into_iter().fold(std::ptr::null_mut(), |list, pointer| {
        // SAFETY: appends to a list made here.
        unsafe { pg_sys::lappend(list, pointer.cast()) }
    })
}

/// A list of these integers, in the current memory context.
pub fn list_of_integers(integers: impl IntoIterator<Item = i32>) -> *mut pg_sys::List {
    integers.into_iter().fold(std::ptr::null_mut(), |list, integer| {
        // SAFETY: appends to a list made here.
        unsafe { pg_sys::lappend_int(list, integer) }
    })
}

/// The node as the type of its tag, if it has this tag.
///
/// # Safety
/// `node` is null or points to a live node; `T` is the node type of `tag`.
pub unsafe fn downcast<'a, T>(node: *mut impl Sized, tag: NodeTag) -> Option<&'a mut T> {
    // SAFETY: every node starts with its tag, which tells its type.
    unsafe {
        let head = node.cast::<Node>().as_ref()?;
        (head.type_ == tag).then(|| &mut *node.cast())
    }
}

/// The expression below binary-compatible casts (`varchar` as `text`, a domain as its base type).
///
/// # Safety
/// `node` is null or a live expression.
pub unsafe fn strip_relabel(node: *mut Node) -> *mut Node {
    let mut node = node;
    // SAFETY: the argument of a live node lives as long.
    while let Some(relabel) = unsafe { downcast::<pg_sys::RelabelType>(node, NodeTag::T_RelabelType) } {
        node = relabel.arg.cast();
    }
    node
}

/// The two arguments of an operator's argument list; `None` for another number.
///
/// # Safety
/// `arguments` is null or a live list of expressions.
pub unsafe fn pair(arguments: *const pg_sys::List) -> Option<(*mut Node, *mut Node)> {
    // SAFETY: passed on.
    let mut items = unsafe { pointers::<Node>(arguments) };
    match (items.next(), items.next(), items.next()) {
        (Some(left), Some(right), None) => Some((left, right)),
        _ => None,
    }
}

/// The members of a condition's top-level AND, nested ANDs taken apart; none for a null condition.
///
/// # Safety
/// `condition` is null, a live expression, or a list of such (implicit AND).
pub unsafe fn conjuncts(condition: *mut Node) -> Vec<*mut Node> {
    let mut members = Vec::new();
    // SAFETY: children of live nodes live.
    unsafe { collect_conjuncts(condition, &mut members) };
    members
}

unsafe fn collect_conjuncts(condition: *mut Node, members: &mut Vec<*mut Node>) {
    // SAFETY: as for `conjuncts`.
    unsafe {
        if let Some(expr) = downcast::<pg_sys::BoolExpr>(condition, NodeTag::T_BoolExpr) {
            if expr.boolop == pg_sys::BoolExprType::AND_EXPR {
                pointers(expr.args).for_each(|member| collect_conjuncts(member, members));
                return;
            }
        }
        if let Some(list) = downcast::<pg_sys::List>(condition, NodeTag::T_List) {
            pointers(list).for_each(|member| collect_conjuncts(member, members));
        } else if !condition.is_null() {
            members.push(condition);
        }
    }
}

/// What a walk does after a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// Goes on with the node's children.
    Descend,
    /// Goes on beside the node.
    Skip,
    /// Ends.
    Stop,
}

type Visit<'a> = &'a mut dyn FnMut(*mut Node) -> Walk;

/// Visits a tree of expressions from the top, queries in it included; true if a visit stopped it.
///
/// # Safety
/// `node` is null or a live tree of analysed (not raw) expressions or queries.
pub unsafe fn walk(node: *mut Node, mut visit: Visit<'_>) -> bool {
    // SAFETY: the context is our own reference, used only during the call.
    unsafe { step(node, (&raw mut visit).cast()) }
}

/// Visits what is below a query: its expressions and, where `flags` (QTW_*) do not leave them out, its subqueries.
///
/// # Safety
/// `query` is a live query.
pub unsafe fn walk_query(query: *mut pg_sys::Query, flags: u32, mut visit: Visit<'_>) -> bool {
    // SAFETY: as for `walk`.
    unsafe { pg_sys::query_tree_walker(query, Some(step), (&raw mut visit).cast(), flags as i32) }
}

#[pg_guard]
unsafe extern "C-unwind" fn step(node: *mut Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: `context` is the reference that `walk` or `walk_query` passed in, and `node` a live node.
    unsafe {
        let visit = &mut *context.cast::<Visit<'_>>();
        match visit(node) {
            Walk::Stop => true,
            Walk::Skip => false,
            Walk::Descend if (*node).type_ == NodeTag::T_Query => {
                pg_sys::query_tree_walker(node.cast(), Some(step), context, 0)
            }
            Walk::Descend => pg_sys::expression_tree_walker(node, Some(step), context),
        }
    }
}

/// The members of a set of small integers, ascending.
///
/// # Safety
/// `set` is null or a live bitmapset.
pub unsafe fn members(set: *const pg_sys::Bitmapset) -> impl Iterator<Item = i32> {
    let mut last = -1;
    std::iter::from_fn(move || {
        // SAFETY: the caller keeps the set alive while it iterates.
        last = unsafe { pg_sys::bms_next_member(set, last) };
        (last >= 0).then_some(last)
    })
}
