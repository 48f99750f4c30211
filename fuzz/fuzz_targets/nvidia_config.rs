//! Input of NVIDIA's device plugin: lines of flags and variables, an empty line, the config file.
//! The result is an error that can be shown, or a config that an `ostler.yaml` can express, or else
//! there was a warning.
#![no_main]

use config::{
    Error, Overrides, ValueOrigin,
    nvidia::{self, GivenFlags, Invocation},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (line, file) = text.split_once("\n\n").unwrap_or(("", text));
    let (args, variables): (Vec<&str>, Vec<&str>) =
        line.lines().partition(|line| line.starts_with('-'));
    let env = |name: &str| {
        let mut pairs = variables.iter().filter_map(|line| line.split_once('='));
        pairs
            .find(|pair| pair.0 == name)
            .map(|pair| pair.1.to_owned())
    };
    let flags = match GivenFlags::parse_args(&args, &env) {
        Ok(Invocation::Run(flags)) => flags,
        Ok(Invocation::Help | Invocation::Version) => return,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let resolved = nvidia::parse_v1("config.yaml", file).and_then(|file| {
        nvidia::translate_file(&flags, &file, Overrides::default(), &ValueOrigin::of_flag)
    });
    match resolved {
        Ok(resolved) => {
            let yaml = resolved.to_yaml();
            match config::parse_native("ostler.yaml", &yaml) {
                Ok(again) => assert!(again.config == resolved.config, "not the same:\n{yaml}"),
                Err(error) => assert!(!resolved.warnings.is_empty(), "{error}\n{yaml}"),
            }
        }
        Err(Error::Invalid(problems)) => {
            assert!(problems.0.iter().any(|problem| problem.is_error()));
            assert!(!problems.to_string().is_empty());
        }
        Err(error) => panic!("{error}"),
    }
});
