//! License expressions: `MIT`, `MIT OR Apache-2.0`, `(MIT OR Apache-2.0) AND Unicode-3.0`.

/// Returns whether an expression can be met with allowed licenses only.
///
/// `AND` binds tighter than `OR`; `WITH` belongs to the name before it; the slash of old manifests means `OR`.
pub fn is_met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut parser = ExpressionParser {
        words: &words,
        allowed,
    };
    let met = parser.any_of();
    met == Some(true) && parser.words.is_empty()
}

/// A recursive-descent parser; each method returns whether its part is met, or `None` if it is malformed.
struct ExpressionParser<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl ExpressionParser<'_> {
    fn any_of(&mut self) -> Option<bool> {
        let mut met = self.all_of()?;
        while self.take("OR") {
            met |= self.all_of()?;
        }
        Some(met)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.take("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let met = self.any_of()?;
            return self.take(")").then_some(met);
        }
        let mut name = self.next()?.to_owned();
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.next()?);
        }
        Some(self.allowed.contains(&name))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::is_met;

    fn met(expression: &str) -> bool {
        is_met(
            expression,
            &["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned),
        )
    }

    #[test]
    fn one_allowed_alternative_is_enough() {
        assert!(met("MIT"));
        assert!(met("GPL-3.0-only OR MIT"));
        assert!(met("MIT/GPL-3.0-only"));
        assert!(!met("GPL-3.0-only"));
    }

    #[test]
    fn every_part_of_a_conjunction_is_needed() {
        assert!(met("MIT AND ISC"));
        assert!(!met("MIT AND GPL-3.0-only"));
        assert!(met("(MIT OR GPL-3.0-only) AND ISC"));
        assert!(met("GPL-3.0-only AND MIT OR ISC"));
        assert!(!met("GPL-3.0-only AND (MIT OR ISC)"));
    }

    #[test]
    fn an_exception_belongs_to_its_license() {
        assert!(met("Apache-2.0 WITH LLVM-exception"));
        assert!(!met("Apache-2.0"));
        assert!(!met("Apache-2.0 WITH Classpath-exception-2.0"));
    }

    #[test]
    fn a_malformed_expression_is_not_met() {
        for expression in ["", "MIT OR", "(MIT", "MIT ISC", "MIT)", "AND MIT"] {
            assert!(!met(expression), "{expression}");
        }
    }
}
