//! Whose configuration a file is, and what is particular to it.

/// A program whose configuration we read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file named on the command line.
    Given,
    /// `.mcp.json`, which several programs share.
    Project,
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Visual Studio Code.
    VsCode,
    /// Cursor.
    Cursor,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
}

impl Source {
    /// Returns the word that stands after the `@`.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Given => "config",
            Self::Project => "project",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::VsCode => "vscode",
            Self::Cursor => "cursor",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Returns how this program writes variables.
    pub(crate) fn variables(self) -> Variables {
        match self {
            Self::Given | Self::Project | Self::ClaudeCode => Variables::Braces,
            Self::VsCode | Self::Cursor => Variables::Editor,
            Self::Gemini => Variables::Dollar,
            Self::ClaudeDesktop | Self::Codex => Variables::None,
        }
    }

    /// Says whether `url` alone means the transport of 2024-11-05.
    pub(crate) fn url_means_sse(self) -> bool {
        self == Self::Gemini
    }
}

/// How variables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variables {
    /// They are not.
    None,
    /// `${NAME}`, `${NAME:-otherwise}`, `${env:NAME}`.
    Braces,
    /// `${env:NAME}`, `${workspaceFolder}`, `${input:id}`.
    Editor,
    /// `$NAME`, and as with braces.
    Dollar,
}

/// Who wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// It came with a project, so perhaps somebody else.
    Project,
    /// The user.
    User,
}
