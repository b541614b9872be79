//! The check that the server supports a method.

use turnbuckle_protocol::{
    method::{Method, RequiredCapability},
    types::ServerCapabilities,
};

use crate::{error::CallError, lifecycle::RevisionRules};

/// Returns an error if the server did not advertise the capability that a method needs.
pub(super) fn check_capability(
    method: &'static Method,
    capabilities: &ServerCapabilities,
    rules: &RevisionRules,
) -> Result<(), CallError> {
    if !method.is_in(rules.revision) {
        return Err(CallError::NotInRevision {
            method: method.name,
            revision: rules.revision,
        });
    }
    let Some(needed) = method.capability else {
        return Ok(());
    };
    let (declared, capability) = match needed {
        RequiredCapability::Tools => (capabilities.tools.is_some(), "tools"),
        RequiredCapability::Resources => (capabilities.resources.is_some(), "resources"),
        RequiredCapability::ResourcesSubscribe => {
            let resources = capabilities.resources.as_ref();
            let subscribe = resources.and_then(|resources| resources.subscribe);
            (subscribe == Some(true), "resources.subscribe")
        }
        RequiredCapability::Prompts => (capabilities.prompts.is_some(), "prompts"),
        RequiredCapability::Completions => {
            let declared = capabilities.completions.is_some() || !rules.completions_need_capability;
            (declared, "completions")
        }
        RequiredCapability::Logging => (capabilities.logging.is_some(), "logging"),
        // Checked by the callers that handle both task designs, or declared by this client.
        _ => return Ok(()),
    };
    if declared {
        Ok(())
    } else {
        Err(CallError::CapabilityNotAdvertised {
            method: method.name,
            capability,
        })
    }
}
