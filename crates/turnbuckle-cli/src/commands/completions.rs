//! `turnbuckle completions`.

use clap_complete::Shell;

use crate::{cli::Cli, context::CommandContext, error::Result};

/// Print a shell completion script
///
/// For bash: turnbuckle completions bash > ~/.local/share/bash-completion/completions/turnbuckle
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsCommand {
    /// Name of the shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsCommand {
    pub(crate) fn run(&self, context: &CommandContext) -> Result {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut Cli::definition(),
            "turnbuckle",
            &mut script,
        );
        context.write_bytes(&script)
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
            clap_complete::generate(*shell, &mut Cli::definition(), "turnbuckle", &mut script);
            let script = String::from_utf8(script).unwrap();

            assert!(
                script.contains("resources") && script.contains("timeout"),
                "{shell}"
            );
        }
    }
}
