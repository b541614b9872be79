//! The output of callgrind for one whole run.

use std::collections::HashMap;

use crate::Failure;

/// Counts of one run of a program, from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Instructions in user space.
    pub instructions: u64,
    /// Calls of `malloc`, `calloc`, `realloc` and their aligned variants.
    pub allocations: u64,
    /// Calls of the C library's functions that write to a descriptor.
    pub writes: u64,
    /// Tasks spawned on tokio.
    pub spawns: u64,
}

impl Profile {
    /// Sums the calls of the functions of interest: `cfn=(7) malloc` names a callee once, `cfn=(7)` refers to it
    /// later, and `calls=3 …` after it counts.
    pub fn parse(text: &str) -> Result<Profile, Failure> {
        let mut profile = Profile::default();
        let mut kinds = HashMap::new();
        let mut callee = "";
        for line in text.lines() {
            if let Some(name) = line
                .strip_prefix("cfn=")
                .or_else(|| line.strip_prefix("fn="))
            {
                let (id, name) = name.split_once(' ').unwrap_or((name, ""));
                if !name.is_empty() {
                    kinds.insert(id, Kind::for_function(name));
                }
                if line.starts_with('c') {
                    callee = id;
                }
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let count: u64 = calls.split(' ').next().unwrap_or_default().parse()?;
                match kinds.get(callee) {
                    Some(Kind::Allocation) => profile.allocations += count,
                    Some(Kind::Write) => profile.writes += count,
                    Some(Kind::Spawn) => profile.spawns += count,
                    _ => {}
                }
            } else if let Some(total) = line.strip_prefix("totals: ") {
                profile.instructions += total.trim().parse::<u64>()?;
            }
        }
        match profile.instructions {
            0 => Err("callgrind wrote no totals".into()),
            _ => Ok(profile),
        }
    }
}

#[derive(Debug)]
enum Kind {
    Allocation,
    Write,
    Spawn,
    Other,
}

impl Kind {
    fn for_function(function: &str) -> Kind {
        match function {
            "malloc" | "calloc" | "realloc" | "posix_memalign" | "aligned_alloc" | "memalign" => {
                Kind::Allocation
            }
            "write" | "writev" | "send" | "sendto" | "sendmsg" => Kind::Write,
            // Every task passes here once, whichever function spawned it.
            _ if function.starts_with("tokio::runtime::task::list::OwnedTasks")
                && function.ends_with("::bind_inner") =>
            {
                Kind::Spawn
            }
            _ => Kind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_calls_by_name_and_by_reference() {
        let text = "fn=(1) main\n+1 5\ncob=(2) libc\ncfn=(7) malloc\ncalls=3 0\n* 90\n\
                    fn=(2) other\ncfn=(7)\ncalls=4 0\n* 9\ncfn=(8) free\ncalls=7 0\n* 1\ncfn=(9) writev\ncalls=1 +2\n* 1\n\
                    cfn=(10) tokio::runtime::task::list::OwnedTasks<S>::bind_inner\ncalls=2 +2\n* 1\n\
                    totals: 1234\n";

        let profile = Profile::parse(text).unwrap();

        assert_eq!(
            profile,
            Profile {
                instructions: 1234,
                allocations: 7,
                writes: 1,
                spawns: 2
            }
        );
        assert!(Profile::parse("").is_err());
    }
}
