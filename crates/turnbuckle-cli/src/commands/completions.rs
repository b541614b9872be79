//! `turnbuckle completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::failure::Result;

/// Print the completions of a shell
///
/// For bash: turnbuckle completions bash > ~/.local/share/bash-completion/completions/turnbuckle
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, context: &Context) -> Result {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut Arguments::command(),
            "turnbuckle",
            &mut script,
        );
        context.bytes(&script)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_has_its_completions() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "turnbuckle", &mut script);
            let script = String::from_utf8(script).unwrap();

            assert!(
                script.contains("resources") && script.contains("timeout"),
                "{shell}"
            );
        }
    }
}
