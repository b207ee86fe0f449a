//! SQL identifiers in the text of options: `sensor_id, "Day"`.

use std::ffi::{c_char, CStr, CString};

use pgrx::pg_sys;

/// One item of a list of identifiers, with what follows the name (`DESC`), folded to lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The name as the catalog has it: unquoted, folded to lower case unless it was quoted.
    pub name: String,
    /// The words after it.
    pub suffix: String,
}

/// Splits `text` at the commas outside quotes and reads each part as an identifier and words after it.
///
/// Identifiers follow PostgreSQL's rules: an unquoted one is folded to lower case, a quoted one is taken as it
/// stands with `""` for a quote. The message of an error says what is wrong, without naming the option.
pub fn parse_list(text: &str) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("it names no column".into());
    }
    loop {
        let (name, after) = take_identifier(rest)?;
        let after = after.trim_start();
        let (words, next) = match after.split_once(',') {
            Some((words, next)) => (words, Some(next)),
            None => (after, None),
        };
        let suffix = words.split_whitespace().map(str::to_ascii_lowercase).collect::<Vec<_>>().join(" ");
        if suffix.contains('"') {
            return Err(format!("there is no comma between two names near \"{}\"", words.trim()));
        }
        items.push(Item { name, suffix });
        match next {
            Some(next) => rest = next.trim_start(),
            None => return Ok(items),
        }
    }
}

/// Reads one identifier off the front of `text`.
fn take_identifier(text: &str) -> Result<(String, &str), String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut name = String::new();
        let mut rest = quoted;
        loop {
            let (part, after) = rest.split_once('"').ok_or_else(|| format!("the quote is not closed in \"{text}\""))?;
            name.push_str(part);
            match after.strip_prefix('"') {
                Some(more) => {
                    name.push('"');
                    rest = more;
                }
                None if name.is_empty() => return Err("a quoted name is empty".into()),
                None => return Ok((name, after)),
            }
        }
    }
    let end = text.find(|c: char| c == ',' || c == '"' || c.is_whitespace()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("\"{word}\" is not a name"));
    }
    Ok((fold(word), rest))
}

/// Folds an unquoted identifier as the server's parser does.
fn fold(word: &str) -> String {
    let length = word.len() as i32;
    let Ok(word) = CString::new(word) else {
        return String::new();
    };
    // SAFETY: the text is NUL-terminated and `length` bytes long; the result is a palloc'ed C string.
    unsafe { owned(pg_sys::downcase_truncate_identifier(word.as_ptr(), length, false)) }
}

/// The name as it is written in SQL, quoted where it must be.
pub fn quote(name: &str) -> String {
    let Ok(name) = CString::new(name) else {
        return String::new();
    };
    // SAFETY: the argument is NUL-terminated; the result is it or a palloc'ed C string.
    unsafe { owned(pg_sys::quote_identifier(name.as_ptr())) }
}

/// Names as a list in SQL.
pub fn quote_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(quote).collect::<Vec<_>>().join(", ")
}

/// A copy of a C string of the server.
///
/// # Safety
/// `text` is null or NUL-terminated.
pub unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for `text`.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
