//! ALTER TABLE and ALTER INDEX.

use std::ffi::CStr;

use pgrx::pg_sys::{self, AlterTableType, ConstrType, NodeTag, ObjectType, Oid};
use pgrx::Spi;

use super::frame::{self, Statement};
use super::utility::{Call, Remainder};
use super::{conversion, create_table, key_index, nodes, option_list};
use crate::catalog;
use crate::catalog::access_method::{KEY_ACCESS_METHOD, TABLE_ACCESS_METHOD};
use crate::catalog::identifier::{owned, quote};
use crate::catalog::primary_key::{self, relation_name, PrimaryKey};
use crate::delta::tablespace;
use crate::error::{keeping_sqlstate, Report};

/// ALTER TABLE, ALTER INDEX, ALTER TYPE of a composite type, and others of the same shape.
pub(super) fn alter(call: &mut Call) -> Remainder {
    let statement: *mut pg_sys::AlterTableStmt = call.take_copy();
    // SAFETY: the hook dispatches by the node's tag, and the copy is ours to change.
    unsafe {
        match (*statement).objtype {
            ObjectType::OBJECT_TABLE | ObjectType::OBJECT_INDEX | ObjectType::OBJECT_MATVIEW => {
                let lock = pg_sys::AlterTableGetLockLevel((*statement).cmds);
                match pg_sys::AlterTableLookupRelation(statement, lock) {
                    Oid::INVALID => Remainder::Run,
                    relid => alter_relation(call, statement, relid),
                }
            }
            // Its columns are those of the tables made of it.
            ObjectType::OBJECT_TYPE => {
                frame::begin(Statement::Other, Vec::new(), drop);
                Remainder::RunFrame
            }
            _ => Remainder::Run,
        }
    }
}

/// What a statement does to access methods, as seen from cass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    ToCass,
    FromCass,
}

/// # Safety
/// `statement` is in memory of our own and names the relation, which is locked.
unsafe fn alter_relation(call: &Call, statement: *mut pg_sys::AlterTableStmt, relid: Oid) -> Remainder {
    // SAFETY: the caller vouches for the statement, whose commands are AlterTableCmd.
    unsafe {
        let commands = nodes::members::<pg_sys::AlterTableCmd>((*statement).cmds);
        refuse_foreign_keys(&commands);
        let is_cass = catalog::is_cass_oid(relid);
        let change = change(&commands, is_cass);
        if is_cass {
            refuse_key_changes(relid, &commands);
        } else if change == Change::None {
            if catalog::is_cass_key_oid(relid) {
                check_index_options(relid, &commands);
            }
            return Remainder::Run;
        }
        match change {
            Change::ToCass => conversion::to_cass(call, statement, relid),
            Change::FromCass => conversion::from_cass(call, statement, relid),
            Change::None => alter_cass_table(statement, relid),
        }
    }
}

/// # Safety
/// `commands` are valid nodes.
unsafe fn change(commands: &[*mut pg_sys::AlterTableCmd], is_cass: bool) -> Change {
    for command in commands {
        // SAFETY: the caller vouches for the nodes; the command's name is the access method's.
        unsafe {
            if (**command).subtype == AlterTableType::AT_SetAccessMethod && !(**command).name.is_null() {
                return match (is_cass, CStr::from_ptr((**command).name) == TABLE_ACCESS_METHOD) {
                    (false, true) => Change::ToCass,
                    (true, false) => Change::FromCass,
                    _ => Change::None,
                };
            }
        }
    }
    Change::None
}

/// Refuses foreign keys that reference a cass table.
///
/// # Safety
/// `commands` are valid nodes.
unsafe fn refuse_foreign_keys(commands: &[*mut pg_sys::AlterTableCmd]) {
    // SAFETY: the caller vouches for the nodes.
    unsafe {
        for constraint in commands.iter().flat_map(|command| constraints_of(*command)) {
            if (*constraint).contype != ConstrType::CONSTR_FOREIGN {
                continue;
            }
            let Some(table) = nodes::find_relation((*constraint).pktable) else {
                continue;
            };
            if catalog::is_cass_oid(table) {
                refuse_reference(table);
            }
        }
    }
}

/// The error of a foreign key that references a cass table.
pub(super) fn refuse_reference(table: Oid) -> ! {
    Report::new("0A000", format!("a foreign key cannot reference cass table \"{}\"", relation_name(table)))
        .detail("PostgreSQL 15 looks referenced keys up in a btree, and a cass table's primary key is none.")
        .hint("Leave out REFERENCES, or keep the referenced table as heap.")
        .raise()
}

