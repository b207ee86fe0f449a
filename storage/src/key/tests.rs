//! Properties that hold for every key column type: byte order is value order, and reading gives the value back.

use std::cmp::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Ascending), Just(Order::Descending)]
}

fn in_order(order: Order, ascending: Ordering) -> Ordering {
    if order == Order::Descending {
        ascending.reverse()
    } else {
        ascending
    }
}

/// Asserts for two values that their encodings order as `expected`, and that what follows does not matter:
/// no encoding is a prefix of another value's.
fn assert_order(
    left: &dyn Fn(&mut Vec<u8>, Order),
    right: &dyn Fn(&mut Vec<u8>, Order),
    order: Order,
    expected: Ordering,
) {
    let encode = |put: &dyn Fn(&mut Vec<u8>, Order), next: &[u8]| {
        let mut key = Vec::new();
        put(&mut key, order);
        key.extend_from_slice(next);
        key
    };
    let expected = in_order(order, expected);
    assert_eq!(encode(left, &[]).cmp(&encode(right, &[])), expected);
    if expected != Ordering::Equal {
        assert_eq!(encode(left, &[0xff; 4]).cmp(&encode(right, &[0; 4])), expected);
        assert_eq!(encode(left, &[0; 4]).cmp(&encode(right, &[0xff; 4])), expected);
    }
}

macro_rules! plain_type {
    ($($test:ident, $strategy:expr, $put:ident, $take:ident;)*) => {$(
        proptest! {
            #[test]
            fn $test(a in $strategy, b in $strategy, order in orders()) {
                assert_order(&|out, order| $put(out, a, order), &|out, order| $put(out, b, order), order, a.cmp(&b));
                let mut key = Vec::new();
                $put(&mut key, a, order);
                $put(&mut key, b, order);
                let mut reader = KeyReader::new(&key);
                prop_assert_eq!(reader.$take(order).unwrap(), a);
                prop_assert_eq!(reader.$take(order).unwrap(), b);
                prop_assert!(reader.remaining().is_empty());
            }
        }
    )*};
}

plain_type! {
    bool_keys_order_and_read_back, any::<bool>(), put_bool, take_bool;
    i8_keys_order_and_read_back, any::<i8>(), put_i8, take_i8;
    i16_keys_order_and_read_back, any::<i16>(), put_i16, take_i16;
    i32_keys_order_and_read_back, any::<i32>(), put_i32, take_i32;
    i64_keys_order_and_read_back, any::<i64>(), put_i64, take_i64;
}

/// PostgreSQL's order of floats.
fn float_order(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).unwrap(),
    }
}

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        any::<f32>().prop_map(f64::from),
        Just(0.0),
        Just(-0.0),
        Just(f64::NAN),
        Just(-f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY)
    ]
}

/// Byte strings rich in zeros and 0xff, and in common prefixes.
fn tricky_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0u8), Just(1u8), Just(0xffu8), Just(0xfeu8), any::<u8>()], 0..8)
}

/// The value of two's complement bytes.
fn as_i128(bytes: &[u8]) -> i128 {
    let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
    bytes.iter().fold(sign, |value, byte| value << 8 | i128::from(*byte))
}

/// A small decimal: its value times 10000^8, and its parts.
fn decimals() -> impl Strategy<Value = (i128, bool, i32, Vec<u16>)> {
    let digit = prop_oneof![Just(0u16), Just(1), Just(9999), 0u16..10_000];
    (any::<bool>(), -3i32..=0, vec(digit, 0..5)).prop_map(|(negative, weight, digits)| {
        let value: i128 = digits
            .iter()
            .enumerate()
            .map(|(i, digit)| i128::from(*digit) * 10_000i128.pow((8 + weight - i as i32) as u32))
            .sum();
        (if negative { -value } else { value }, negative, weight, digits)
    })
}

