//! `ostler config explain`.

use std::{io::Write, process::ExitCode};

use config::{Error, Resolved, ValueOrigin};

use crate::cli::{
    DropInFlags, run,
    table::{OutputFormat, new_table, serialize_output},
};

/// Show the effective config, with the origin of each value.
///
/// Takes the flags and variables of `ostler run`. With a config file of version v1, or with flags
/// of nvidia-device-plugin after `--`, it shows their translation. With `-o yaml` it prints an
/// equivalent ostler.yaml.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[group(skip)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    run: run::RunArgs,

    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: OutputFormat,

    #[command(flatten)]
    drop_in: DropInFlags,
}

// === impl ExplainArgs ===

impl ExplainArgs {
    pub(super) fn explain_config(self) -> anyhow::Result<ExitCode> {
        let output = self.output;
        let resolved = self.resolve_flags()?;
        for warning in &resolved.warnings {
            anstream::eprintln!("{warning}");
        }
        let output = match output {
            OutputFormat::Table => format_config(&resolved),
            OutputFormat::Json => serialize_output(&resolved.list_values(), false)?,
            OutputFormat::Yaml => resolved.to_yaml(),
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }

    fn resolve_flags(self) -> Result<Resolved, Error> {
        let (file, overrides) = self.run.split_flags();
        let file = file.as_deref();
        if !self.drop_in.is_v1_file(file) && !self.drop_in.has_flags() {
            return config::native(file, overrides, &said_by);
        }
        self.drop_in
            .parse_flags(file)?
            .resolve_named_file(overrides, &said_by)
    }
}

/// Origin of an override: the flag of `ostler run` if it was typed, else the variable of that flag.
fn said_by(flag: &str) -> ValueOrigin {
    let (name, long) = (format!("--{flag}"), format!("--{flag}="));
    // clap's derived structs do not keep the source of a value: the arguments are searched for it.
    let typed = std::env::args().any(|arg| arg == name || arg.starts_with(&long));
    match typed {
        true => ValueOrigin::of_flag(flag),
        false => {
            ValueOrigin::of_variable(format!("OSTLER_{}", flag.to_uppercase().replace('-', "_")))
        }
    }
}

/// Table of the effective config.
fn format_config(resolved: &Resolved) -> String {
    let mut rows = new_table(&["KEY", "VALUE", "FROM"]);
    for row in resolved.list_values() {
        rows.add_row([row.key.clone(), row.show_value(), row.origin.to_string()]);
    }
    rows.trim_fmt() + "\n"
}
