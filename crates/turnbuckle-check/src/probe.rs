//! Reads what a server has and exercises it once, for all rules: lists, safe tool calls, tasks and subscriptions.

mod change_listener;
mod inventory;
mod safe_calls;
mod sample_arguments;
pub(crate) mod task_runs;
pub(crate) mod tool_runs;

pub(crate) use self::{
    inventory::{
        ListedItems, ReadSample, ServerInventory, get_prompts, is_complete, read_resources,
        required,
    },
    safe_calls::SafeCall,
};
