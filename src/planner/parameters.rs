//! Parameters of a statement that the planner must not fold into its conditions.
//!
//! A custom plan knows the parameters' values: `$1 IS NULL OR c = $1` becomes `c = 5` in it, or nothing, while the
//! generic plan keeps it whole; and `v = $1` vanishes where `$1` is NULL. So that a query gets one verdict always,
//! such parameters stay parameters while it is planned (they still serve estimates).

use std::collections::BTreeSet;

use pgrx::pg_sys::{self, Node, NodeTag, ParamKind};

use crate::pg::nodes::{downcast, walk, Walk};

/// How the parameters of a statement are used in its conditions.
#[derive(Debug, Default)]
pub struct ParameterUse {
    /// Operands of a comparison with a column.
    compared: BTreeSet<i32>,
    /// Those whose value can make a condition vanish or change its form.
    forming: BTreeSet<i32>,
}

impl ParameterUse {
    /// Reads one member of a condition.
    ///
    /// # Safety
    /// `member` is a live expression.
    pub unsafe fn read(&mut self, member: *mut Node) {
        let mut parameters = Vec::new();
        let (mut has_column, mut changes_form) = (false, false);
        // SAFETY: passed on.
        unsafe {
            let is_comparison = matches!((*member).type_, NodeTag::T_OpExpr | NodeTag::T_ScalarArrayOpExpr);
            walk(member, &mut |node| {
                match (*node).type_ {
                    // Its conditions are read by themselves.
                    NodeTag::T_Query => return Walk::Skip,
                    NodeTag::T_Var => has_column = true,
                    NodeTag::T_BoolExpr
                    | NodeTag::T_NullTest
                    | NodeTag::T_BooleanTest
                    | NodeTag::T_CaseExpr
                    | NodeTag::T_CoalesceExpr
                    | NodeTag::T_MinMaxExpr
                    | NodeTag::T_NullIfExpr
                    | NodeTag::T_DistinctExpr => changes_form = true,
                    _ => {}
                }
                if let Some(parameter) = downcast::<pg_sys::Param>(node, NodeTag::T_Param) {
                    if parameter.paramkind == ParamKind::PARAM_EXTERN {
                        parameters.push(parameter.paramid);
                    }
                }
                Walk::Descend
            });
            let plain = is_comparison && has_column && !changes_form;
            if plain { &mut self.compared } else { &mut self.forming }.extend(parameters);
        }
    }

    /// The parameters to plan with: `values`, with those kept from folding that could change a verdict.
    ///
    /// # Safety
    /// `values` is null or the live parameters of the statement.
    pub unsafe fn keep_from_folding(&self, values: pg_sys::ParamListInfo) -> pg_sys::ParamListInfo {
        if values.is_null() || (self.compared.is_empty() && self.forming.is_empty()) {
            return values;
        }
        // SAFETY: the caller's promise; the copy is as long as the original, which `fetch` does not exceed.
        unsafe {
            let count = (*values).numParams;
            let kept = |number: i32, value: &pg_sys::ParamExternData| {
                self.forming.contains(&number) || (value.isnull && self.compared.contains(&number))
            };
            let fetched: Vec<pg_sys::ParamExternData> = (1..=count).map(|number| fetch(values, number)).collect();
            if !(1..).zip(&fetched).any(|(number, value)| kept(number, value)) {
                return values;
            }
            let copy = pg_sys::makeParamList(count);
            let places = (*copy).params.as_mut_slice(count as usize);
            for ((number, mut value), place) in (1..).zip(fetched).zip(places) {
                if kept(number, &value) {
                    value.pflags &= !(pg_sys::PARAM_FLAG_CONST as u16);
                }
                *place = value;
            }
            copy
        }
    }
}

/// A parameter's value, from the hook of parameters that are fetched only when needed.
unsafe fn fetch(values: pg_sys::ParamListInfo, number: i32) -> pg_sys::ParamExternData {
    // SAFETY: `number` is from 1 to the number of parameters; the hook takes a work area of ours.
    unsafe {
        match (*values).paramFetch {
            Some(hook) => {
                let mut area = pg_sys::ParamExternData::default();
                *pg_sys::ffi::pg_guard_ffi_boundary(|| hook(values, number, true, &mut area))
            }
            None => (*values).params.as_slice((*values).numParams as usize)[number as usize - 1],
        }
    }
}
