//! Words, numbers, names and marks of the printed form, each with its place.

use super::ParseError;
use crate::ir::{Location, Name};

/// What a piece of text is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Letters, digits and `_`, beginning with a letter or `_`.
    Word,
    /// What begins with a digit, or with a sign and one more character.
    Number,
    /// `%NAME`.
    Value,
    /// `#NUMBER`.
    Array,
    /// Text in quotes, without them, escapes resolved.
    Text(String),
    /// One of `( ) [ ] { } < > , : = | @`.
    Mark,
    /// The end of the text.
    End,
}

/// A piece of text and its place.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    /// As it stands there.
    pub text: &'a str,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

impl Token<'_> {
    pub fn location(&self, file: Name) -> Location {
        Location { file, line: self.line, column: self.column }
    }

    /// For a message.
    pub fn found(&self) -> String {
        if self.kind == Kind::End {
            return "the end of the text".to_owned();
        }
        let mut chars = self.text.chars();
        let head: String = chars.by_ref().take(40).collect();
        if chars.next().is_some() { format!("`{head}…`") } else { format!("`{head}`") }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    column: u32,
    file: Name,
}

/// All tokens of a text; the last one is the end.
pub(super) fn tokens(text: &str, file: Name) -> Result<Vec<Token<'_>>, ParseError> {
    let mut lexer = Lexer { text, at: 0, line: 1, column: 1, file };
    let mut all = vec![];
    loop {
        lexer.skip_blanks();
        let (start, line, column) = (lexer.at, lexer.line, lexer.column);
        let kind = lexer.token()?;
        let end = kind == Kind::End;
        all.push(Token { kind, text: &text[start..lexer.at], line, column });
        if end {
            return Ok(all);
        }
    }
}

/// What names consist of.
fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        if c == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> usize {
        let start = self.at;
        while self.peek().is_some_and(&mut wanted) {
            self.next();
        }
        self.at - start
    }

    /// Blanks, line ends and comments.
    fn skip_blanks(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if self.peek() != Some(';') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn error(&self, line: u32, column: u32, found: &str, wanted: &str) -> ParseError {
        let location = Location { file: self.file, line, column };
        ParseError { location, found: found.to_owned(), wanted: wanted.to_owned() }
    }

    fn token(&mut self) -> Result<Kind, ParseError> {
        let (line, column) = (self.line, self.column);
        let Some(c) = self.next() else { return Ok(Kind::End) };
        match c {
            '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | ':' | '=' | '|' | '@' => Ok(Kind::Mark),
            '"' => self.quoted(line, column),
            '%' | '#' => match self.take_while(|c| in_word(c) || c == '.') {
                0 => Err(self.error(line, column, &format!("`{c}`"), "a name after it")),
                _ => Ok(if c == '%' { Kind::Value } else { Kind::Array }),
            },
            '0'..='9' | '-' | '+' => {
                let mut last = c;
                let hex = c == '0' && matches!(self.peek(), Some('x' | 'X'));
                let len = self.take_while(|n| {
                    let exponent = matches!(last, 'e' | 'E') && !hex;
                    last = n;
                    in_word(n) || n == '.' || (exponent && matches!(n, '+' | '-'))
                });
                if len == 0 && !c.is_ascii_digit() {
                    return Err(self.error(line, column, &format!("`{c}`"), "a number after it"));
                }
                Ok(Kind::Number)
            }
            c if in_word(c) => {
                self.take_while(in_word);
                Ok(Kind::Word)
            }
            c => Err(self.error(line, column, &format!("`{}`", c.escape_default()), "a word, number, name or mark")),
        }
    }

    /// The rest of a text in quotes. See [`super::super::parts::quoted`].
    fn quoted(&mut self, line: u32, column: u32) -> Result<Kind, ParseError> {
        let mut out = String::new();
        loop {
            let (here, at) = (self.line, self.column);
            match self.next() {
                Some('"') => return Ok(Kind::Text(out)),
                None | Some('\n') => {
                    return Err(self.error(line, column, "a text in quotes without an end", "`\"` on the same line"));
                }
                Some('\\') => {
                    let escape = self.escape();
                    let wanted = r#"one of \" \\ \n \t \r \u{HEX}"#;
                    out.push(escape.ok_or_else(|| self.error(here, at, "a wrong escape", wanted))?);
                }
                Some(c) => out.push(c),
            }
        }
    }

    /// The character that stands behind a `\`.
    fn escape(&mut self) -> Option<char> {
        match self.next()? {
            '"' => Some('"'),
            '\\' => Some('\\'),
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'u' => {
                if self.next()? != '{' {
                    return None;
                }
                let start = self.at;
                self.take_while(|c| c.is_ascii_hexdigit());
                let code = u32::from_str_radix(&self.text[start..self.at], 16).ok()?;
                if self.next()? != '}' {
                    return None;
                }
                char::from_u32(code)
            }
            _ => None,
        }
    }
}
