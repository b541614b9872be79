//! Keys of stored data: owners and their partitions.

use std::sync::Arc;

use crate::Owner;

/// A partition for the data of an owner: a project, or the data that all projects of the owner share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    owner: Owner,
    /// The id of the project; `None` for shared data.
    project: Option<Arc<str>>,
}

impl Partition {
    /// Returns the partition of a project, by its id.
    pub fn project(owner: &Owner, id: &str) -> Self {
        Self {
            owner: owner.clone(),
            project: Some(id.into()),
        }
    }

    /// Returns the partition that the projects of an owner share.
    pub fn shared(owner: &Owner) -> Self {
        Self {
            owner: owner.clone(),
            project: None,
        }
    }

    /// Returns the owner.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns the id of the project; `None` for shared data.
    pub fn project_id(&self) -> Option<&str> {
        self.project.as_deref()
    }
}

/// The partitions in which an operation searches.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// One partition.
    Partition(&'a Partition),
    /// All partitions of an owner, the shared one first.
    Owner(&'a Owner),
}

/// A project with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectEntry {
    /// The id.
    pub id: String,
    /// The folder of the project when it was created.
    pub root: String,
}

/// The version of the data of a partition. Equal versions mean equal data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionVersion(u64);

impl PartitionVersion {
    /// Creates a version from a number that each change replaces by another one.
    pub fn new(number: u64) -> Self {
        Self(number)
    }
}
