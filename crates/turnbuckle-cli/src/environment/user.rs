//! Who runs the process.

/// Returns the name of the user who runs the process.
///
/// Programs that start servers often clear the environment, and one that had `USER` and one that had not would be two
/// owners of memory. So it is the name that `/etc/passwd` has for the number of the user, or else the number.
#[cfg(unix)]
pub(super) fn name() -> String {
    let number = rustix::process::getuid().as_raw().to_string();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    named(&known, &number).unwrap_or(number)
}

/// Returns the name of the user who runs the process.
#[cfg(not(unix))]
pub(super) fn name() -> String {
    std::env::var("USERNAME").unwrap_or_default()
}

/// Returns the number of the user whom the process acts for.
#[cfg(unix)]
pub(super) fn id() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Returns nothing: users have no numbers here.
#[cfg(not(unix))]
pub(super) fn id() -> Option<u32> {
    None
}

#[cfg(unix)]
fn named(known: &str, number: &str) -> Option<String> {
    known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(number)).then(|| name.to_owned())
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_known_by_number() {
        let known = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(named(known, "1000").unwrap(), "ada");
        assert_eq!(named(known, "0").unwrap(), "root");
        assert_eq!(named(known, "x"), None);
        assert_eq!(named("", "0"), None);
    }
}
