//! The shim as a program of its own, for the tests. In the product it is a command of `ostler`.

use std::{ffi::OsString, io};

fn main() -> io::Result<()> {
    let args = std::env::args_os().skip_while(|arg| arg != "--");
    let command: Vec<OsString> = args.skip(1).collect();
    prepare::command::shim(&command)
}
