//! The guides of `docs/` and the documentation of the attributes, included so that their code is compiled and run.

#[doc = include_str!("../../../docs/first-server.md")]
mod first_server {}

#[doc = include_str!("../../../docs/resources-and-prompts.md")]
mod resources_and_prompts {}

#[doc = include_str!("../../../docs/attributes.md")]
mod attributes_guide {}

#[doc = include_str!("../../../docs/shared-state.md")]
mod shared_state {}

#[doc = include_str!("../../../docs/both-eras.md")]
mod both_eras {}

#[doc = include_str!("../../../docs/asking-the-user.md")]
mod asking_the_user {}

#[doc = include_str!("../../../docs/tasks.md")]
mod tasks {}

#[doc = include_str!("../../../docs/axum.md")]
mod axum {}

#[doc = include_str!("../../../docs/errors.md")]
mod errors {}

#[doc = include_str!("../../../docs/testing.md")]
mod testing {}

#[doc = include_str!("../../../docs/your-own-transport.md")]
mod your_own_transport {}

#[doc = include_str!("../../../docs/first-client.md")]
mod first_client {}

#[doc = include_str!("../../../docs/client-errors.md")]
mod client_errors {}

#[doc = include_str!("../../../docs/authorization.md")]
mod authorization {}

#[cfg(feature = "redis")]
#[doc = include_str!("../../../docs/scale-out.md")]
mod scale_out {}

#[doc = include_str!("../../turnbuckle-macros/src/attributes.md")]
mod attributes {}

#[doc = include_str!("../../turnbuckle-macros/src/tool.md")]
mod tool {}

#[doc = include_str!("../../turnbuckle-macros/src/prompt.md")]
mod prompt {}

#[doc = include_str!("../../turnbuckle-macros/src/resource.md")]
mod resource {}
