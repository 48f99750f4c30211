use super::*;

fn facts(text: &str) -> SyntaxFacts {
    let mut facts = SyntaxFacts::default();
    facts.visit_file(&syn::parse_file(text).unwrap());
    facts
}

#[test]
fn functions_have_lengths_and_know_whether_a_trait_named_them() {
    let found = facts(
        "/// Doc.\n#[inline]\nfn one() {\n}\ntrait T { fn two(&self); fn three(&self) {} }\n\
         impl T for U { fn two(&self) { fn four() {} } }\nimpl U { fn five() {} }",
    );
    let functions = found.functions.iter();
    let functions: Vec<_> = functions
        .map(|f| (&*f.at.name, f.length, f.of_trait))
        .collect();
    let expected = [("one", 2, false), ("three", 1, false), ("two", 1, true)];
    assert_eq!(functions[..3], expected);
    assert_eq!(functions[3..], [("four", 1, false), ("five", 1, false)]);
}

#[test]
fn inline_tests_are_cut_and_other_test_modules_are_named() {
    let found = facts(
        "fn kept() {}\n#[cfg(test)]\nmod tests {\n    fn cut() {}\n}\n\
         #[cfg(test)]\nfn cut_too() {\n}\n#[cfg(any(test, feature = \"sample\"))] mod sample;\n#[cfg(not(test))] mod live;",
    );
    assert_eq!(found.functions.len(), 1);
    assert_eq!(found.test_lines, [2..=5, 6..=8]);
    assert_eq!(found.test_modules, ["sample"]);
}

#[test]
fn public_items_are_counted_with_and_without_docs() {
    let found = facts(
        "/// A.\npub struct A { pub b: u8, c: u8 }\nimpl A { pub fn d() {} fn e() {} }\n\
         pub(crate) fn f() {}\npub use g::h;\n/// I.\npub const I: u8 = 0;",
    );
    assert_eq!((found.public_items, found.documented_items), (4, 2));
    assert_eq!(found.types[0].name, "A");
}

#[test]
fn finds_bool_matches_in_macros_too() {
    let found = facts(
        "fn f() { match a { true => 1, false => 2 };\nmatch b { (true, _) => 3, _ => 4 };\n\
         g!(1, match c { false if d => 5, _ => 6 }); }\nh! { fn i() { match j { true => 7 } } }",
    );
    let lines: Vec<_> = found.bool_matches.iter().map(|place| place.line).collect();
    assert_eq!(lines, [1, 3, 4]);
}

#[test]
fn finds_tuple_parameters_and_rebindings() {
    let found = facts(
        "fn f((a, b): (&A, B)) {\nlet x = a;\nlet x = x.c().d()?;\nlet y = x.e();\n\
         let x = x.g(y);\nlet x = h(x);\nlet x = &x.i;\n}\nfn j(k: &(u8, u8)) {}\nfn l(m: u8) {}",
    );
    let tuples: Vec<_> = found.functions.iter().map(|f| f.tuple_parameter).collect();
    assert_eq!(tuples, [true, true, false]);
    let lines: Vec<_> = found.rebindings.iter().map(|place| place.line).collect();
    assert_eq!(lines, [3, 7]);
}
