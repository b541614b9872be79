//! How much each owner has in a table that all of them share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::StoreError;

/// What every owner has; those who have nothing are not in it.
pub(super) struct Shares {
    used: Mutex<HashMap<Arc<str>, Used>>,
    max: Used,
}

/// Part of an owner's share, until it is dropped.
pub(super) struct Share {
    of: Arc<Shares>,
    owner: Arc<str>,
    bytes: usize,
}

#[derive(Clone, Copy, Default)]
struct Used {
    entries: usize,
    bytes: usize,
}

impl Shares {
    pub(super) fn new(max_entries: usize, max_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            used: Mutex::default(),
            max: Used {
                entries: max_entries,
                bytes: max_bytes,
            },
        })
    }

    /// Takes a part of an owner's share for one entry.
    pub(super) fn take(self: &Arc<Self>, owner: &str, bytes: usize) -> Result<Share, StoreError> {
        let mut all = lock(&self.used);
        let known = all.get_key_value(owner);
        let (owner, used) = match known {
            Some((owner, used)) => (owner.clone(), *used),
            None => (owner.into(), Used::default()),
        };
        let then = self.more(used, bytes)?;
        all.insert(owner.clone(), then);
        Ok(Share {
            of: self.clone(),
            owner,
            bytes,
        })
    }

    fn more(&self, used: Used, bytes: usize) -> Result<Used, StoreError> {
        let then = Used {
            entries: used.entries + 1,
            bytes: used.bytes.saturating_add(bytes),
        };
        let too_many = |what, limit| Err(StoreError::TooMany { what, limit });
        if then.entries > self.max.entries {
            return too_many("journals of one owner", self.max.entries);
        }
        if then.bytes > self.max.bytes {
            return too_many("bytes in journals of one owner", self.max.bytes);
        }
        Ok(then)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut all = lock(&self.of.used);
        let Some(used) = all.get_mut(&self.owner) else {
            return;
        };
        used.entries -= 1;
        used.bytes -= self.bytes;
        if used.entries == 0 {
            all.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_who_has_nothing_is_forgotten() {
        let shares = Shares::new(2, 100);

        let one = shares.take("ada", 60).unwrap();
        let two = shares.take("ada", 40).unwrap();
        let too_many = shares.take("ada", 0).map(drop);
        drop(two);
        let too_much = shares.take("ada", 41).map(drop);
        let others = shares.take("bob", 100).unwrap();

        assert!(matches!(
            too_many,
            Err(StoreError::TooMany { limit: 2, .. })
        ));
        assert!(matches!(
            too_much,
            Err(StoreError::TooMany { limit: 100, .. })
        ));
        drop((one, others));
        assert!(lock(&shares.used).is_empty());
    }
}
