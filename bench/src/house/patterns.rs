//! Questions about single patterns, bindings and attributes.

use syn::{Attribute, Expr, FnArg, Ident, Lit, Local, Meta, Pat, Type};

/// True for `#[cfg(test)]` and for the feature `sample`, behind which are the crates' test kits.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string();
        let words: Vec<_> = condition.split(|c: char| !c.is_alphanumeric()).collect();
        let is_asked = words.contains(&"test") || words.contains(&"sample");
        list.path.is_ident("cfg") && is_asked && !words.contains(&"not")
    })
}

/// True for `(a, b): (A, B)` and `pair: &(A, B)`.
pub(super) fn is_tuple(parameter: &FnArg) -> bool {
    let FnArg::Typed(parameter) = parameter else {
        return false;
    };
    match &*parameter.ty {
        Type::Tuple(_) => true,
        Type::Reference(reference) => matches!(*reference.elem, Type::Tuple(_)),
        _ => false,
    }
}

/// True for `true` and `false`, with a guard or without.
pub(super) fn is_bool(pattern: &Pat) -> bool {
    match pattern {
        Pat::Lit(literal) => matches!(literal.lit, Lit::Bool(_)),
        Pat::Guard(guarded) => is_bool(&guarded.pat),
        _ => false,
    }
}

/// The name that a `let` binds, if it is one name.
pub(super) fn bound_name(binding: &Local) -> Option<&Ident> {
    match &binding.pat {
        Pat::Ident(name) => Some(&name.ident),
        Pat::Type(typed) => match &*typed.pat {
            Pat::Ident(name) => Some(&name.ident),
            _ => None,
        },
        _ => None,
    }
}

/// True if the value of a `let` is a chain of calls or fields that begins with this name.
pub(super) fn reads_name(binding: &Local, name: &Ident) -> bool {
    let mut value = binding.init.as_ref().map(|init| &*init.expr);
    while let Some(expression) = value {
        value = match expression {
            Expr::Await(inner) => Some(&*inner.base),
            Expr::Field(inner) => Some(&*inner.base),
            Expr::MethodCall(inner) => Some(&*inner.receiver),
            Expr::Reference(inner) => Some(&*inner.expr),
            Expr::Try(inner) => Some(&*inner.expr),
            Expr::Path(path) => return path.path.is_ident(name),
            _ => None,
        };
    }
    false
}
