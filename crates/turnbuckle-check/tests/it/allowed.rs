//! What the specification allows, however odd it looks: servers that are right in another way than ours have nothing held against
//! them.

mod calls;
mod features;
mod wire;
