//! The primary key of a cass table, and its rows' keys as order-preserving bytes.

use std::ffi::CStr;

use crate::pg::versions::collations::orders_by_bytes;
use cass_storage::key::{self, KeyReader, Order};
use cass_storage::token::{PartitionKeyBuilder, MAX_PARTITION_KEY_BYTES};
use pgrx::pg_sys::{self, Datum, Oid};

use super::key_layout::KeyLayout;
use crate::error::Report;
use crate::types::{KeyType, TypeError};

/// The token of an empty partition key, which no other key has (`Murmur3Partitioner.MINIMUM`), as keys hold it.
const EMPTY_PARTITION: [u8; 8] = [0; 8];

/// Longest encoded key, in bytes: what an entry of the delta's btree holds beside its other column.
pub const MAX_KEY_BYTES: usize = 2_600;

/// A column of a primary key.
#[derive(Clone, Debug)]
pub struct KeyColumn {
    /// Its number in the table, from 1.
    pub attnum: i16,
    /// Its name.
    pub name: String,
    /// How its values become bytes.
    pub key_type: KeyType,
    /// Its declared type, which may be a domain.
    pub type_oid: Oid,
    /// Type modifier of the type below any domain, -1 if there is none.
    pub typmod: i32,
    /// Its collation; invalid for types that have none.
    pub collation: Oid,
    /// Its declared order; ascending for a partition column.
    pub order: Order,
    /// Whether the bytes' order is the column's order in SQL. False for text whose collation orders otherwise: there
    /// a slice is a filter over the partition, and ORDER BY sorts.
    pub bytewise: bool,
    /// The type below any domain.
    base_type: Oid,
}

/// A row's key as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedKey {
    /// Token, partition columns, clustering columns.
    pub bytes: Vec<u8>,
    /// How many of the bytes are the token and the partition columns.
    pub partition_len: usize,
}

/// The primary key of a cass table.
#[derive(Clone, Debug)]
pub struct TableKey {
    /// The index of access method `cass_key` that declares it.
    pub index_oid: Oid,
    /// Its columns, in primary key order.
    pub columns: Vec<KeyColumn>,
    /// How many leading columns make up the partition key.
    pub partition_columns: usize,
    /// A nonzero number that differs where keys would be encoded differently.
    pub layout: u64,
}

/// Why values cannot be a row's partition key.
enum Misfit<'a> {
    /// The value of this column has no token.
    Value(&'a KeyColumn, TypeError),
    /// The value of this column has this many bytes.
    TooLong(&'a KeyColumn, usize),
}

impl Misfit<'_> {
    fn raise(self) -> ! {
        match self {
            Self::Value(column, error) => column.raise(error),
            Self::TooLong(column, length) => Report::new("54000", "partition key is too long")
                .detail(format!(
                    "The value of column \"{}\" has {length} bytes; {MAX_PARTITION_KEY_BYTES} are the most.",
                    column.name
                ))
                .hint(SHORTER_KEY)
                .raise(),
        }
    }
}

const SHORTER_KEY: &str = "Use a shorter value, or a hash of it, in the primary key.";

impl TableKey {
    /// The key that these columns make, given the layout its options describe.
    pub(super) fn new(index_oid: Oid, mut columns: Vec<KeyColumn>, layout: &KeyLayout) -> Self {
        for (column, order) in columns.iter_mut().zip(&layout.orders) {
            column.order = *order;
        }
        let fingerprint = fingerprint(&columns, layout.partition_columns);
        Self { index_oid, columns, partition_columns: layout.partition_columns, layout: fingerprint }
    }

    /// The columns that place a row.
    pub fn partition(&self) -> &[KeyColumn] {
        self.columns.get(..self.partition_columns).unwrap_or(&self.columns)
    }

    /// The columns that order a row within its partition.
    pub fn clustering(&self) -> &[KeyColumn] {
        self.columns.get(self.partition_columns..).unwrap_or(&[])
    }

    /// Whether the table's column of this number is in the key.
    pub fn is_key_column(&self, attnum: i16) -> bool {
        self.columns.iter().any(|column| column.attnum == attnum)
    }

    /// Token and partition columns as bytes, which every key of the partition starts with.
    ///
    /// `values` are the partition columns' values in key order, none of them NULL. A value that no row can have as
    /// its partition key (-0.0, infinity of a timestamp) is an ERROR.
    pub fn encode_partition(&self, values: &[Datum]) -> Vec<u8> {
        self.place(values).unwrap_or_else(|misfit| misfit.raise())
    }

