//! A Redis cluster of three nodes.

use std::{io, net::SocketAddr, thread, time::Duration};

use crate::{
    process::StartError,
    redis::{RedisServer, redis_cli},
    reserved_address::ReservedAddress,
};

/// The smallest number with which `redis-cli` creates a cluster.
const NODES: usize = 3;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Three Redis servers that share the hash slots, without replicas.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    /// Nodes also talk to each other on a second port each.
    _bus_ports: Vec<ReservedAddress>,
}

impl RedisCluster {
    /// Starts the nodes, creates the cluster, and waits until every node serves it.
    pub fn start() -> Result<Self, StartError> {
        let mut nodes = Vec::new();
        let mut bus_ports = Vec::new();
        for _ in 0..NODES {
            let bus = ReservedAddress::new()?;
            let port = bus.address.port().to_string();
            nodes.push(RedisServer::start_with(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &port,
                "--cluster-node-timeout",
                "2000",
            ])?);
            bus_ports.push(bus);
        }
        let addresses: Vec<_> = nodes
            .iter()
            .map(|node| node.address().to_string())
            .collect();
        let mut words = vec!["--cluster", "create"];
        words.extend(addresses.iter().map(String::as_str));
        words.push("--cluster-yes");
        redis_cli(nodes[0].address(), &words)?;
        let cluster = Self {
            nodes,
            _bus_ports: bus_ports,
        };
        while !cluster.is_ready()? {
            thread::sleep(POLL_INTERVAL);
        }
        Ok(cluster)
    }

    /// Returns the addresses of the nodes.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(RedisServer::address).collect()
    }

    /// Returns the nodes, to pause, kill or restart them.
    pub fn nodes(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    fn is_ready(&self) -> io::Result<bool> {
        for node in &self.nodes {
            let state = node.command(&["CLUSTER", "INFO"])?;
            if !state.contains("cluster_state:ok") {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