/// The constraints that a command adds, with a column or without.
///
/// # Safety
/// `command` is a valid node.
unsafe fn constraints_of(command: *mut pg_sys::AlterTableCmd) -> Vec<*mut pg_sys::Constraint> {
    // SAFETY: the caller vouches for the node; what its definition is follows from its subtype.
    unsafe {
        let definition = (*command).def;
        match (*command).subtype {
            AlterTableType::AT_AddConstraint if nodes::is(definition, NodeTag::T_Constraint) => {
                vec![definition.cast()]
            }
            AlterTableType::AT_AddColumn if nodes::is(definition, NodeTag::T_ColumnDef) => {
                nodes::members((*definition.cast::<pg_sys::ColumnDef>()).constraints)
            }
            _ => Vec::new(),
        }
    }
}

/// The primary key that a command adds, if it adds one.
///
/// # Safety
/// `command` is a valid node.
pub(super) unsafe fn primary_key_in(command: *mut pg_sys::AlterTableCmd) -> Option<*mut pg_sys::Constraint> {
    // SAFETY: the caller vouches for the node.
    unsafe {
        constraints_of(command).into_iter().find(|constraint| (**constraint).contype == ConstrType::CONSTR_PRIMARY)
    }
}

/// Refuses commands that take the primary key of a cass table away or give a key column another type.
///
/// # Safety
/// `commands` are valid nodes.
unsafe fn refuse_key_changes(table: Oid, commands: &[*mut pg_sys::AlterTableCmd]) {
    let Some(key) = primary_key::primary_key_of(table) else {
        return;
    };
    for command in commands {
        // SAFETY: the caller vouches for the nodes; a name is null or a C string.
        let (subtype, name) = unsafe { ((**command).subtype, owned((**command).name)) };
        match subtype {
            AlterTableType::AT_DropConstraint if name == key.name => frame::refuse_dropped_key(table),
            AlterTableType::AT_DropColumn if key.columns.contains(&name) => refuse_column_change(&key, &name, "drop"),
            AlterTableType::AT_AlterColumnType if key.columns.contains(&name) => {
                refuse_column_change(&key, &name, "change the type of");
            }
            _ => {}
        }
    }
}

/// The error of a statement that would drop a key column or change its values.
pub(super) fn refuse_column_change(key: &PrimaryKey, column: &str, verb: &str) -> ! {
    Report::new("0A000", format!("cannot {verb} column \"{column}\", which is in the primary key of a cass table"))
        .detail(format!(
            "Rows are placed and ordered by ({}).",
            catalog::identifier::quote_list(key.columns.iter().map(String::as_str))
        ))
        .hint("Create a table with the new key and copy the rows: INSERT INTO ... SELECT.")
        .raise()
}

/// ALTER INDEX SET / RESET of a `cass_key` index.
///
/// # Safety
/// `commands` are valid nodes.
unsafe fn check_index_options(index: Oid, commands: &[*mut pg_sys::AlterTableCmd]) {
    // SAFETY: a catalog look-up; the caller vouches for the nodes, whose definition is a list of DefElem.
    unsafe {
        let table = pg_sys::IndexGetRelation(index, false);
        for command in commands {
            match (**command).subtype {
                AlterTableType::AT_SetRelOptions => {
                    let pairs = option_list::of_constraint((**command).def.cast());
                    key_index::check_change(index, table, &pairs, &[]);
                }
                AlterTableType::AT_ResetRelOptions => {
                    let names = option_list::of_constraint((**command).def.cast());
                    let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
                    key_index::check_change(index, table, &[], &names);
                }
                _ => {}
            }
        }
    }
}

/// Options that a statement's SET and RESET name.
#[derive(Default)]
pub(super) struct OptionChanges {
    pub set: Vec<(String, String)>,
    pub reset: Vec<String>,
}

/// Takes the cass table's own options out of the commands; a command that is then empty goes.
///
/// # Safety
/// `commands` are nodes of our own.
pub(super) unsafe fn take_options(commands: &mut Vec<*mut pg_sys::AlterTableCmd>) -> OptionChanges {
    let mut changes = OptionChanges::default();
    // SAFETY: the caller vouches for the nodes; the definition of SET and RESET is a list of DefElem.
    commands.retain(|command| unsafe {
        let subtype = (**command).subtype;
        if ![AlterTableType::AT_SetRelOptions, AlterTableType::AT_ResetRelOptions].contains(&subtype) {
            return true;
        }
        let (rest, own) = option_list::split((**command).def.cast());
        if own.is_empty() {
            return true;
        }
        if subtype == AlterTableType::AT_SetRelOptions {
            changes.set.extend(own);
        } else {
            changes.reset.extend(own.into_iter().map(|(name, _)| name));
        }
        (**command).def = rest.cast();
        !rest.is_null()
    });
    changes
}

