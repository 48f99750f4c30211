//! Lets the loaded library use the sanitizer and the coverage counters of the program.

fn main() {
    println!("cargo:rustc-link-arg-bin=sim_abi=-rdynamic");
}
