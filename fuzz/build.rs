//! Lets the loaded library find the sanitizer and the coverage counters in the program.

fn main() {
    println!("cargo:rustc-link-arg-bin=sim_abi=-rdynamic");
}
