mod admission;
mod attacks;
mod bound;
mod documents;
mod introspection;
mod keys;
mod scopes;
mod world;
