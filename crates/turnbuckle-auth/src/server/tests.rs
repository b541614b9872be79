mod admission;
mod world;
