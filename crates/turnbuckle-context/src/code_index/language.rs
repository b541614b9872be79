//! Detection of the language of a file by its name or first line.

/// Languages by file name, in lower case.
const BY_NAME: &[(&str, &str)] = &[
    ("brewfile", "ruby"),
    ("build", "starlark"),
    ("build.bazel", "starlark"),
    ("cmakelists.txt", "cmake"),
    ("containerfile", "dockerfile"),
    ("dockerfile", "dockerfile"),
    ("gemfile", "ruby"),
    ("gnumakefile", "make"),
    ("jenkinsfile", "groovy"),
    ("justfile", "make"),
    ("makefile", "make"),
    ("rakefile", "ruby"),
    ("vagrantfile", "ruby"),
    ("workspace", "starlark"),
];

/// Languages by extension, in lower case.
const BY_EXTENSION: &[(&str, &[&str])] = &[
    ("bash", &["bash"]),
    ("c", &["c", "h"]),
    ("clojure", &["clj", "cljc", "cljs", "edn"]),
    ("cmake", &["cmake"]),
    (
        "cpp",
        &[
            "cc", "cpp", "cu", "cuh", "cxx", "hh", "hpp", "hxx", "inl", "ipp", "ino",
        ],
    ),
    ("csharp", &["cs", "csx"]),
    ("css", &["css", "less", "sass", "scss"]),
    ("csv", &["csv", "tsv"]),
    ("dart", &["dart"]),
    ("elixir", &["ex", "exs"]),
    ("erlang", &["erl", "hrl"]),
    ("fsharp", &["fs", "fsi", "fsx"]),
    ("go", &["go"]),
    ("graphql", &["gql", "graphql", "graphqls"]),
    ("groovy", &["gradle", "groovy"]),
    ("haskell", &["hs", "lhs"]),
    ("hcl", &["hcl", "tf", "tfvars"]),
    ("html", &["htm", "html", "xhtml"]),
    ("ini", &["cfg", "conf", "ini", "properties"]),
    ("java", &["java"]),
    ("javascript", &["cjs", "js", "jsx", "mjs"]),
    ("json", &["json", "json5", "jsonc", "jsonl", "ndjson"]),
    ("julia", &["jl"]),
    ("kotlin", &["kt", "kts"]),
    ("lisp", &["cl", "el", "lisp", "rkt", "scm"]),
    ("lua", &["lua"]),
    ("make", &["mak", "mk"]),
    ("markdown", &["markdown", "md", "mdx"]),
    ("nim", &["nim"]),
    ("nix", &["nix"]),
    ("objective-c", &["m", "mm"]),
    ("ocaml", &["ml", "mli"]),
    ("perl", &["pl", "pm", "t"]),
    ("php", &["php", "phtml"]),
    ("powershell", &["ps1", "psd1", "psm1"]),
    ("protobuf", &["proto"]),
    ("python", &["py", "pyi", "pyw"]),
    ("r", &["r", "rmd"]),
    ("restructuredtext", &["rst"]),
    ("ruby", &["gemspec", "rake", "rb", "ru"]),
    ("rust", &["rs"]),
    ("scala", &["sbt", "sc", "scala"]),
    ("shell", &["ksh", "sh", "zsh", "fish"]),
    ("solidity", &["sol"]),
    ("sql", &["ddl", "psql", "sql"]),
    ("starlark", &["bazel", "bzl", "star"]),
    ("svelte", &["svelte"]),
    ("swift", &["swift"]),
    ("toml", &["toml"]),
    ("typescript", &["cts", "mts", "ts", "tsx"]),
    ("vue", &["vue"]),
    ("xml", &["xml", "xsd", "xsl", "xslt"]),
    ("yaml", &["yaml", "yml"]),
    ("zig", &["zig"]),
];

/// Languages by the interpreter in the first line.
const BY_INTERPRETER: &[(&str, &str)] = &[
    ("ash", "shell"),
    ("bash", "bash"),
    ("bun", "javascript"),
    ("dash", "shell"),
    ("deno", "typescript"),
    ("elixir", "elixir"),
    ("fish", "shell"),
    ("ksh", "shell"),
    ("lua", "lua"),
    ("node", "javascript"),
    ("perl", "perl"),
    ("php", "php"),
    ("python", "python"),
    ("ruby", "ruby"),
    ("sh", "shell"),
    ("zsh", "shell"),
];

/// The language of a text if it cannot be detected.
const UNKNOWN_LANGUAGE: &str = "text";

/// Returns the language of a file in lower case, or `text` if it cannot be detected.
pub(super) fn language_of(path: &str, text: &str) -> &'static str {
    let name = file_name(path).to_ascii_lowercase();
    by_name(&name)
        .or_else(|| by_first_line(text))
        .unwrap_or(UNKNOWN_LANGUAGE)
}

/// Returns the last component of a path with `/`.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the part of a name after its last dot.
pub(super) fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, extension)| extension)
}

fn by_name(name: &str) -> Option<&'static str> {
    let whole = |name: &str| BY_NAME.iter().find(|(known, _)| *known == name);
    let by_extension = |extension: &str| {
        let mut rows = BY_EXTENSION.iter();
        rows.find(|(_, extensions)| extensions.contains(&extension))
            .map(|(language, _)| *language)
    };
    whole(name)
        .map(|(_, language)| *language)
        .or_else(|| extension(name).and_then(by_extension))
        // `Dockerfile.dev`, `Makefile.am`
        .or_else(|| {
            name.split_once('.')
                .and_then(|(stem, _)| whole(stem))
                .map(|(_, language)| *language)
        })
}

fn by_first_line(text: &str) -> Option<&'static str> {
    let line = text.lines().next()?.strip_prefix("#!")?;
    let mut words = line.split_whitespace();
    let program = file_name(words.next()?);
    let program = match program {
        // `#!/usr/bin/env -S deno run`
        "env" => words.find(|word| !word.starts_with('-'))?,
        _ => program,
    };
    // `python3.12`
    let program = program.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    let mut rows = BY_INTERPRETER.iter();
    rows.find(|(known, _)| *known == program)
        .map(|(_, language)| *language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_detected_by_name_and_first_line() {
        let table = [
            ("src/lib.rs", "", "rust"),
            ("a/B.TSX", "", "typescript"),
            ("Dockerfile", "", "dockerfile"),
            ("deploy/Dockerfile.dev", "", "dockerfile"),
            ("Makefile", "", "make"),
            ("bin/run", "#!/usr/bin/env python3.12\n", "python"),
            ("bin/run", "#!/usr/bin/env -S deno run\n", "typescript"),
            ("bin/run", "#!/bin/sh -e\n", "shell"),
            ("bin/run", "#!\n", "text"),
            ("NOTES", "hello", "text"),
            ("a.unknown", "", "text"),
        ];
        for (path, text, language) in table {
            assert_eq!(language_of(path, text), language, "{path}");
        }
    }
}
