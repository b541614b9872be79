//! Source text in several languages, made from patterns.
//!
//! In a pattern `$v` stands for a variable, `$f` for a function, `$T` for a type, `$n` for a number and `$p` for prose.

use super::{
    random::Random,
    vocabulary::{NamingConvention, Writer},
};

/// The syntax of a generated language.
pub(crate) struct Language {
    /// The file extension.
    pub(crate) extension: &'static str,
    case: NamingConvention,
    head: &'static str,
    opens: &'static [&'static str],
    statements: &'static [&'static str],
    close: &'static str,
}

/// The number of topics per file.
const TOPICS: usize = 8;

/// The languages that a generated repository is written in.
pub(crate) const LANGUAGES: &[Language] = &[RUST, PYTHON, TYPESCRIPT, GO, JAVA, MARKDOWN];

const RUST: Language = Language {
    extension: "rs",
    case: NamingConvention::Snake,
    head: "//! $p.\n\nuse crate::$v::{$T, $T};\n\n/// $p.\npub struct $T {\n    $v: $T,\n    $v: u64,\n}\n",
    opens: &[
        "\n/// $p.\npub fn $f($v: &$T) -> Result<$T, $T> {\n",
        "\n/// $p.\nfn $f($v: u64, $v: &mut $T) -> Option<$T> {\n",
    ],
    statements: &[
        "    let $v = self.$v.$f($v)?;\n",
        "    if $v.len() > $n {\n        return Err($T::$T($v));\n    }\n",
        "    for $v in $v.iter().filter(|$v| $v.$f()) {\n        $v.push($v.$f());\n    }\n",
        "    // $p\n    $v.$f(&$v, $n);\n",
        "    tracing::debug!($v, \"$p\");\n",
    ],
    close: "    $f($v)\n}\n",
};

const PYTHON: Language = Language {
    extension: "py",
    case: NamingConvention::Snake,
    head: "\"\"\"$p.\"\"\"\nfrom $v.$v import $T, $f\n\n\nclass $T:\n    \"\"\"$p.\"\"\"\n",
    opens: &[
        "\n    def $f(self, $v, $v=$n):\n        \"\"\"$p.\"\"\"\n",
        "\n    async def $f(self, $v: $T) -> $T:\n",
    ],
    statements: &[
        "        $v = self.$f($v, $v=$n)\n",
        "        if not $v:\n            raise $T(f\"$p: {$v}\")\n",
        "        for $v in $f($v):\n            self.$v.append($v)\n",
        "        # $p\n        $v[\"$v\"] = $v.$f()\n",
        "        logger.info(\"$p\")\n",
    ],
    close: "        return $v\n",
};

const TYPESCRIPT: Language = Language {
    extension: "ts",
    case: NamingConvention::Camel,
    head: "import { $T, $f } from './$v'\n\n/** $p. */\nexport interface $T {\n  $v: string\n  $v?: number\n}\n",
    opens: &[
        "\n/** $p. */\nexport async function $f ($v: $T): Promise<$T> {\n",
        "\nexport const $f = ($v: $T, $v = $n) => {\n",
    ],
    statements: &[
        "  const $v = await this.$f($v)\n",
        "  if ($v === undefined) throw new $T('$p')\n",
        "  $v.$v = $v.map(($v) => $f($v, $n))\n",
        "  // $p\n  $f($v, { $v: $n })\n",
    ],
    close: "  return $v\n}\n",
};

const GO: Language = Language {
    extension: "go",
    case: NamingConvention::Camel,
    head: "// Package $v: $p.\npackage $v\n\nimport (\n\t\"context\"\n\t\"fmt\"\n)\n\n// $T $p.\ntype $T struct {\n\t$v string\n\t$v int\n}\n",
    opens: &[
        "\n// $p.\nfunc ($v *$T) $f(ctx context.Context, $v $T) (*$T, error) {\n",
        "\nfunc $f($v []byte) error {\n",
    ],
    statements: &[
        "\t$v, err := $v.$f(ctx, $v)\n\tif err != nil {\n\t\treturn nil, fmt.Errorf(\"$p: %w\", err)\n\t}\n",
        "\tfor _, $v := range $v.$v {\n\t\t$v.$f($v)\n\t}\n",
        "\t// $p\n\t$v.$v = $n\n",
    ],
    close: "\treturn $f($v)\n}\n",
};

const JAVA: Language = Language {
    extension: "java",
    case: NamingConvention::Camel,
    head: "package com.example.$v;\n\nimport java.util.List;\n\n/** $p. */\npublic class $T {\n    private final $T $v;\n",
    opens: &[
        "\n    /** $p. */\n    public $T $f($T $v, int $v) {\n",
        "\n    private void $f(List<$T> $v) throws $T {\n",
    ],
    statements: &[
        "        $T $v = $v.$f($v, $n);\n",
        "        if ($v.$f() > $n) {\n            throw new $T(\"$p\");\n        }\n",
        "        for ($T $v : $v) {\n            this.$v.$f($v);\n        }\n",
        "        // $p\n        $v.$f();\n",
    ],
    close: "        return $v;\n    }\n",
};

const MARKDOWN: Language = Language {
    extension: "md",
    case: NamingConvention::Snake,
    head: "# $p\n\n$p. $p.\n",
    opens: &["\n## $p\n\n", "\n### `$f`\n\n"],
    statements: &[
        "$p, $p. $p `$f` $p.\n",
        "- `$v`: $p\n- `$v`: $p, $n by default\n",
        "\n```console\n$ $f --$v $n\n```\n\n",
    ],
    close: "$p $p.\n",
};

impl Language {
    /// Writes a file.
    pub(crate) fn file(&self, random: Random) -> String {
        let mut writer = Writer::new(random, TOPICS);
        let mut text = self.filled(self.head, &mut writer);
        for _ in 0..writer.random().between(1, 5) {
            text += &self.definition(&mut writer);
        }
        text
    }

    /// Returns a definition to append to a file.
    pub(crate) fn addition(&self, random: Random) -> String {
        self.definition(&mut Writer::new(random, TOPICS))
    }

    fn definition(&self, writer: &mut Writer) -> String {
        let open = writer.random().one_of(self.opens);
        let mut text = self.filled(open, writer);
        for _ in 0..writer.random().between(3, 9) {
            let statement = writer.random().one_of(self.statements);
            text += &self.filled(statement, writer);
        }
        text + &self.filled(self.close, writer)
    }

    fn filled(&self, pattern: &str, writer: &mut Writer) -> String {
        let mut parts = pattern.split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (kind, rest) = part.split_at(1);
            match kind {
                "v" => text += &writer.thing(self.case),
                "f" => text += &writer.function(self.case),
                "T" => text += &writer.thing(NamingConvention::Pascal),
                "n" => text += &writer.random().below(4096).to_string(),
                "p" => {
                    let words = writer.random().between(4, 10);
                    text += &writer.phrase(words);
                }
                // A shell prompt.
                other => text.extend(["$", other]),
            }
            text += rest;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_file_is_small_complete_and_reproducible() {
        for language in LANGUAGES {
            let text = language.file(Random::new(3));
            assert_eq!(text, language.file(Random::new(3)));
            assert!((300..8_000).contains(&text.len()), "{text}");
            assert!(!text.replace("$ ", "").contains('$'), "{text}");
        }
    }
}
