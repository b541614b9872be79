//! Scenarios about skills.

use std::error::Error;

use turnbuckle_client::SkillError;

use crate::Task;

/// Lists skills, and reads none of their files.
pub(crate) async fn list(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    client.skills().all().await?;
    client.close().await;
    Ok(())
}

/// Reads every skill and its files. Skips a skill if its instructions differ from the list.
pub(crate) async fn reject_changed_skill(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    for entry in client.skills().all().await? {
        let skill = match client.read_skill(&entry).await {
            Err(SkillError::Mismatch(_)) => continue,
            skill => skill?,
        };
        for file in skill.files() {
            skill.file(&file.uri).await?;
        }
    }
    client.close().await;
    Ok(())
}
