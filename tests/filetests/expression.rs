//! Expressions of `each`: whole numbers, or the bits of a float that is passed on.

/// A value of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// A whole number.
    Whole(i128),
    /// An element of a float buffer.
    Float(u64),
}

/// What names stand for.
pub trait Names {
    /// A plain name.
    fn name(&self, name: &str) -> Option<Number>;
    /// An element of a buffer before the launch; `None` if there is none.
    fn element(&self, buffer: &str, index: i128) -> Option<Number>;
}

struct Parser<'a, N> {
    tokens: &'a [String],
    at: usize,
    names: &'a N,
}

/// Operators by precedence, loosest first.
const LEVELS: [&[&str]; 7] =
    [&["==", "!=", "<", "<=", ">", ">="], &["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

/// Its words and marks.
pub fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = vec![];
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let len = if c.is_ascii_alphanumeric() || c == '_' {
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if ["==", "!=", "<=", ">=", "<<", ">>"].iter().any(|two| rest.starts_with(two)) {
            2
        } else if "+-*/%&|^<>()[]?:~!,".contains(c) {
            1
        } else {
            return Err(format!("`{c}` in an expression"));
        };
        tokens.push(rest[..len].to_owned());
        rest = rest[len..].trim_start();
    }
    Ok(tokens)
}

/// The value of an expression.
pub fn evaluate(tokens: &[String], names: &impl Names) -> Result<Number, String> {
    let mut parser = Parser { tokens, at: 0, names };
    let value = parser.choice(true)?;
    match parser.peek() {
        None => Ok(value),
        Some(extra) => Err(format!("`{extra}` behind an expression")),
    }
}

fn whole(n: Number) -> Result<i128, String> {
    match n {
        Number::Whole(n) => Ok(n),
        Number::Float(_) => Err("a float element can be chosen, not computed with".to_owned()),
    }
}

fn apply(operator: &str, a: i128, b: i128) -> Option<i128> {
    let shift = || u32::try_from(b).ok();
    match operator {
        "==" => Some((a == b).into()),
        "!=" => Some((a != b).into()),
        "<" => Some((a < b).into()),
        "<=" => Some((a <= b).into()),
        ">" => Some((a > b).into()),
        ">=" => Some((a >= b).into()),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "&" => Some(a & b),
        "<<" => a.checked_shl(shift()?),
        ">>" => a.checked_shr(shift()?),
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        _ => a.checked_rem(b),
    }
}

impl<N: Names> Parser<'_, N> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn accept(&mut self, token: &str) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(format!("no `{token}` in an expression")) }
    }

    /// `live`: whether its value counts; what is not chosen may be nonsense.
    fn choice(&mut self, live: bool) -> Result<Number, String> {
        let condition = self.level(0, live)?;
        if !self.accept("?") {
            return Ok(condition);
        }
        let holds = whole(condition)? != 0;
        let a = self.choice(live && holds)?;
        self.expect(":")?;
        let b = self.choice(live && !holds)?;
        Ok(if holds { a } else { b })
    }

    fn level(&mut self, level: usize, live: bool) -> Result<Number, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(live) };
        let mut left = self.level(level + 1, live)?;
        while let Some(operator) = operators.iter().find(|o| self.peek() == Some(**o)) {
            self.at += 1;
            let right = self.level(level + 1, live)?;
            if live {
                let value = apply(operator, whole(left)?, whole(right)?);
                left = Number::Whole(value.ok_or_else(|| format!("`{operator}` has no value"))?);
            }
        }
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> Result<Number, String> {
        let operator = ["-", "~", "!"].into_iter().find(|o| self.accept(o));
        let Some(operator) = operator else { return self.primary(live) };
        let n = whole(self.unary(live)?)?;
        Ok(Number::Whole(match operator {
            "-" => -n,
            "~" => !n,
            _ => (n == 0).into(),
        }))
    }

    fn primary(&mut self, live: bool) -> Result<Number, String> {
        let token = self.peek().ok_or("an expression ends too early")?.to_owned();
        self.at += 1;
        if token == "(" {
            let value = self.choice(live)?;
            self.expect(")")?;
            return Ok(value);
        }
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            let (digits, radix) = token.strip_prefix("0x").map_or((token.as_str(), 10), |hex| (hex, 16));
            return i128::from_str_radix(digits, radix)
                .map(Number::Whole)
                .map_err(|_| format!("`{token}` is no number"));
        }
        if self.accept("[") {
            let index = whole(self.choice(live)?)?;
            self.expect("]")?;
            let element = self.names.element(&token, index);
            return if live {
                element.ok_or_else(|| format!("there is no {token}[{index}]"))
            } else {
                Ok(Number::Whole(1))
            };
        }
        if self.accept("(") {
            return self.call(&token, live);
        }
        self.names.name(&token).ok_or_else(|| format!("`{token}` stands for nothing"))
    }

    fn call(&mut self, function: &str, live: bool) -> Result<Number, String> {
        let mut args = vec![whole(self.choice(live)?)?];
        while self.accept(",") {
            args.push(whole(self.choice(live)?)?);
        }
        self.expect(")")?;
        Ok(Number::Whole(match (function, args.as_slice()) {
            ("min", [a, b]) => *a.min(b),
            ("max", [a, b]) => *a.max(b),
            ("popcount", [a]) => a.count_ones().into(),
            _ => return Err(format!("there is no `{function}` of {} numbers", args.len())),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Some10;

    impl Names for Some10 {
        fn name(&self, name: &str) -> Option<Number> {
            (name == "i").then_some(Number::Whole(10))
        }

        fn element(&self, buffer: &str, index: i128) -> Option<Number> {
            match buffer {
                "x" if index < 4 => Some(Number::Whole(index * 100)),
                "f" if index < 4 => Some(Number::Float(7)),
                _ => None,
            }
        }
    }

    #[test]
    fn expressions_have_their_value_or_an_error() {
        let value = |text: &str| tokens(text).and_then(|t| evaluate(&t, &Some10));
        for (text, n) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3 - -1", 10),
            ("i ^ 3 & 1", 11),
            ("1 << 3 | 1", 9),
            ("i % 4 == 2 ? 5 : 6", 5),
            ("i < 5 ? x[9] : x[3] - 1", 299),
            ("!0 + ~0", 0),
            ("min(i, 3) + max(i, 3) + popcount(0xff)", 21),
            ("7 / 2", 3),
        ] {
            assert_eq!(value(text), Ok(Number::Whole(n)), "{text}");
        }
        assert_eq!(value("i == 10 ? f[1] : f[0]"), Ok(Number::Float(7)));
        for text in
            ["", "1 +", "f[1] + 1", "x[4]", "y[0]", "j", "1 2", "1 / 0", "1 << 200", "(1", "x[1", "9a", "1 ? 2", "@"]
        {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
