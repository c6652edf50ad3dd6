//! The SQLite file: how it is opened, and one transaction at a time on it. What a transaction does is in
//! [`super::operations`].
//!
//! SQLite is called inline, on whatever task asks, under a mutex that is never held across an await: an operation is a
//! few index look-ups and takes microseconds, less than handing it to another thread would. The write-ahead log with
//! `synchronous = NORMAL` loses nothing when the process dies, `kill -9` included; when the machine loses power it may lose
//! the last moments, but never its consistency.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::settings::{Location, OpenError};

const FORMAT: i64 = 1;

/// How long another process may hold the file before we give up; there should be none.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// More than there are different statements.
const CACHED_STATEMENTS: usize = 64;

/// An open queue file.
#[derive(Debug)]
pub(super) struct File(Mutex<Connection>);

/// Where a transaction failed.
#[derive(Debug)]
pub(super) enum TransactionError {
    /// Before its end: nothing of it happened.
    Before(rusqlite::Error),
    /// At its commit: nobody knows.
    AtCommit(rusqlite::Error),
}

impl TransactionError {
    pub(super) fn into_inner(self) -> rusqlite::Error {
        match self {
            Self::Before(error) | Self::AtCommit(error) => error,
        }
    }
}

impl File {
    pub(super) fn open(location: &Location) -> Result<Self, OpenError> {
        let connection = match location {
            Location::Memory => Connection::open_in_memory(),
            Location::File(path) => Connection::open(path),
        }
        .map_err(file_error)?;
        prepare(&connection).map_err(file_error)?;
        let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(file_error)?;
        if found > FORMAT {
            return Err(OpenError::NewerFormat { found, known: FORMAT });
        }
        if found == 0 {
            create(&connection).map_err(file_error)?;
        }
        Ok(Self(Mutex::new(connection)))
    }

    /// Runs `work` as one transaction: all of it happens, or nothing.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, TransactionError> {
        let mut connection = self.connection();
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(TransactionError::Before)?;
        let result = work(&transaction).map_err(TransactionError::Before)?;
        transaction.commit().map_err(TransactionError::AtCommit)?;
        Ok(result)
    }

    /// Runs `work`, which only reads, on one state of the file.
    pub(super) fn read<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        work(&transaction)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic under the lock rolled its transaction back on the way out: the connection is as it was before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // What a person wrote is overwritten when it leaves the queue, not only unlinked.
    connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))
}

/// Tables and format number in one transaction: a death in between leaves an empty file, not half a schema.
fn create(connection: &Connection) -> rusqlite::Result<()> {
    let schema = include_str!("schema.sql");
    connection.execute_batch(&format!("BEGIN IMMEDIATE;\n{schema}\nPRAGMA user_version = {FORMAT};\nCOMMIT;"))
}

pub(super) fn file_error(error: rusqlite::Error) -> OpenError {
    OpenError::File(Box::new(error))
}
