//! SET ACCESS METHOD: a table and its primary key become cass, or heap again, in one transaction.

use pgrx::pg_sys::{self, Oid};
use pgrx::Spi;

use super::frame::{self, Statement};
use super::utility::{Call, Remainder};
use super::{alter_table, create_table, key_index, nodes, object_access, option_list, publication};
use crate::catalog::access_method;
use crate::catalog::identifier::{owned, quote, quote_list};
use crate::catalog::primary_key::{self, qualified_name, relation_name, PrimaryKey};
use crate::error::{keeping_sqlstate, Report};

/// OID of the catalog pg_constraint, which pgrx's bindings leave out.
const CONSTRAINT_RELATION_ID: u32 = 2606;

/// Makes a table of another access method cass.
///
/// The key goes first, as a rewrite would build its index anew as what it is; the rewrite keeps rows unplaced; adding
/// the key again places them.
///
/// # Safety
/// `statement` is in memory of our own and names the table, which is locked.
pub(super) unsafe fn to_cass(call: &Call, statement: *mut pg_sys::AlterTableStmt, table: Oid) -> Remainder {
    check_convertible(table);
    // SAFETY: the caller vouches for the statement, whose commands are AlterTableCmd, and which stands in memory that
    // lives until it ends.
    unsafe {
        let mut commands = nodes::members::<pg_sys::AlterTableCmd>((*statement).cmds);
        let options = alter_table::take_options(&mut commands).set;
        let (keys, rest) = split_keys(commands);
        let old = primary_key::primary_key_of(table);
        if let Some(old) = &old {
            key_index::check_declaration(!old.immediate, old.includes);
            old.columns.iter().for_each(|column| key_index::check_named_column(table, column));
        }
        let name = quote(&relation_name(table));
        if old.is_none() && keys.is_empty() && !options.is_empty() {
            option_list::refuse_without_key(&name, &options);
        }
        let declaration = old.as_ref().map(Declaration::of);
        let drops_old = old.as_ref().is_some_and(|old| drops(&rest, &old.name));
        if let (Some(old), false) = (&old, drops_old) {
            drop_key(table, old);
        }
        (*statement).cmds = nodes::list(rest);
        let call = *call;
        frame::begin(Statement::AlterTable, Vec::new(), move |_| {
            publication::warn_of_publications(table);
            match declaration {
                _ if !keys.is_empty() => add_keys(&call, statement, keys, &options),
                Some(declaration) if !drops_old => declaration.add(table, &options),
                _ if !options.is_empty() => option_list::refuse_without_key(&name, &options),
                _ => create_table::unplaced_notice(&name),
            }
        });
    }
    Remainder::RunFrame
}

/// Makes a cass table one of another access method.
///
/// The rewrite reads rows by the key that they are kept under, so it comes before the key's exchange.
///
/// # Safety
/// `statement` is in memory of our own and names the table, which is locked.
pub(super) unsafe fn from_cass(call: &Call, statement: *mut pg_sys::AlterTableStmt, table: Oid) -> Remainder {
    // SAFETY: the caller vouches for the statement, whose commands are AlterTableCmd, and which stands in memory that
    // lives until it ends.
    unsafe {
        let commands = nodes::members::<pg_sys::AlterTableCmd>((*statement).cmds);
        let (keys, rest) = split_keys(commands);
        let old = primary_key::primary_key_of(table);
        let declaration = old.as_ref().map(Declaration::of);
        (*statement).cmds = nodes::list(rest);
        let call = *call;
        frame::begin(Statement::AlterTable, Vec::new(), move |_| {
            if let (Some(old), Some(declaration)) = (old, declaration) {
                drop_key(table, &old);
                declaration.add(table, &[]);
            }
            if !keys.is_empty() {
                add_keys(&call, statement, keys, &[]);
            }
        });
    }
    Remainder::RunFrame
}

/// Takes the commands that add a primary key out: they come after the change of access method.
///
/// # Safety
/// `commands` are valid nodes.
unsafe fn split_keys(
    commands: Vec<*mut pg_sys::AlterTableCmd>,
) -> (Vec<*mut pg_sys::AlterTableCmd>, Vec<*mut pg_sys::AlterTableCmd>) {
    // SAFETY: the caller vouches for the nodes.
    commands.into_iter().partition(|command| unsafe { alter_table::primary_key_in(*command).is_some() })
}

/// Whether the commands themselves drop the constraint of this name.
///
/// # Safety
/// `commands` are valid nodes.
unsafe fn drops(commands: &[*mut pg_sys::AlterTableCmd], constraint: &str) -> bool {
    // SAFETY: the caller vouches for the nodes; a name is null or a C string.
    commands.iter().any(|command| unsafe {
        (**command).subtype == pg_sys::AlterTableType::AT_DropConstraint && owned((**command).name) == constraint
    })
}

/// Runs the commands that add a primary key, in a statement of their own.
///
/// # Safety
/// `statement` is in memory of our own; `keys` are its commands.
unsafe fn add_keys(
    call: &Call,
    statement: *mut pg_sys::AlterTableStmt,
    keys: Vec<*mut pg_sys::AlterTableCmd>,
    options: &[(String, String)],
) {
    // SAFETY: the caller vouches for the nodes; the statement is run as a part of the user's, through all hooks.
    unsafe {
        if let (Some(key), false) = (keys.first(), options.is_empty()) {
            if let Some(constraint) = alter_table::primary_key_in(*key) {
                let own = option_list::of_constraint((*constraint).options);
                (*constraint).options = option_list::to_list(&option_list::join(options.to_vec(), own));
            }
        }
        (*statement).cmds = nodes::list(keys);
        keeping_sqlstate(|| {
            pg_sys::ProcessUtility(
                call.statement,
                call.query,
                false,
                pg_sys::ProcessUtilityContext::PROCESS_UTILITY_SUBCOMMAND,
                call.parameters,
                call.environment,
                pg_sys::None_Receiver,
                std::ptr::null_mut(),
            );
        });
    }
}

