//! `cass_check`: nothing of sound tables, and the fault of each kind of damage.

mod damage;
mod delta;
mod files;
mod indexes;
mod list;
mod sound;
mod unique;