proptest! {
    #[test]
    fn f64_keys_order_as_in_postgresql(a in floats(), b in floats(), order in orders()) {
        assert_order(&|out, order| put_f64(out, a, order), &|out, order| put_f64(out, b, order), order, float_order(a, b));
        let mut key = Vec::new();
        put_f64(&mut key, a, order);
        let back = KeyReader::new(&key).take_f64(order).unwrap();
        prop_assert_eq!(float_order(back, a), Ordering::Equal);
        prop_assert!(back != 0.0 || back.is_sign_positive());
    }

    #[test]
    fn f32_keys_order_as_in_postgresql(a in floats(), b in floats(), order in orders()) {
        let (a, b) = (a as f32, b as f32);
        let expected = float_order(a.into(), b.into());
        assert_order(&|out, order| put_f32(out, a, order), &|out, order| put_f32(out, b, order), order, expected);
        let mut key = Vec::new();
        put_f32(&mut key, a, order);
        prop_assert_eq!(float_order(KeyReader::new(&key).take_f32(order).unwrap().into(), a.into()), Ordering::Equal);
    }

    #[test]
    fn byte_string_keys_order_and_read_back(a in tricky_bytes(), b in tricky_bytes(), order in orders()) {
        assert_order(&|out, order| put_bytes(out, &a, order), &|out, order| put_bytes(out, &b, order), order, a.cmp(&b));
        let mut key = Vec::new();
        put_bytes(&mut key, &a, order);
        put_bytes(&mut key, &b, order);
        let mut reader = KeyReader::new(&key);
        prop_assert_eq!(reader.take_bytes(order).unwrap().into_owned(), a);
        prop_assert_eq!(reader.take_bytes(order).unwrap().into_owned(), b);
        prop_assert!(reader.remaining().is_empty());
    }

    #[test]
    fn fixed_keys_order_and_read_back(a in any::<[u8; 5]>(), b in any::<[u8; 5]>(), order in orders()) {
        assert_order(&|out, order| put_fixed(out, &a, order), &|out, order| put_fixed(out, &b, order), order, a.cmp(&b));
        let mut key = Vec::new();
        put_fixed(&mut key, &a, order);
        prop_assert_eq!(KeyReader::new(&key).take_fixed::<5>(order).unwrap(), a);
    }

    #[test]
    fn timeuuid_keys_order_by_time_then_signed_bytes(a in any::<[u8; 16]>(), b in any::<[u8; 16]>(), same_time in any::<bool>(), order in orders()) {
        let mut b = b;
        if same_time {
            b[..8].copy_from_slice(&a[..8]);
        }
        let weight = |uuid: &[u8; 16]| {
            let (high, middle, low) = (&uuid[6..8], &uuid[4..6], &uuid[0..4]);
            let rest: Vec<i8> = uuid[8..].iter().map(|byte| *byte as i8).collect();
            ([high, middle, low].concat(), rest)
        };
        assert_order(&|out, order| put_timeuuid(out, &a, order), &|out, order| put_timeuuid(out, &b, order), order, weight(&a).cmp(&weight(&b)));
        let mut key = Vec::new();
        put_timeuuid(&mut key, &a, order);
        prop_assert_eq!(KeyReader::new(&key).take_timeuuid(order).unwrap(), a);
    }

    #[test]
    fn varint_keys_order_and_read_back(a in vec(any::<u8>(), 0..14), b in vec(any::<u8>(), 0..14), sign_bytes in 0usize..3, order in orders()) {
        let sign = if b.first().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
        let b = [vec![sign; sign_bytes], b].concat();
        assert_order(&|out, order| put_varint(out, &a, order), &|out, order| put_varint(out, &b, order), order, as_i128(&a).cmp(&as_i128(&b)));
        let mut key = Vec::new();
        put_varint(&mut key, &a, order);
        let back = KeyReader::new(&key).take_varint(order).unwrap();
        prop_assert_eq!(as_i128(&back), as_i128(&a));
        prop_assert_eq!(back.as_slice(), minimal_twos_complement(&a));
    }

    #[test]
    fn long_varint_keys_order_by_length(lengths in (100usize..300, 100usize..300), negative in any::<bool>(), order in orders()) {
        let number = |length: usize| vec![if negative { 0x80 } else { 0x7f }; length];
        let (a, b) = (number(lengths.0), number(lengths.1));
        let expected = if negative { b.len().cmp(&a.len()) } else { a.len().cmp(&b.len()) };
        assert_order(&|out, order| put_varint(out, &a, order), &|out, order| put_varint(out, &b, order), order, expected);
        let mut key = Vec::new();
        put_varint(&mut key, &a, order);
        prop_assert_eq!(KeyReader::new(&key).take_varint(order).unwrap(), a);
    }

    #[test]
    fn decimal_keys_order_by_value(a in decimals(), b in decimals(), order in orders()) {
        let put = |(_, negative, weight, digits): &(i128, bool, i32, Vec<u16>), out: &mut Vec<u8>, order| {
            put_decimal(out, Decimal::Finite { negative: *negative, weight: *weight, digits }, order);
        };
        assert_order(&|out, order| put(&a, out, order), &|out, order| put(&b, out, order), order, a.0.cmp(&b.0));
        let mut key = Vec::new();
        put(&a, &mut key, order);
        let length = key.len();
        put_i16(&mut key, 7, order);
        let mut reader = KeyReader::new(&key);
        prop_assert_eq!(reader.skip_decimal(order).unwrap().len(), length);
        prop_assert_eq!(reader.take_i16(order).unwrap(), 7);
    }

    #[test]
    fn prefix_successor_bounds_exactly_the_prefix(prefix in vec(prop_oneof![Just(0xffu8), any::<u8>()], 0..4), other in vec(any::<u8>(), 0..6)) {
        let Some(successor) = prefix_successor(&prefix) else {
            prop_assert!(prefix.iter().all(|byte| *byte == 0xff));
            return Ok(());
        };
        let inside = other >= prefix && other < successor;
        prop_assert_eq!(inside, other.starts_with(&prefix));
        prop_assert!([prefix.as_slice(), &[0xff; 9]].concat() < successor);
    }

    #[test]
    fn damaged_keys_are_errors_and_never_panics(key in vec(any::<u8>(), 0..24), order in orders()) {
        let mut reader = KeyReader::new(&key);
        let _ = reader.take_bytes(order);
        let _ = reader.take_varint(order);
        let _ = reader.skip_decimal(order);
        let _ = reader.take_bool(order);
        let _ = reader.take_f64(order);
        let _ = reader.take_timeuuid(order);
        prop_assert!(key.ends_with(reader.remaining()));
    }
}

