//! Every token that Cassandra is known to give, from bytes serialised here by the types' definitions; also the
//! two whose time is finer than PostgreSQL's, which no SQL test can write.

use cass_storage::integer::Integer;
use cass_storage::token::PartitionKeyBuilder;

const TOKENS: &str = include_str!("../../pg_test/data/tokens.csv");

/// The fields of one line of the file: types, values, token.
fn fields(line: &str) -> (Vec<String>, Vec<String>, i64) {
    let (rest, token) = line.rsplit_once(',').unwrap();
    let start = rest.find("\"[").unwrap();
    let types = rest[..start].trim_matches(['"', ',']).split(',').map(str::to_owned).collect();
    let json = rest[start..].trim_matches('"').replace("\"\"", "\"");
    let values = json.trim_matches(['[', ']']).split(", ").map(|value| value[1..value.len() - 1].to_owned()).collect();
    (types, values, token.parse().unwrap())
}

fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

/// Days since 1970 of a Gregorian date written year-month-day.
fn days(date: &str) -> i64 {
    let parts: Vec<i64> = date.split('-').map(|part| part.parse().unwrap()).collect();
    let (year, month) = if parts[1] > 2 { (parts[0], parts[1] - 3) } else { (parts[0] - 1, parts[1] + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + parts[2] - 1 - 719_468
}

/// Nanoseconds of a time written hours:minutes:seconds.fraction.
fn nanoseconds(time: &str) -> i64 {
    let (whole, fraction) = time.split_once('.').unwrap();
    let seconds = whole.split(':').fold(0, |seconds, part| seconds * 60 + part.parse::<i64>().unwrap());
    seconds * 1_000_000_000 + format!("{fraction:0<9}").parse::<i64>().unwrap()
}

fn decimal(text: &str) -> Vec<u8> {
    let (digits, exponent) = text.split_once("E+").map_or((text, 0), |(digits, e)| (digits, e.parse().unwrap()));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let unscaled = Integer::from_decimal(&format!("{whole}{fraction}")).unwrap();
    let scale = fraction.len() as i32 - exponent;
    [scale.to_be_bytes().to_vec(), unscaled.to_twos_complement()].concat()
}

fn serialize(cql_type: &str, text: &str) -> Vec<u8> {
    match cql_type {
        "tinyint" => text.parse::<i8>().unwrap().to_be_bytes().to_vec(),
        "smallint" => text.parse::<i16>().unwrap().to_be_bytes().to_vec(),
        "int" => text.parse::<i32>().unwrap().to_be_bytes().to_vec(),
        "bigint" => text.parse::<i64>().unwrap().to_be_bytes().to_vec(),
        "varint" => Integer::from_decimal(text).unwrap().to_twos_complement(),
        "decimal" => decimal(text),
        "float" => text.parse::<f32>().unwrap().to_be_bytes().to_vec(),
        "double" => text.parse::<f64>().unwrap().to_be_bytes().to_vec(),
        "boolean" => vec![u8::from(text == "true")],
        "text" => text.as_bytes().to_vec(),
        "blob" => hex(&text[2..]),
        "uuid" | "timeuuid" => hex(&text.replace('-', "")),
        "timestamp" => {
            let (date, time) = text.trim_end_matches("+0000").split_once(' ').unwrap();
            (days(date) * 86_400_000 + nanoseconds(time) / 1_000_000).to_be_bytes().to_vec()
        }
        "date" => ((days(text) + (1 << 31)) as u32).to_be_bytes().to_vec(),
        "time" => nanoseconds(text).to_be_bytes().to_vec(),
        "inet" => match text.parse().unwrap() {
            std::net::IpAddr::V4(address) => address.octets().to_vec(),
            std::net::IpAddr::V6(address) => address.octets().to_vec(),
        },
        other => panic!("no such type: {other}"),
    }
}

#[test]
fn every_known_token_comes_from_the_serialised_values() {
    let mut compared = 0;
    for line in TOKENS.lines().skip(1) {
        let (types, values, token) = fields(line);
        assert_eq!(types.len(), values.len(), "{line}");
        let mut key = PartitionKeyBuilder::new(types.len());
        for (cql_type, text) in types.iter().zip(&values) {
            key.push(&serialize(cql_type, text)).unwrap();
        }
        assert_eq!(key.token(), token, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 150);
}
