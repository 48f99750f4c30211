//! Facts of a file's items and expressions, gathered by a visitor.

use std::ops::RangeInclusive;

use syn::{
    Attribute, Block, Expr, ExprMatch, Ident, ImplItem, Item, ItemImpl, ItemMod, Macro, Signature,
    Stmt, Token, Visibility,
    punctuated::Punctuated,
    token::Brace,
    visit::{self, Visit},
};

use super::patterns::{bound_name, is_bool, is_test, is_tuple, reads_name};

/// Facts of what is not a test.
#[derive(Debug, Default)]
pub(super) struct SyntaxFacts {
    pub(super) functions: Vec<Function>,
    /// Structs, enums, unions, traits and aliases.
    pub(super) types: Vec<Place>,
    /// `match` with `true` or `false` as a pattern.
    pub(super) bool_matches: Vec<Place>,
    /// `let x = x.…` directly below another `let x`.
    pub(super) rebindings: Vec<Place>,
    /// Items, methods and fields marked `pub`.
    pub(super) public_items: usize,
    /// Those of them with a doc comment.
    pub(super) documented_items: usize,
    /// Names of test modules in files of their own.
    pub(super) test_modules: Vec<String>,
    /// Lines of inline test modules and of functions for tests.
    pub(super) test_lines: Vec<RangeInclusive<usize>>,
}

/// A function with a body.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) at: Place,
    /// Lines from `fn` to the closing brace.
    pub(super) length: usize,
    /// True if a trait that is implemented here chose the name.
    pub(super) of_trait: bool,
    pub(super) tuple_parameter: bool,
}

/// A name and the line it is on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) line: usize,
}

// === impl SyntaxFacts ===

impl SyntaxFacts {
    fn add_function(&mut self, signature: &Signature, body: &Block, of_trait: bool) {
        let first = signature.fn_token.span.start().line;
        let last = body.brace_token.span.close().end().line;
        self.functions.push(Function {
            at: Place::of_name(&signature.ident),
            length: last - first + 1,
            of_trait,
            tuple_parameter: signature.inputs.iter().any(is_tuple),
        });
    }

    fn add_public(&mut self, visibility: &Visibility, attributes: &[Attribute]) {
        if matches!(visibility, Visibility::Public(_)) {
            let documented = attributes.iter().any(|a| a.path().is_ident("doc"));
            self.public_items += 1;
            self.documented_items += usize::from(documented);
        }
    }

    /// Remembers the lines of an item behind `#[cfg(test)]`; false for others.
    fn cut_test(&mut self, attributes: &[Attribute], braces: &Brace) -> bool {
        let Some(first) = attributes.first().filter(|_| is_test(attributes)) else {
            return false;
        };
        let last = braces.span.close().end().line;
        self.test_lines
            .push(first.pound_token.span.start().line..=last);
        true
    }
}

impl<'ast> Visit<'ast> for SyntaxFacts {
    fn visit_item(&mut self, item: &'ast Item) {
        let (visibility, attributes, type_name) = match item {
            Item::Const(i) => (&i.vis, &i.attrs, None),
            Item::Enum(i) => (&i.vis, &i.attrs, Some(&i.ident)),
            Item::Fn(i) => (&i.vis, &i.attrs, None),
            Item::Static(i) => (&i.vis, &i.attrs, None),
            Item::Struct(i) => (&i.vis, &i.attrs, Some(&i.ident)),
            Item::Trait(i) => (&i.vis, &i.attrs, Some(&i.ident)),
            Item::Type(i) => (&i.vis, &i.attrs, Some(&i.ident)),
            Item::Union(i) => (&i.vis, &i.attrs, Some(&i.ident)),
            _ => return visit::visit_item(self, item),
        };
        self.add_public(visibility, attributes);
        self.types.extend(type_name.map(Place::of_name));
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if let Some((braces, _)) = &module.content {
            if !self.cut_test(&module.attrs, braces) {
                visit::visit_item_mod(self, module);
            }
        } else if is_test(&module.attrs) {
            self.test_modules.push(module.ident.to_string());
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        for item in &block.items {
            if let ImplItem::Fn(method) = item {
                self.add_function(&method.sig, &method.block, block.trait_.is_some());
            }
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !self.cut_test(&function.attrs, &function.block.brace_token) {
            self.add_function(&function.sig, &function.block, false);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Fn(method) => self.add_public(&method.vis, &method.attrs),
            ImplItem::Const(constant) => self.add_public(&constant.vis, &constant.attrs),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item_fn(&mut self, method: &'ast syn::TraitItemFn) {
        if let Some(body) = &method.default {
            self.add_function(&method.sig, body, false);
        }
        visit::visit_trait_item_fn(self, method);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.add_public(&field.vis, &field.attrs);
        visit::visit_field(self, field);
    }

    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        if expression.arms.iter().any(|arm| is_bool(&arm.pat)) {
            let line = expression.match_token.span.start().line;
            let name = "match on a bool".to_owned();
            self.bool_matches.push(Place { name, line });
        }
        visit::visit_expr_match(self, expression);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        for pair in block.stmts.windows(2) {
            let [Stmt::Local(first), Stmt::Local(second)] = pair else {
                continue;
            };
            let name = bound_name(second).filter(|name| bound_name(first) == Some(name));
            self.rebindings.extend(
                name.filter(|name| reads_name(second, name))
                    .map(Place::of_name),
            );
        }
        visit::visit_block(self, block);
    }

    /// Macros are looked into if their arguments are expressions or items.
    fn visit_macro(&mut self, call: &'ast Macro) {
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(arguments) = call.parse_body_with(arguments) {
            for argument in &arguments {
                Visit::visit_expr(self, argument);
            }
        } else if let Ok(items) = call.parse_body::<syn::File>() {
            Visit::visit_file(self, &items);
        }
    }
}

// === impl Place ===

impl Place {
    fn of_name(name: &Ident) -> Self {
        Self {
            name: name.to_string(),
            line: name.span().start().line,
        }
    }
}

#[cfg(test)]
mod tests;
