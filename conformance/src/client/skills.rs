//! Scenarios about skills.

use std::error::Error;

use crate::Task;

/// Lists skills, and reads none of their files.
pub(crate) async fn list(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    client.skills().all().await?;
    client.close().await;
    Ok(())
}

/// Reads a skill that is not what the list says it is; its other files are left alone then.
pub(crate) async fn refuse_a_changed_one(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    for skill in client.skills().all().await? {
        match client.read_skill(&skill).await {
            Ok(_) => return Err(format!("{} was read, and should not have been", skill.uri).into()),
            Err(_) => continue,
        }
    }
    client.close().await;
    Ok(())
}
