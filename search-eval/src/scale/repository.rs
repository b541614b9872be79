//! A generated repository of many small files.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use super::{
    language::{LANGUAGES, Language},
    random::Random,
    vocabulary::noun,
};

/// Files in one folder.
const PER_FOLDER: usize = 40;

/// A repository on the disk.
pub(crate) struct Repository {
    root: PathBuf,
    files: usize,
    bytes: u64,
}

impl Repository {
    /// Writes this many files to a folder.
    pub(crate) fn write(root: &Path, files: usize) -> std::io::Result<Self> {
        let mut repository = Self {
            root: root.to_owned(),
            files,
            bytes: 0,
        };
        for number in 0..files {
            let path = repository.path(number);
            if number % PER_FOLDER == 0 {
                fs::create_dir_all(path.parent().expect("a file is in a folder"))?;
            }
            let text = language(number).file(random(number));
            repository.bytes += text.len() as u64;
            fs::write(path, text)?;
        }
        Ok(repository)
    }

    /// Returns the folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the total size of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a function with this name to this many files, spread over the repository.
    pub(crate) fn change(&self, files: usize, name: &str) -> std::io::Result<()> {
        for number in (0..self.files).step_by(self.files.div_ceil(files)) {
            let mut file = fs::OpenOptions::new()
                .append(true)
                .open(self.path(number))?;
            let addition = language(number).addition(random(self.files + number));
            write!(file, "{addition}\n{name}()\n")?;
        }
        Ok(())
    }

    fn path(&self, number: usize) -> PathBuf {
        let folder = number / PER_FOLDER;
        // Files in one folder share its names.
        let mut names = random(usize::MAX - folder);
        let (area, module) = (noun(&mut names), noun(&mut names));
        let name = noun(&mut random(usize::MAX / 2 - number));
        let extension = language(number).extension;
        self.root
            .join(area)
            .join(format!("{module}_{folder}"))
            .join(format!("{name}_{number}.{extension}"))
    }
}

fn language(number: usize) -> &'static Language {
    &LANGUAGES[number % LANGUAGES.len()]
}

fn random(number: usize) -> Random {
    Random::new(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_number_of_files_is_written_and_changed() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::write(folder.path(), 100).unwrap();
        let files = || (0..100).map(|number| fs::read_to_string(repository.path(number)).unwrap());
        assert_eq!(
            files().map(|text| text.len() as u64).sum::<u64>(),
            repository.bytes()
        );
        repository.change(10, "brand_new").unwrap();
        assert_eq!(
            files().filter(|text| text.contains("brand_new()")).count(),
            10
        );
    }
}
