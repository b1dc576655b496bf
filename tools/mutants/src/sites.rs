//! Where in a file mutants can be switched.

use crate::listed::{Kind, Mutant, Place};
use proc_macro2::{LineColumn, Span};
use runner::Result;
use std::collections::HashMap;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Where a mutant can be switched.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// The statements of a body.
    Body,
    /// An expression with two operands.
    Binary {
        left: (Place, Place),
        right: (Place, Place),
    },
    /// An expression that may be written in another way: with a part replaced.
    Whole,
    /// A guard, and where an arm's pattern ends if it has none.
    Guard,
    Pattern,
}

impl Shape {
    /// Of shapes with the same ends the outer one has the lower rank.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Shape::Body => 0,
            Shape::Guard | Shape::Pattern => 1,
            Shape::Binary { .. } | Shape::Whole => 2,
        }
    }
}

/// Sites, by the start of what cargo-mutants replaces.
#[derive(Default)]
pub(crate) struct Found {
    sites: HashMap<(Place, Kind), Site>,
    structs: Vec<(Place, Place)>,
    /// How deep we are in what is computed by the compiler, where nothing can be switched.
    constant: usize,
}

fn place(at: LineColumn) -> Place {
    Place { line: at.line, column: at.column }
}

fn ends(span: Span) -> (Place, Place) {
    (place(span.start()), place(span.end()))
}

impl Found {
    pub(crate) fn within(text: &str) -> Result<Self> {
        let mut found = Found::default();
        found.visit_file(&syn::parse_file(text)?);
        Ok(found)
    }

    pub(crate) fn site(&self, mutant: &Mutant) -> Option<Site> {
        match mutant.kind {
            Kind::Field => {
                let around = |it: &&(Place, Place)| it.0 <= mutant.from && mutant.to <= it.1;
                let (from, to) = *self.structs.iter().filter(around).max()?;
                Some(Site { from, to, shape: Shape::Whole })
            }
            kind => self.sites.get(&(mutant.from, kind)).cloned(),
        }
    }

    fn add(&mut self, key: Place, kind: Kind, (from, to): (Place, Place), shape: Shape) {
        if self.constant == 0 {
            self.sites.insert((key, kind), Site { from, to, shape });
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let is_constant = usize::from(signature.constness.is_some());
        self.constant += is_constant;
        if let (Some(first), Some(last)) = (block.stmts.first(), block.stmts.last()) {
            let (from, to) = (ends(first.span()).0, ends(last.span()).1);
            self.add(from, Kind::Body, (from, to), Shape::Body);
        }
        visit::visit_block(self, block);
        self.constant -= is_constant;
    }

    fn constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constant += 1;
        visit(self);
        self.constant -= 1;
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.function(&it.sig, &it.block);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        self.function(&it.sig, &it.block);
    }

    fn visit_trait_item_fn(&mut self, it: &'ast syn::TraitItemFn) {
        if let Some(block) = &it.default {
            self.function(&it.sig, block);
        }
    }

    fn visit_item_const(&mut self, it: &'ast syn::ItemConst) {
        self.constant(|found| visit::visit_item_const(found, it));
    }

    fn visit_item_static(&mut self, it: &'ast syn::ItemStatic) {
        self.constant(|found| visit::visit_item_static(found, it));
    }

    fn visit_impl_item_const(&mut self, it: &'ast syn::ImplItemConst) {
        self.constant(|found| visit::visit_impl_item_const(found, it));
    }

    fn visit_expr_const(&mut self, it: &'ast syn::ExprConst) {
        self.constant(|found| visit::visit_expr_const(found, it));
    }

    fn visit_expr_repeat(&mut self, it: &'ast syn::ExprRepeat) {
        self.visit_expr(&it.expr);
    }

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_expr_binary(&mut self, it: &'ast syn::ExprBinary) {
        let shape = Shape::Binary { left: ends(it.left.span()), right: ends(it.right.span()) };
        self.add(ends(it.op.span()).0, Kind::Binary, ends(it.span()), shape);
        visit::visit_expr_binary(self, it);
    }

    fn visit_expr_unary(&mut self, it: &'ast syn::ExprUnary) {
        self.add(ends(it.op.span()).0, Kind::Unary, ends(it.span()), Shape::Whole);
        visit::visit_expr_unary(self, it);
    }

    fn visit_expr_struct(&mut self, it: &'ast syn::ExprStruct) {
        if self.constant == 0 {
            self.structs.push(ends(it.span()));
        }
        visit::visit_expr_struct(self, it);
    }

    fn visit_arm(&mut self, it: &'ast syn::Arm) {
        let start = ends(it.span()).0;
        match &it.guard {
            Some((_, guard)) => {
                let guard = ends(guard.span());
                self.add(guard.0, Kind::Guard, guard, Shape::Guard);
                self.add(start, Kind::Arm, guard, Shape::Guard);
            }
            None => {
                let end = ends(it.pat.span()).1;
                self.add(start, Kind::Arm, (end, end), Shape::Pattern);
            }
        }
        visit::visit_arm(self, it);
    }
}
