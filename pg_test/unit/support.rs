//! What several tests need: running statements, and looking at the error one ends in.

use pgrx::prelude::*;

/// Runs statements that must succeed.
pub fn run(sql: &str) {
    if let Err(error) = Spi::run(sql) {
        panic!("{sql}: {error}");
    }
}

/// Gives the test a schema of its own, so that tests running at once do not wait for each other's names.
pub fn own_schema() {
    let schema = format!("own_{}", text("SELECT pg_backend_pid()::text"));
    run(&format!("CREATE SCHEMA {schema}; SET LOCAL search_path = {schema}, public"));
}

/// The one value that a query gives.
pub fn value<T: FromDatum + IntoDatum>(sql: &str) -> Option<T> {
    match Spi::get_one::<T>(sql) {
        Ok(value) => value,
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// The one text that a query gives; anything can be cast to text.
pub fn text(sql: &str) -> String {
    value::<String>(sql).unwrap_or_else(|| panic!("{sql} gave null"))
}

/// The error of a statement that must fail, as a client sees it: SQLSTATE, message, DETAIL, HINT, each ended
/// by `|`. The statement's work is undone.
pub fn error_of(sql: &str) -> String {
    run(r"CREATE OR REPLACE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE detail text; hint text;
        BEGIN
          EXECUTE statement;
          RETURN 'no error';
        EXCEPTION WHEN OTHERS THEN
          GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
          RETURN format('%s|%s|%s|%s', SQLSTATE, SQLERRM, detail, hint);
        END $$");
    match Spi::get_one_with_args::<String>("SELECT pg_temp.error_of($1)", &[sql.into()]) {
        Ok(Some(error)) => error,
        other => panic!("{sql}: {other:?}"),
    }
}

/// The SQLSTATE of a statement that must fail.
pub fn sqlstate_of(sql: &str) -> String {
    error_of(sql).chars().take_while(|character| *character != '|').collect()
}

/// Rows of a CSV file, its heading left out; fields may be quoted.
pub fn csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let (mut row, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !quoted => {}
            other => field.push(other),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows.remove(0);
    rows
}

/// The texts in a JSON array.
pub fn json_texts(json: &str) -> Vec<String> {
    match Spi::get_one_with_args::<Vec<String>>(
        "SELECT array(SELECT jsonb_array_elements_text($1::jsonb))",
        &[json.into()],
    ) {
        Ok(Some(texts)) => texts,
        other => panic!("{json}: {other:?}"),
    }
}

/// What a statement returns in its first column: the values as text joined by blanks, `null` for NULL.
pub fn rows(sql: &str) -> String {
    first_column(sql).join(" ")
}

/// The lines of a query's plan, without costs, joined by `|`.
pub fn plan(sql: &str) -> String {
    explain("COSTS off", sql)
}

/// The lines of a query's plan, joined by `|`.
pub fn explain(options: &str, sql: &str) -> String {
    first_column(&format!("EXPLAIN ({options}) {sql}")).join("|")
}

fn first_column(sql: &str) -> Vec<String> {
    Spi::connect_mut(|client| {
        if let Err(error) = client.update(sql, None, &[]) {
            panic!("{sql}: {error}");
        }
        // SAFETY: SPI's result of the last statement is null or `numvals` rows; SPI_getvalue gives null or a C string.
        unsafe {
            let table = pg_sys::SPI_tuptable;
            let count = table.as_ref().map_or(0, |table| table.numvals as usize);
            let value = |index| {
                let value = pg_sys::SPI_getvalue(*(*table).vals.add(index), (*table).tupdesc, 1);
                if value.is_null() {
                    "null".into()
                } else {
                    std::ffi::CStr::from_ptr(value).to_string_lossy().into_owned()
                }
            };
            (0..count).map(value).collect()
        }
    })
}