    /// The same for values to look for: `None` if no row can have a partition key that SQL's `=` holds equal.
    pub fn find_partition(&self, values: &[Datum]) -> Option<Vec<u8>> {
        let of_rows: Vec<Datum> = self
            .partition()
            .iter()
            .zip(values)
            .map(|(column, value)| column.key_type.without_negative_zero(*value))
            .collect();
        match self.place(&of_rows) {
            Ok(bytes) => (!bytes.starts_with(&EMPTY_PARTITION)).then_some(bytes),
            Err(Misfit::Value(column, error)) if error.sqlstate == "XX001" => column.raise(error),
            Err(_) => None,
        }
    }

    /// Token and partition columns as bytes, or why no row can have them.
    fn place(&self, values: &[Datum]) -> Result<Vec<u8>, Misfit<'_>> {
        let partition = self.partition();
        let mut builder = PartitionKeyBuilder::new(partition.len());
        let mut serialized = Vec::new();
        for (column, value) in partition.iter().zip(values) {
            serialized.clear();
            // SAFETY: the caller hands over values of the key's columns, none of them NULL.
            let checked = unsafe {
                column
                    .key_type
                    .check_partition_value(*value)
                    .and_then(|()| column.key_type.serialize(*value, column.typmod, &mut serialized))
            };
            checked.map_err(|error| Misfit::Value(column, error))?;
            builder.push(&serialized).map_err(|_| Misfit::TooLong(column, serialized.len()))?;
        }
        let mut bytes = Vec::with_capacity(64);
        key::put_token(&mut bytes, builder.token());
        for (index, value) in values.iter().take(partition.len()).enumerate() {
            self.encode_component(index, *value, &mut bytes);
        }
        Ok(bytes)
    }

    /// Appends the bytes of a value of the key's column of this index, from 0.
    pub fn encode_component(&self, index: usize, value: Datum, out: &mut Vec<u8>) {
        if let Some(column) = self.columns.get(index) {
            // SAFETY: the caller hands over a value of the column, not NULL.
            if let Err(error) = unsafe { column.key_type.encode_key(value, column.order, out) } {
                column.raise(error);
            }
        }
    }

    /// The key of a row whose values are given by column number less 1.
    ///
    /// NULL in a key column is an ERROR (23502), and so is a key of more than [`MAX_KEY_BYTES`] (54000).
    pub fn encode_row(&self, values: &[Datum], nulls: &[bool]) -> EncodedKey {
        let mut key_values = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let position = column.position();
            match (values.get(position), nulls.get(position)) {
                (Some(value), Some(false)) => key_values.push(*value),
                _ => Report::new("23502", format!("null value in column \"{}\" of the primary key", column.name))
                    .detail("A row is placed by its key, so no part of the key can be null.")
                    .raise(),
            }
        }
        let key = self.encode_values(&key_values);
        if key.bytes.starts_with(&EMPTY_PARTITION) {
            Report::new(
                "22023",
                format!("the partition key of a row may not be empty: column \"{}\"", self.columns[0].name),
            )
            .detail("An empty value alone has no token that a row could have.")
            .hint("Give it a value, or add another column to the partition key: beside others a value may be empty.")
            .raise();
        }
        key
    }

    /// The key of these values of all key columns, in key order, none of them NULL.
    pub fn encode_values(&self, values: &[Datum]) -> EncodedKey {
        let mut bytes = self.encode_partition(values);
        let partition_len = bytes.len();
        for (index, value) in values.iter().enumerate().skip(self.partition_columns) {
            self.encode_component(index, *value, &mut bytes);
        }
        if bytes.len() > MAX_KEY_BYTES {
            Report::new("54000", format!("key of {} bytes exceeds the maximum of {MAX_KEY_BYTES}", bytes.len()))
                .hint(SHORTER_KEY)
                .raise();
        }
        EncodedKey { bytes, partition_len }
    }

    /// Fills in the key columns whose type is exact, by column number less 1, from a row's key; values are allocated
    /// in the current memory context.
    pub fn decode_into(&self, key: &[u8], values: &mut [Datum], nulls: &mut [bool]) {
        let mut reader = KeyReader::new(key);
        if reader.take_token().is_err() {
            self.report_damage();
        }
        for column in &self.columns {
            let position = column.position();
            if let Some(value) = column.take(&mut reader) {
                if let (Some(slot), Some(null)) = (values.get_mut(position), nulls.get_mut(position)) {
                    *slot = value;
                    *null = false;
                }
            }
        }
    }

    /// Length in bytes of the partition's part of a key: the token and the partition columns.
    ///
    /// `None` where the key is too short to be one.
    pub fn partition_len(&self, key: &[u8]) -> Option<usize> {
        let mut reader = KeyReader::new(key);
        reader.take_token().ok()?;
        for column in self.partition() {
            column.key_type.skip_key(&mut reader, column.order).ok()?;
        }
        Some(key.len() - reader.remaining().len())
    }

    /// The key for messages: `sensor_id=s1, day=2026-09-07`.
    pub fn describe(&self, key: &[u8]) -> String {
        let mut reader = KeyReader::new(key);
        if reader.take_token().is_err() {
            return "(damaged key)".into();
        }
        let mut parts = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let start = reader.remaining();
            let text = match column.take(&mut reader) {
                Some(value) => column.output(value),
                None => {
                    let length = start.len().saturating_sub(reader.remaining().len());
                    start.iter().take(length).map(|byte| format!("{byte:02x}")).collect()
                }
            };
            parts.push(format!("{}={text}", column.name));
        }
        parts.join(", ")
    }

    fn report_damage(&self) -> ! {
        Report::new("XX001", "damaged key in a cass table")
            .detail(format!("It is too short to be a key of index {}.", self.index_oid.to_u32()))
            .raise()
    }
}

