//! The parts of a litmus test: orderings, expressions, statements, the condition.

/// An ordering of C11, without `consume`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// A plain access.
    Plain,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl Order {
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    pub(crate) fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }

    /// One step weaker, as the audit of the models weakens it.
    pub(crate) fn without(self, half: &str) -> Option<Order> {
        match (half, self) {
            ("fence" | "light_fence" | "heavy_fence", Order::SeqCst) => Some(Order::AcqRel),
            ("acquire", Order::Acquire) | ("release", Order::Release) => Some(Order::Relaxed),
            ("acquire", Order::AcqRel) => Some(Order::Release),
            ("release", Order::AcqRel) => Some(Order::Acquire),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Number(i64),
    Register(String),
    Binary(Box<Expression>, &'static str, Box<Expression>),
    Load(String, Order),
    /// What is there afterwards, of what was there (`old`); its value is what was there.
    Modify(String, Modify, Box<Expression>, Order),
    /// Place, place of the expected value, new value, orderings of success and failure.
    CompareExchange(String, String, Box<Expression>, Order, Order),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Modify {
    Add,
    Sub,
    Exchange,
}

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Assign(String, Expression),
    Store(String, Expression, Order),
    Fence(Order),
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// For its effect.
    Evaluate(Expression),
}

/// What must not be, or may be.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Register(usize, String, i64),
    Place(String, i64),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// The names of the orderings in C.
pub(crate) const ORDERS: [(&str, Order); 5] = [
    ("memory_order_relaxed", Order::Relaxed),
    ("memory_order_acquire", Order::Acquire),
    ("memory_order_release", Order::Release),
    ("memory_order_acq_rel", Order::AcqRel),
    ("memory_order_seq_cst", Order::SeqCst),
];
