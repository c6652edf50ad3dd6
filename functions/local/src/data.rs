//! The data directory: one process at a time works in it, by an exclusive lock that ends with the process however it
//! dies. Whoever comes second reads here where the first one listens.

mod secrets;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::failure::Misuse;

/// The directory in which a host keeps everything.
#[derive(Debug, Clone)]
pub(crate) struct DataDirectory(PathBuf);

/// Whose the directory is, for as long as this lives.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
    announcement: PathBuf,
}

/// What came of trying to take the directory.
#[derive(Debug)]
pub(crate) enum Taking {
    /// It is ours.
    Taken(DirectoryLock),
    /// Another process works in it.
    InUse,
}

/// Where the running host is, for the other commands. The token makes its holder the operator, so the file is the
/// owner's alone.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Announcement {
    /// Its address, `http://127.0.0.1:8787`.
    pub(crate) address: String,
    /// Its process.
    pub(crate) pid: u32,
    /// What the operator's requests carry; new at every start.
    pub(crate) token: String,
    /// Whether it is a demo.
    pub(crate) demo: bool,
}

impl DataDirectory {
    /// The directory at `path`; nothing is created yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file in it that only its owner may read, made or mended before anything is written to it: a directory that
    /// somebody else made may be open to everybody. Returns its path, and whether it has been written before.
    pub(crate) fn private_file(&self, name: &str) -> std::io::Result<(PathBuf, bool)> {
        let path = self.file(name);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        Ok((path, file.metadata()?.len() > 0))
    }

    /// Takes the directory, which is made if it is not there.
    pub(crate) fn take(&self) -> anyhow::Result<Taking> {
        let problem = || format!("the data directory {} cannot be used (--data names another)", self.0.display());
        create_private(&self.0).with_context(problem)?;
        let path = self.file("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).with_context(problem)?;
        match file.try_lock() {
            Ok(()) => {
                let announcement = self.announcement_file();
                // A dead host's address must not be taken for ours before we listen.
                let _ = std::fs::remove_file(&announcement);
                Ok(Taking::Taken(DirectoryLock { _file: file, announcement }))
            }
            Err(TryLockError::WouldBlock) => Ok(Taking::InUse),
            Err(TryLockError::Error(error)) => Err(error).with_context(problem),
        }
    }

    /// Whether another process works in the directory. Does not create it.
    pub(crate) fn is_in_use(&self) -> bool {
        let Ok(file) = OpenOptions::new().write(true).open(self.file("lock")) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Where the host that works in the directory listens, once it does.
    pub(crate) fn announcement(&self) -> Option<Announcement> {
        serde_json::from_slice(&std::fs::read(self.announcement_file()).ok()?).ok()
    }

    /// The sentence for whoever finds the directory in use.
    pub(crate) fn in_use(&self) -> Misuse {
        let directory = self.0.display();
        Misuse(match self.announcement() {
            Some(host) => format!(
                "{directory} is in use by the turnlock at {} (process {}): stop it first (`turnlock chat` and \
                 `turnlock pair` talk to it as it runs), or name another directory with --data",
                host.address, host.pid
            ),
            None => format!(
                "{directory} is in use by another turnlock that is starting or stopping: try again in a moment, or name \
                 another directory with --data"
            ),
        })
    }

    fn announcement_file(&self) -> PathBuf {
        self.file("host.json")
    }
}

impl DirectoryLock {
    /// Tells the other commands where we listen.
    pub(crate) fn announce(&self, announcement: &Announcement) -> anyhow::Result<()> {
        let json = serde_json::to_vec_pretty(announcement)?;
        // It is worth nothing after a power cut, so the disk is not waited for.
        write_private(&self.announcement, &json, Durable::No)
            .with_context(|| format!("{} cannot be written", self.announcement.display()))
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Another host's, if somebody deleted the directory under us, is left alone.
        let ours = std::fs::read(&self.announcement)
            .ok()
            .and_then(|json| serde_json::from_slice::<Announcement>(&json).ok())
            .is_some_and(|announced| announced.pid == std::process::id());
        if ours {
            let _ = std::fs::remove_file(&self.announcement);
        }
    }
}

/// A random text of `bytes` bytes, in hexadecimal.
pub(crate) fn random_text(bytes: usize) -> anyhow::Result<String> {
    Ok(hex::encode(random_bytes(bytes)?))
}

fn random_bytes(bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("the system gives no randomness: {error}"))?;
    Ok(random)
}

fn create_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Whether a file has to be there after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durable {
    Yes,
    No,
}

/// Writes a file that only its owner reads, whole or not at all.
fn write_private(path: &Path, bytes: &[u8], durable: Durable) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(bytes)?;
    if durable == Durable::Yes {
        file.sync_all()?;
    }
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Announcement {
        Announcement { address: "http://127.0.0.1:1".into(), pid: std::process::id(), token: "t".into(), demo: true }
    }

    #[test]
    fn one_process_at_a_time_and_the_second_learns_where_the_first_is() {
        let temporary = tempfile::tempdir().unwrap();
        let data = DataDirectory::new(temporary.path().join("a/b"));
        assert!(!data.is_in_use());
        let Taking::Taken(lock) = data.take().unwrap() else { panic!("the directory is free") };
        assert!(data.in_use().to_string().contains("starting or stopping"));
        lock.announce(&host()).unwrap();
        assert!(data.is_in_use());
        assert!(matches!(data.take().unwrap(), Taking::InUse));
        let process = format!("http://127.0.0.1:1 (process {})", std::process::id());
        assert!(data.in_use().to_string().contains(&process));
        drop(lock);
        assert!(!data.is_in_use() && data.announcement().is_none());
        let Taking::Taken(lock) = data.take().unwrap() else { panic!("the directory is free") };
        lock.announce(&Announcement { pid: 0, ..host() }).unwrap();
        drop(lock);
        assert!(data.announcement().is_some(), "another host's announcement is left alone");
    }

    #[cfg(unix)]
    #[test]
    fn what_holds_secrets_is_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let temporary = tempfile::tempdir().unwrap();
        let data = DataDirectory::new(temporary.path().join("data"));
        let Taking::Taken(lock) = data.take().unwrap() else { panic!("the directory is free") };
        lock.announce(&host()).unwrap();
        data.demo_secrets().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&data.file("")), 0o700);
        assert_eq!(mode(&data.file("host.json")), 0o600);
        assert_eq!(mode(&data.file("secrets.json")), 0o600);
    }
}