#[test]
fn decimal_special_values_order_as_in_postgresql() {
    let digits = [1u16];
    let ascending = [
        Decimal::NegativeInfinity,
        Decimal::Finite { negative: true, weight: 32_767, digits: &digits },
        Decimal::Finite { negative: true, weight: -16_383, digits: &digits },
        Decimal::Finite { negative: true, weight: 5, digits: &[0, 0] },
        Decimal::Finite { negative: false, weight: -16_383, digits: &digits },
        Decimal::Finite { negative: false, weight: 32_767, digits: &digits },
        Decimal::PositiveInfinity,
        Decimal::NaN,
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            for order in [Order::Ascending, Order::Descending] {
                assert_order(
                    &|out, order| put_decimal(out, *a, order),
                    &|out, order| put_decimal(out, *b, order),
                    order,
                    i.cmp(&j),
                );
            }
        }
    }
}

#[test]
fn tokens_lead_a_key_in_numeric_order() {
    let encode = |token| {
        let mut key = Vec::new();
        put_token(&mut key, token);
        key
    };
    let tokens = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
    assert!(tokens.windows(2).all(|pair| encode(pair[0]) < encode(pair[1])));
    assert!(tokens.iter().all(|token| get_token(&encode(*token)).unwrap() == *token));
    assert!(get_token(&[1, 2, 3]).is_err());
}
