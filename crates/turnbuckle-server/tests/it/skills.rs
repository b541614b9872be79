//! Skills.

mod changes;
mod hostile_files;
mod served;
pub(crate) mod test_folder;
