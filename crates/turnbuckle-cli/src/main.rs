//! The command `turnbuckle`.

fn main() {}
