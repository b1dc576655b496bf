//! Reading a litmus test.

use crate::result::Result;
use crate::syntax::{Condition, Expression, Modify, ORDERS, Order, Statement};
use std::collections::BTreeMap;

/// Reads a test, word by word.
pub(crate) struct Parser {
    words: Vec<String>,
    at: usize,
}

/// The first values, the threads, and what must not be.
type Test = (BTreeMap<String, i64>, Vec<Vec<Statement>>, Condition);

impl Parser {
    pub(crate) fn new(text: &str) -> Result<Self> {
        let mut words = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let two = rest.get(..2).unwrap_or_default();
            let length = if first.is_alphanumeric() || first == '_' {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            } else if ["==", "!=", "<=", ">=", "/\\", "\\/", "&&", "||"].contains(&two) {
                2
            } else if "{}()[];,=+-*<>~:&".contains(first) {
                1
            } else {
                return Err(format!("`{first}` means nothing here").into());
            };
            words.push(rest[..length].to_owned());
            rest = rest[length..].trim_start();
        }
        Ok(Parser { words, at: 0 })
    }

    fn peek(&self) -> &str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.words.get(self.at - 1).cloned().unwrap_or_default()
    }

    fn is(&mut self, word: &str) -> bool {
        let is = self.peek() == word;
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, word: &str) -> Result {
        match self.is(word) {
            true => Ok(()),
            false => Err(format!("`{word}` is expected, not `{}`", self.peek()).into()),
        }
    }

    /// What stands in parentheses.
    fn within<R>(&mut self, inner: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.expect("(")?;
        let inner = inner(self)?;
        self.expect(")")?;
        Ok(inner)
    }

    fn number(&mut self) -> Result<i64> {
        let sign = if self.is("-") { -1 } else { 1 };
        let word = self.next();
        Ok(sign * word.parse::<i64>().map_err(|_| format!("`{word}` is no number"))?)
    }

    /// The whole test.
    pub(crate) fn test(&mut self) -> Result<Test> {
        let mut first = BTreeMap::new();
        self.expect("{")?;
        while !self.is("}") {
            let place = self.place();
            self.expect("=")?;
            first.insert(place, self.number()?);
            self.is(";");
        }
        let mut threads = Vec::new();
        while self.peek() == format!("P{}", threads.len()) {
            self.at += 1;
            self.expect("(")?;
            while !self.is(")") {
                self.at += 1;
            }
            threads.push(self.block()?);
        }
        self.expect("exists")?;
        Ok((first, threads, self.any()?))
    }

    fn place(&mut self) -> String {
        let is_bracketed = self.is("[");
        let name = self.next();
        if is_bracketed {
            self.is("]");
        }
        name
    }

    fn block(&mut self) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        self.expect("{")?;
        while !self.is("}") {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Statement> {
        if self.is("if") {
            let condition = self.within(Self::expression)?;
            let then = self.block()?;
            let other = if self.is("else") { self.block()? } else { Vec::new() };
            return Ok(Statement::If(condition, then, other));
        }
        let statement = if self.is("*") {
            let place = self.next();
            self.expect("=")?;
            Statement::Store(place, self.expression()?, Order::Plain)
        } else if self.is("atomic_store_explicit") {
            self.within(|it| {
                let place = it.next();
                it.expect(",")?;
                Ok(Statement::Store(place, it.expression()?, it.order()?))
            })?
        } else if self.is("atomic_thread_fence") {
            let word = self.within(|it| Ok(it.next()))?;
            Statement::Fence(order(&word)?)
        } else if self.peek().starts_with("atomic_") {
            Statement::Evaluate(self.expression()?)
        } else {
            self.is("int");
            let register = self.next();
            self.expect("=")?;
            Statement::Assign(register, self.expression()?)
        };
        self.expect(";")?;
        Ok(statement)
    }

    /// `, memory_order_…`
    fn order(&mut self) -> Result<Order> {
        self.expect(",")?;
        let word = self.next();
        order(&word)
    }

    fn expression(&mut self) -> Result<Expression> {
        let mut left = self.operand()?;
        for operator in ["+", "-", "==", "!=", "<", "&&"] {
            if self.is(operator) {
                let right = self.expression()?;
                left = Expression::Binary(Box::new(left), operator, Box::new(right));
                break;
            }
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expression> {
        if self.peek() == "(" {
            return self.within(Self::expression);
        }
        if self.is("*") {
            return Ok(Expression::Load(self.next(), Order::Plain));
        }
        let word = self.next();
        let modify = match word.as_str() {
            "atomic_fetch_add_explicit" => Some(Modify::Add),
            "atomic_fetch_sub_explicit" => Some(Modify::Sub),
            "atomic_exchange_explicit" => Some(Modify::Exchange),
            _ => None,
        };
        if let Some(modify) = modify {
            return self.within(|it| {
                let place = it.next();
                it.expect(",")?;
                Ok(Expression::Modify(place, modify, Box::new(it.expression()?), it.order()?))
            });
        }
        match word.as_str() {
            "atomic_load_explicit" => {
                self.within(|it| Ok(Expression::Load(it.next(), it.order()?)))
            }
            "atomic_compare_exchange_strong_explicit" => self.within(|it| {
                let place = it.next();
                it.expect(",")?;
                let expected = it.next();
                it.expect(",")?;
                let new = Box::new(it.expression()?);
                let (success, failure) = (it.order()?, it.order()?);
                Ok(Expression::CompareExchange(place, expected, new, success, failure))
            }),
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
                Ok(Expression::Number(word.parse()?))
            }
            _ => Ok(Expression::Register(word)),
        }
    }

    fn any(&mut self) -> Result<Condition> {
        let mut parts = vec![self.all()?];
        while self.is("\\/") {
            parts.push(self.all()?);
        }
        Ok(Condition::Any(parts))
    }

    fn all(&mut self) -> Result<Condition> {
        let mut parts = vec![self.atom()?];
        while self.is("/\\") {
            parts.push(self.atom()?);
        }
        Ok(Condition::All(parts))
    }

    fn atom(&mut self) -> Result<Condition> {
        if self.is("~") {
            return Ok(Condition::Not(Box::new(self.atom()?)));
        }
        if self.peek() == "(" {
            return self.within(Self::any);
        }
        let word = self.place();
        if self.is(":") {
            let thread = word.parse().map_err(|_| format!("`{word}` is no thread"))?;
            let register = self.next();
            self.expect("=")?;
            return Ok(Condition::Register(thread, register, self.number()?));
        }
        self.expect("=")?;
        Ok(Condition::Place(word, self.number()?))
    }
}

fn order(word: &str) -> Result<Order> {
    let known = ORDERS.iter().find(|(name, _)| *name == word);
    known.map(|(_, order)| *order).ok_or_else(|| format!("`{word}` is no ordering").into())
}
