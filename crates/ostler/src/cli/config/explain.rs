//! `ostler config explain`.

use std::{io::Write, process::ExitCode};

use config::{Error, Origin, Resolved};

use crate::cli::{
    DropInFlags, run,
    table::{Output, table, text},
};

/// Show the effective config, with the origin of each value.
///
/// Takes the flags and variables of `ostler run`. With a config file of version v1, or with flags
/// of nvidia-device-plugin after `--`, it shows their translation. With `-o yaml` it prints an
/// equivalent ostler.yaml.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[group(skip)]
pub(super) struct Args {
    #[command(flatten)]
    run: run::Args,

    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,

    #[command(flatten)]
    drop_in: DropInFlags,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let output = self.output;
        let resolved = self.resolve()?;
        for warning in &resolved.warnings {
            anstream::eprintln!("{warning}");
        }
        let output = match output {
            Output::Table => page(&resolved),
            Output::Json => text(&resolved.rows(), false)?,
            Output::Yaml => resolved.to_yaml(),
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }

    fn resolve(self) -> Result<Resolved, Error> {
        let (file, overrides) = self.run.split();
        let file = file.as_deref();
        if !self.drop_in.claims(file) && !self.drop_in.has_flags() {
            return config::native(file, overrides, &said_by);
        }
        self.drop_in.parse(file)?.resolve(overrides, &said_by)
    }
}

/// Origin of an override: the flag of `ostler run` if it was typed, else the variable of that flag.
fn said_by(flag: &str) -> Origin {
    let (name, long) = (format!("--{flag}"), format!("--{flag}="));
    // clap's derived structs do not keep the source of a value: the arguments are searched for it.
    let typed = std::env::args().any(|arg| arg == name || arg.starts_with(&long));
    match typed {
        true => Origin::flag(flag),
        false => Origin::variable(format!("OSTLER_{}", flag.to_uppercase().replace('-', "_"))),
    }
}

/// Table of the effective config.
fn page(resolved: &Resolved) -> String {
    let mut rows = table(&["KEY", "VALUE", "FROM"]);
    for row in resolved.rows() {
        rows.add_row([row.key.clone(), row.text(), row.origin.to_string()]);
    }
    rows.trim_fmt() + "\n"
}
