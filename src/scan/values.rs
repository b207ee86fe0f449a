//! Values of bounds: evaluated when a scan starts, and brought to the key column's type.

use pgrx::pg_sys::{self, Datum, Oid};

use super::clause::is_integer;

/// A value as the key column's type has it.
#[derive(Clone, Copy, Debug)]
pub enum Fitted {
    Value(Datum),
    /// Less than every value of the column's type.
    BelowAll,
    /// Greater than every value of the column's type.
    AboveAll,
}

/// Brings a value of type `from` to type `to`. Integers are range-checked, all other types are the same already.
pub fn fit(value: Datum, from: Oid, to: Oid) -> Fitted {
    if from == to || !is_integer(from) || !is_integer(to) {
        return Fitted::Value(value);
    }
    let number = to_i64(value, from);
    let (least, greatest) = match to {
        pg_sys::INT2OID => (i64::from(i16::MIN), i64::from(i16::MAX)),
        pg_sys::INT4OID => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if number < least {
        Fitted::BelowAll
    } else if number > greatest {
        Fitted::AboveAll
    } else {
        Fitted::Value(match to {
            pg_sys::INT2OID => Datum::from(number as i16),
            pg_sys::INT4OID => Datum::from(number as i32),
            _ => Datum::from(number),
        })
    }
}

/// An integer datum of type smallint, integer or bigint as a number.
pub fn to_i64(value: Datum, type_oid: Oid) -> i64 {
    match type_oid {
        pg_sys::INT2OID => i64::from(value.value() as i16),
        pg_sys::INT4OID => i64::from(value.value() as i32),
        _ => value.value() as i64,
    }
}

/// The base type of a domain, or the type itself.
pub fn base_type(type_oid: Oid) -> Oid {
    // SAFETY: a catalog look-up by OID.
    unsafe { pg_sys::getBaseType(type_oid) }
}

/// An expression's value in this context: `None` for NULL. Memory of the value belongs to the current context.
///
/// # Safety
/// `state` was compiled for the plan node of `context`.
pub unsafe fn evaluate(state: *mut pg_sys::ExprState, context: *mut pg_sys::ExprContext) -> Option<Datum> {
    let mut is_null = false;
    // SAFETY: the caller's promise.
    let value = unsafe { pg_sys::ExecEvalExpr(state, context, &mut is_null) };
    (!is_null).then_some(value)
}

/// The elements of an array that are not NULL, with their type.
///
/// # Safety
/// `array` is a datum of an array type.
pub unsafe fn array_elements(array: Datum) -> (Vec<Datum>, Oid) {
    // SAFETY: DETOAST gives a plain array; deconstruct_array fills arrays of `count` elements.
    unsafe {
        let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        let element_type = (*array).elemtype;
        let (mut length, mut by_value, mut align) = (0, false, 0);
        pg_sys::get_typlenbyvalalign(element_type, &mut length, &mut by_value, &mut align);
        let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        pg_sys::deconstruct_array(
            array,
            element_type,
            i32::from(length),
            by_value,
            align,
            &mut values,
            &mut nulls,
            &mut count,
        );
        let elements = (0..count as usize).filter(|index| !*nulls.add(*index)).map(|index| *values.add(index));
        (elements.collect(), element_type)
    }
}
