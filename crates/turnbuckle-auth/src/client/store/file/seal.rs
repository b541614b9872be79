//! The seal of a file: the keyring that has the key, asked as seldom as can be.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    kept::{Kept, Sealed, Unreadable},
    key::{Keyring, SealingKey},
};
use crate::{Failure, Step};

/// Opens what is sealed, and has the key to seal it again.
pub(super) struct Seal {
    file: PathBuf,
    keyring: Option<Arc<dyn Keyring>>,
    /// What the keyring gave last.
    known: Mutex<Option<SealingKey>>,
}

impl Seal {
    pub(super) fn new(file: PathBuf, keyring: Option<Arc<dyn Keyring>>) -> Seal {
        Seal {
            file,
            keyring,
            known: Mutex::default(),
        }
    }

    /// Opens a sealed file. The keyring is asked once, and again only if the key has become another one.
    pub(super) fn open(&self, sealed: &Sealed) -> Result<Result<Kept, Unreadable>, Failure> {
        if let Some(opened) = self.known().and_then(|key| sealed.open(&key)) {
            return Ok(opened);
        }
        let key = self.find()?.ok_or_else(|| self.key_is_gone())?;
        sealed.open(&key).ok_or_else(|| self.does_not_open())
    }

    /// Returns the key to seal with; makes one if there is none.
    ///
    /// Two who make one at the same time would lose one of them: the caller sees to it that there is only one.
    pub(super) fn key(&self) -> Result<SealingKey, Failure> {
        if let Some(key) = self.known() {
            return Ok(key);
        }
        if let Some(key) = self.find()? {
            return Ok(key);
        }
        self.keyring()?.keep(&SealingKey::random()?)?;
        // Only a key that the keyring gives back is one to trust a login to.
        self.find()?.ok_or_else(|| self.key_is_not_kept())
    }

    /// Asks the keyring for the key, and remembers it.
    pub(super) fn find(&self) -> Result<Option<SealingKey>, Failure> {
        let key = self.keyring()?.find()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone_from(&key);
        Ok(key)
    }

    fn known(&self) -> Option<SealingKey> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    fn keyring(&self) -> Result<&dyn Keyring, Failure> {
        self.keyring.as_deref().ok_or_else(|| {
            self.failure("takes a key to be sealed or opened, and there is no keyring to ask")
                .cure("nothing was changed; use a program that knows the keyring")
        })
    }

    fn key_is_gone(&self) -> Failure {
        let file = self.file.display();
        self.failure("is sealed, and its key is not in the keyring").cure(format!(
            "nothing was changed; use the keyring it was sealed with, or move `{file}` away and log in again"
        ))
    }

    fn key_is_not_kept(&self) -> Failure {
        self.failure("cannot be sealed: the keyring does not keep the key")
            .cure("nothing was changed; see that there is a keyring that lasts, or do without it")
    }

    fn does_not_open(&self) -> Failure {
        let file = self.file.display();
        self.failure("cannot be opened: it was sealed with another key than the keyring has, or was changed since")
            .cure(format!(
                "nothing was changed; restore it, or the keyring, or move `{file}` away and log in again"
            ))
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(Step::Store, format!("`{}` {what}", self.file.display()))
    }
}
