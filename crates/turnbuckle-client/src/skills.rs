//! Skills: folders of instructions and files that a model reads when it needs them.

mod verify;

pub use verify::SkillMismatch;
