//! The data directory: one SQLite database per project, and one for the data that an owner shares between projects.

#[allow(unreachable_pub, dead_code, reason = "`evaluation` exposes it")]
pub(crate) mod collections;
pub(crate) mod data_dir;
pub(crate) mod database;
pub(crate) mod dir_handle;
pub(crate) mod locked_file;
pub(crate) mod lookup;
#[allow(unreachable_pub, dead_code, reason = "`evaluation` exposes it")]
pub(crate) mod operations;
pub(crate) mod pending_delete;
pub(crate) mod work_limit;
