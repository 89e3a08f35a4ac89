//! The two commands to a Redis that every lock needs.

use std::time::Duration;

use redis::aio::MultiplexedConnection;

use super::Result;

/// The value of the lock.
pub const VALUE: &str = "0123456789abcdef0123456789abcdef";
/// Deletes the lock if it is ours.
pub const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// A connection to one server.
#[derive(Clone)]
pub struct Bare {
    connection: MultiplexedConnection,
    release: String,
}

impl Bare {
    /// Connects, and loads the script.
    ///
    /// # Errors
    /// The server's.
    pub async fn connect(url: &str) -> Result<Self> {
        let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        let release = redis::cmd("SCRIPT").arg("LOAD").arg(RELEASE).query_async(&mut connection).await?;
        Ok(Self { connection, release })
    }

    /// Takes the lock; false if it was not free.
    ///
    /// # Errors
    /// The server's.
    pub async fn take(&mut self, key: &str, ttl: Duration) -> redis::RedisResult<bool> {
        let mut set = redis::cmd("SET");
        set.arg(key).arg(VALUE).arg("NX").arg("PX").arg(ttl.as_millis() as u64);
        Ok(set.query_async::<Option<String>>(&mut self.connection).await?.is_some())
    }

    /// Releases the lock; false if it was not ours.
    ///
    /// # Errors
    /// The server's.
    pub async fn free(&mut self, key: &str) -> redis::RedisResult<bool> {
        let mut eval = redis::cmd("EVALSHA");
        eval.arg(&self.release).arg(1).arg(key).arg(VALUE);
        Ok(eval.query_async::<u64>(&mut self.connection).await? == 1)
    }
}
