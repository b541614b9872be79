//! Unix sockets where there are some.

use std::{io, path::Path};

use tokio::net::UnixStream;

use crate::lines::Lines;

pub(super) async fn open(path: &Path) -> io::Result<Lines> {
    let (reader, writer) = UnixStream::connect(path).await?.into_split();
    Ok(Lines::new(reader, writer))
}