fn drop_key(table: Oid, key: &PrimaryKey) {
    alter_table::execute(&format!("ALTER TABLE {} DROP CONSTRAINT {}", qualified_name(table), quote(&key.name)));
}

/// What of a primary key must be said again after its exchange.
struct Declaration {
    name: String,
    columns: Vec<String>,
    tablespace: Option<String>,
    replica_identity: bool,
    index_comment: Option<String>,
    constraint_comment: Option<String>,
}

impl Declaration {
    fn of(key: &PrimaryKey) -> Self {
        // SAFETY: catalog look-ups by OID, whose results are null or palloc'ed C strings.
        let (index_comment, constraint_comment, tablespace) = unsafe {
            let comment = |object, class| {
                let text = pg_sys::GetComment(object, class, 0);
                (!text.is_null()).then(|| owned(text))
            };
            let tablespace =
                access_method::with_class_row(key.index, |form| form.reltablespace).unwrap_or(Oid::INVALID);
            (
                comment(key.index, pg_sys::RelationRelationId),
                comment(key.constraint, Oid::from(CONSTRAINT_RELATION_ID)),
                (tablespace != Oid::INVALID).then(|| owned(pg_sys::get_tablespace_name(tablespace))),
            )
        };
        Self {
            name: key.name.clone(),
            columns: key.columns.clone(),
            tablespace,
            replica_identity: key.replica_identity,
            index_comment,
            constraint_comment,
        }
    }

    /// Adds the key to the table, whose access method says what kind of index it gets.
    fn add(&self, table_oid: Oid, options: &[(String, String)]) {
        let table = qualified_name(table_oid);
        let key = quote(&self.name);
        let tablespace =
            self.tablespace.as_ref().map(|name| format!(" USING INDEX TABLESPACE {}", quote(name))).unwrap_or_default();
        alter_table::execute(&format!(
            "ALTER TABLE {table} ADD CONSTRAINT {key} PRIMARY KEY ({}){}{tablespace}",
            quote_list(self.columns.iter().map(String::as_str)),
            option_list::to_sql("WITH", options),
        ));
        if self.replica_identity {
            alter_table::execute(&format!("ALTER TABLE {table} REPLICA IDENTITY USING INDEX {key}"));
        }
        if let Some(comment) = &self.constraint_comment {
            let comment = option_list::quote_literal(comment);
            alter_table::execute(&format!("COMMENT ON CONSTRAINT {key} ON {table} IS {comment}"));
        }
        if let (Some(comment), Some(key)) = (&self.index_comment, primary_key::primary_key_of(table_oid)) {
            let (index, comment) = (qualified_name(key.index), option_list::quote_literal(comment));
            alter_table::execute(&format!("COMMENT ON INDEX {index} IS {comment}"));
        }
    }
}

/// Refuses what a table that is to become cass must not have.
fn check_convertible(table: Oid) {
    let kind = access_method::with_class_row(table, |form| form.relkind as u8);
    if kind == Some(pg_sys::RELKIND_MATVIEW) {
        Report::new("0A000", "a materialized view cannot use access method cass")
            .hint("Create a table with CREATE TABLE AS and add its primary key.")
            .raise();
    }
    let persistence = access_method::with_class_row(table, |form| form.relpersistence as u8);
    if persistence == Some(pg_sys::RELPERSISTENCE_UNLOGGED) {
        create_table::refuse_unlogged(&relation_name(table));
    }
    let name = quote(&relation_name(table));
    let referenced = count(&format!(
        "SELECT count(*) FROM pg_catalog.pg_constraint WHERE contype = 'f' AND confrelid = {}",
        table.to_u32()
    ));
    if referenced > 0 {
        alter_table::refuse_reference(table);
    }
    let related = count(&format!(
        "SELECT count(*) FROM pg_catalog.pg_inherits WHERE {0} IN (inhrelid, inhparent)",
        table.to_u32()
    ));
    if related > 0 {
        Report::new("0A000", format!("table {name} cannot be part of an inheritance tree or a partition"))
            .detail("A parent's primary key is no key of access method cass_key.")
            .hint("Detach the table first: ALTER TABLE ... NO INHERIT, or DETACH PARTITION.")
            .raise();
    }
    let summaries = count(&format!(
        "SELECT count(*) FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
         WHERE i.indrelid = {} AND c.relam = {}",
        table.to_u32(),
        pg_sys::BRIN_AM_OID.to_u32()
    ));
    if summaries > 0 {
        object_access::refuse_brin(table);
    }
    let published =
        count(&format!("SELECT count(*) FROM pg_catalog.pg_publication_rel WHERE prrelid = {}", table.to_u32()));
    if published > 0 {
        Report::new("0A000", format!("cannot publish table {name}"))
            .detail("Logical replication does not see the changes of cass tables.")
            .hint("Take the table out of its publications first: ALTER PUBLICATION ... DROP TABLE.")
            .raise();
    }
}

fn count(sql: &str) -> i64 {
    match keeping_sqlstate(|| Spi::get_one::<i64>(sql)) {
        Ok(count) => count.unwrap_or_default(),
        Err(error) => Report::new("XX000", format!("could not run \"{sql}\": {error}")).raise(),
    }
}
