//! Starts the servers of other projects that tests need: Redis alone, with Sentinel or as a cluster, PostgreSQL and
//! HAProxy. Each runs on free loopback ports in a temporary folder of its own, and ends when its value is dropped or
//! the thread that started it ends, also if the test is killed.
//!
//! [`FaultProxy`] stands between a client and a server and delays, holds or breaks their connections.
//!
//! The programs come from the Debian packages `redis-server`, `postgresql` and `haproxy`, which `./test` installs. A
//! program that is missing is an error that names its package; no test is skipped for it.
//!
//! ```no_run
//! use turnbuckle_test_bed::{FaultProxy, RedisServer};
//!
//! let redis = RedisServer::start()?;
//! let proxy = FaultProxy::start(redis.address())?;
//! println!("redis://{}", proxy.address());
//! # Ok::<_, turnbuckle_test_bed::StartError>(())
//! ```

mod fault_proxy;
mod haproxy;
mod postgres;
mod process;
mod redis;
mod redis_cluster;
mod redis_sentinel;
mod reserved_address;

pub use fault_proxy::{FaultProxy, NetworkFault};
pub use haproxy::HaProxy;
pub use postgres::PostgresServer;
pub use process::StartError;
pub use redis::RedisServer;
pub use redis_cluster::RedisCluster;
pub use redis_sentinel::RedisSentinel;