impl KeyColumn {
    /// The column of a table's descriptor, in ascending order; `None` if its type cannot be in a key.
    pub(super) fn of(attribute: &pg_sys::FormData_pg_attribute) -> Option<Self> {
        let mut typmod = attribute.atttypmod;
        // SAFETY: a catalog look-up of the type of a live column.
        let base_type = unsafe { pg_sys::getBaseTypeAndTypmod(attribute.atttypid, &mut typmod) };
        let key_type = KeyType::of(base_type)?;
        let collation = attribute.attcollation;
        let bytewise = collation == Oid::INVALID || orders_by_bytes(collation);
        // SAFETY: attname of a catalog row is NUL-terminated.
        let name = unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) }.to_string_lossy().into_owned();
        Some(Self {
            attnum: attribute.attnum,
            name,
            key_type,
            type_oid: attribute.atttypid,
            typmod,
            collation,
            order: Order::Ascending,
            bytewise,
            base_type,
        })
    }

    /// Its index in arrays of the table's columns.
    fn position(&self) -> usize {
        usize::from(self.attnum.unsigned_abs()).saturating_sub(1)
    }

    /// Takes this column's value off the key; `None` if the encoding does not give the value back.
    fn take(&self, reader: &mut KeyReader<'_>) -> Option<Datum> {
        let taken = if self.key_type.is_exact() {
            self.key_type.decode_key(reader, self.order).map(Some)
        } else {
            self.key_type.skip_key(reader, self.order).map(|()| None)
        };
        taken.unwrap_or_else(|error| self.raise(error))
    }

    /// Raises what is wrong with a value of this column.
    fn raise(&self, error: TypeError) -> ! {
        let message = format!("{} in key column \"{}\"", error.message, self.name);
        TypeError { message, ..error }.report().raise()
    }

    /// The value as its type's output function writes it.
    fn output(&self, value: Datum) -> String {
        let mut function = Oid::INVALID;
        let mut is_varlena = false;
        // SAFETY: the datum is a value of this type.
        unsafe {
            pg_sys::getTypeOutputInfo(self.type_oid, &mut function, &mut is_varlena);
            super::identifier::owned(pg_sys::OidOutputFunctionCall(function, value))
        }
    }
}

/// FNV-1a over what the encoding of keys depends on, never 0.
fn fingerprint(columns: &[KeyColumn], partition_columns: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |number: u64| {
        for byte in number.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(partition_columns as u64);
    for column in columns {
        add(u64::from(column.attnum.unsigned_abs()));
        add(u64::from(column.base_type.to_u32()));
        add(u64::from(column.typmod.cast_unsigned()));
        add(u64::from(column.order == Order::Descending));
    }
    hash.max(1)
}
