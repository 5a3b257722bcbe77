//! The parts of an operation, as its declaration asks for them.

use super::lex::{Kind, Token};
use super::{Parser, Result};
use crate::ir::parts::Read;
use crate::ir::{Bits, Block, Location, ParseError, Value};

/// `key=value` pairs that nobody asked for yet.
#[derive(Default)]
pub(super) struct Attributes {
    left: Vec<Attribute>,
    /// Keys that were asked for.
    known: Vec<String>,
}

struct Attribute {
    key: String,
    /// The value's text; quoted text without its quotes.
    text: String,
    /// The value, if it is one.
    value: Option<Value>,
    /// Of the key.
    place: Location,
    /// Of the value.
    at: Location,
    /// The value as it stands there.
    found: String,
}

/// The key that begins one item of a list; what follows up to the next one belongs to it.
const ITEM: &str = "form";

impl Attributes {
    /// Takes the attribute `key` if it is there.
    fn take(&mut self, key: &str) -> Option<Attribute> {
        if !self.known.iter().any(|k| k == key) {
            self.known.push(key.to_owned());
        }
        let item = self.left.iter().position(|a| a.key == ITEM).unwrap_or(self.left.len());
        let range = if key == ITEM { item.min(1)..self.left.len().min(1) } else { 0..item };
        let found = self.left[range].iter().position(|a| a.key == key)?;
        Some(self.left.remove(found))
    }
}

impl<'a> Parser<'a> {
    /// Reads all attributes, unless they are read.
    fn attributes(&mut self) -> Result<&mut Attributes> {
        if self.current.attributes.is_none() {
            let mut left = vec![];
            while self.peek().kind == Kind::Word && self.tokens.get(self.at + 1).is_some_and(|t| t.text == "=") {
                let key = self.next();
                self.next();
                left.push(self.attribute(&key)?);
            }
            self.current.attributes = Some(Attributes { left, known: vec![] });
        }
        Ok(self.current.attributes.get_or_insert_default())
    }

    fn attribute(&mut self, key: &Token<'a>) -> Result<Attribute> {
        let token = self.peek().clone();
        let (text, value) = match &token.kind {
            Kind::Value => (token.text.to_owned(), Some(self.used()?)),
            Kind::Word | Kind::Number => (self.next().text.to_owned(), None),
            Kind::Text(text) => {
                self.next();
                (text.clone(), None)
            }
            _ => return self.wrong_here(format!("the value of `{}`", key.text)),
        };
        let (place, at) = (key.location(self.file), token.location(self.file));
        Ok(Attribute { key: key.text.to_owned(), text, value, place, at, found: token.found() })
    }

    /// Refuses attributes that the operation does not have.
    pub(super) fn finish_attributes(&mut self, mnemonic: &str) -> Result<()> {
        let Attributes { left, known } = self.attributes()?;
        let Some(first) = left.first() else { return Ok(()) };
        let wanted = match known.as_slice() {
            [] => format!("no attribute of `{mnemonic}`"),
            known => format!("another attribute of `{mnemonic}` ({}=), each once,", known.join("=, ")),
        };
        Err(ParseError { location: first.place, found: format!("`{}=`", first.key), wanted })
    }

    /// What separates positional operands.
    fn positional(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.current.positional, true) { self.expect(",") } else { Ok(()) }
    }
}

impl Read for Parser<'_> {
    type Error = ParseError;

    fn value(&mut self) -> Result<Value> {
        self.positional()?;
        self.used()
    }

    fn list(&mut self) -> Result<Vec<Value>> {
        self.positional()?;
        self.expect("[")?;
        if self.accept("]") {
            return Ok(vec![]);
        }
        let list = self.used_list()?;
        self.expect("]")?;
        Ok(list)
    }

    fn word<T>(&mut self, wanted: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        self.positional()?;
        self.read(wanted, parse)
    }

    fn constant(&mut self) -> Result<Bits> {
        self.positional()?;
        let token = self.peek();
        let wanted = match (&token.kind, self.current.result) {
            (Kind::Word | Kind::Number, Some(ty)) => ty.scalar().parse_constant(token.text),
            (_, Some(ty)) => Err(format!("a constant of type {ty}")),
            (_, None) => Err("the result of a constant, which stands before it,".to_owned()),
        };
        match wanted {
            Ok(bits) => {
                self.next();
                Ok(bits)
            }
            Err(wanted) => self.wrong_here(wanted),
        }
    }

    fn keyed<T>(&mut self, key: &str, wanted: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(attribute) = self.attributes()?.take(key) else { return Ok(None) };
        match parse(&attribute.text).filter(|_| attribute.value.is_none()) {
            Some(value) => Ok(Some(value)),
            None => Err(ParseError { location: attribute.at, found: attribute.found, wanted: wanted.to_owned() }),
        }
    }

    fn keyed_value(&mut self, key: &str) -> Result<Option<Value>> {
        let Some(attribute) = self.attributes()?.take(key) else { return Ok(None) };
        match attribute.value {
            Some(value) => Ok(Some(value)),
            None => {
                let wanted = "a value, such as %0,".to_owned();
                Err(ParseError { location: attribute.at, found: attribute.found, wanted })
            }
        }
    }

    fn region(&mut self) -> Result<Block> {
        self.attributes()?;
        self.nested_block()
    }

    fn error(&self, wanted: String) -> ParseError {
        self.wrong(self.peek(), wanted)
    }
}