/// ALTER TABLE of a cass table that stays one.
///
/// # Safety
/// `statement` is in memory of our own and names the table, which is locked.
unsafe fn alter_cass_table(statement: *mut pg_sys::AlterTableStmt, table: Oid) -> Remainder {
    // SAFETY: the caller vouches for the statement.
    unsafe {
        let mut commands = nodes::members::<pg_sys::AlterTableCmd>((*statement).cmds);
        let unlogs = |command: &*mut pg_sys::AlterTableCmd| (**command).subtype == AlterTableType::AT_SetUnLogged;
        if commands.iter().any(unlogs) {
            create_table::refuse_unlogged(&relation_name(table));
        }
        let moves = commands.iter().any(|command| (**command).subtype == AlterTableType::AT_SetTableSpace);
        let changes = take_options(&mut commands);
        let mut set = changes.set;
        for command in &commands {
            if let Some(constraint) = primary_key_in(*command) {
                let column = (**command).def;
                let column = nodes::is(column, NodeTag::T_ColumnDef).then(|| column.cast::<pg_sys::ColumnDef>());
                prepare_key(constraint, table, column, std::mem::take(&mut set));
            }
        }
        let key = primary_key::primary_key_of(table);
        if let Some(key) = &key {
            key_index::check_change(key.index, table, &set, &changes.reset);
        } else if !set.is_empty() {
            option_list::refuse_without_key(&quote(&relation_name(table)), &set);
        }
        let remainder = if commands.is_empty() { Remainder::FinishFrame } else { Remainder::RunFrame };
        (*statement).cmds = nodes::list(commands);
        let reset = changes.reset;
        frame::begin(Statement::AlterTable, Vec::new(), move |_| {
            if let Some(key) = key {
                change_options(&primary_key::qualified_name(key.index), &set, &reset);
            }
            if moves {
                // A rewrite has not copied the files, which would have taken the delta along.
                let table = pgrx::PgRelation::with_lock(table, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE);
                let own = (*table.rd_rel).reltablespace;
                let default = pg_sys::MyDatabaseTableSpace;
                tablespace::follow(table.as_ptr(), if own == Oid::INVALID { default } else { own });
            }
        });
        remainder
    }
}

/// Sets and resets options of an index.
fn change_options(index: &str, set: &[(String, String)], reset: &[String]) {
    if !set.is_empty() {
        execute(&format!("ALTER INDEX {index}{}", option_list::to_sql("SET", set)));
    }
    if !reset.is_empty() {
        execute(&format!("ALTER INDEX {index} RESET ({})", reset.join(", ")));
    }
}

/// Makes a PRIMARY KEY clause one of a cass table, with these options beside its own.
///
/// # Safety
/// `constraint` is a node of our own; `column` is the column it comes with, if any.
unsafe fn prepare_key(
    constraint: *mut pg_sys::Constraint,
    table: Oid,
    column: Option<*mut pg_sys::ColumnDef>,
    given: Vec<(String, String)>,
) {
    // SAFETY: the caller vouches for the nodes.
    unsafe {
        if !(*constraint).indexname.is_null() {
            Report::new("0A000", "the primary key of a cass table cannot be made from an existing index")
                .detail("It needs an index of access method cass_key, which only a primary key has.")
                .hint("Write ADD PRIMARY KEY with the columns.")
                .raise();
        }
        key_index::check_declaration((*constraint).deferrable, !(*constraint).including.is_null());
        if let Some(column) = column {
            let type_oid = pg_sys::typenameTypeId(std::ptr::null_mut(), (*column).typeName);
            key_index::check_type(&owned((*column).colname), type_oid);
        }
        for name in nodes::names((*constraint).keys) {
            key_index::check_named_column(table, &name);
        }
        let own = option_list::of_constraint((*constraint).options);
        (*constraint).options = option_list::to_list(&option_list::join(given, own));
        (*constraint).access_method = nodes::c_string(&KEY_ACCESS_METHOD.to_string_lossy());
    }
}

/// Runs a statement of our own as part of the user's.
pub(super) fn execute(sql: &str) {
    if let Err(error) = keeping_sqlstate(|| Spi::run(sql)) {
        Report::new("XX000", format!("could not run \"{sql}\": {error}")).raise();
    }
}
