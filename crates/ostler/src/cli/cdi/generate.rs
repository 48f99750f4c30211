//! `ostler cdi generate`: reads the hardware once, and makes the specs for it.

use std::{
    collections::BTreeSet,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use cdi::CdiSpec;
use clap::ValueEnum;
use config::{Config, Handover};
use model::{Phase, Snapshot};
use probe::protocol::FileSearch;
use rules::{Rules, SpecRequest, SpecScope, Specs};

use crate::{
    cli::{SpecFlags, block_on, devices::read_hardware, place::HostFlags, table},
    vendors::VENDORS,
};

/// Permissions of a spec file.
const MODE: u32 = 0o644;

/// Make CDI specs for the devices of this node.
///
/// Without a config the specs name every device, by UUID and by index; with a config, they have what
/// its pools ask for. Notes on what containers will lack go to standard error.
#[derive(Debug, clap::Args)]
pub(super) struct CdiGenerateArgs {
    /// The folder for the files; without it, the specs are printed
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// The format of the specs
    #[arg(long, value_name = "FORM", default_value = "json")]
    format: SpecFormat,

    /// The config file of the agent
    #[arg(long, env = "OSTLER_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Make one spec for management containers: all of the driver's device nodes
    #[arg(long)]
    management: bool,

    #[command(flatten)]
    vendor: SpecFlags,

    #[command(flatten)]
    place: HostFlags,
}

/// Format of spec files. Runtimes read both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SpecFormat {
    #[default]
    Json,
    Yaml,
}

// === impl CdiGenerateArgs ===

impl CdiGenerateArgs {
    pub(super) fn generate_specs(self) -> anyhow::Result<ExitCode> {
        let overrides = self.place.to_overrides();
        let resolved = config::native(
            self.config.as_deref(),
            overrides,
            &config::ValueOrigin::of_flag,
        )?;
        let snapshot =
            block_on(read_hardware(resolved.config.clone(), FileSearch::Now))??.to_snapshot();
        let mut made = self.make_specs(&resolved.config, &snapshot);
        made.notes
            .extend(self.vendor.missing_hook(&resolved.config));
        for note in &made.notes {
            anstream::eprintln!("{note}");
        }
        if made.specs.is_empty() {
            bail!("{}", why_none(&snapshot));
        }
        for contents in made.specs {
            self.write_spec(&CdiSpec::from(contents))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Makes the specs of every vendor. If the rules of a vendor with devices refuse, the notes have
    /// the reason.
    fn make_specs(&self, config: &Config, snapshot: &Snapshot) -> Specs {
        let mut settings = config.backends.clone();
        self.vendor.set_backends(&mut settings);
        let mut all = Specs::default();
        for rules in VENDORS.iter() {
            let asked = self.asked(config, rules.vendor().name);
            let first = asked.iter().find(|handover| handover.may_use_cdi());
            let mut usual = first.cloned().unwrap_or_default();
            self.vendor.set_handover(&mut usual);
            let scope = if self.management {
                SpecScope::Management(&usual)
            } else if first.is_some() {
                SpecScope::Asked {
                    now: &asked,
                    lately: &[],
                    held: &BTreeSet::new(),
                }
            } else if pools_ask(config) {
                // The pools use CDI, but none that may take devices of this vendor.
                continue;
            } else {
                SpecScope::Everything(&usual)
            };
            let made = rules.make_specs(&SpecRequest {
                snapshot,
                settings: &settings,
                scope,
                previous: &[],
            });
            match made {
                Ok(made) => {
                    all.specs.extend(made.specs);
                    all.notes.extend(made.notes);
                }
                Err(why) => all.notes.extend(is_running(rules, snapshot).then_some(why)),
            }
        }
        all
    }

    /// Handover settings of the pools that may take devices of a vendor, with the flags over them.
    fn asked(&self, config: &Config, vendor: &str) -> Vec<Handover> {
        let pools = config.pools.pools.iter();
        let own = pools.filter(|pool| pool::may_take(&pool.selectors, vendor));
        let mut asked: Vec<Handover> = own.map(|pool| pool.handover.clone()).collect();
        for handover in &mut asked {
            self.vendor.set_handover(handover);
        }
        asked
    }

    fn write_spec(&self, spec: &CdiSpec) -> anyhow::Result<()> {
        let text = match self.format {
            SpecFormat::Json => spec.to_text(),
            // With the document marker that `nvidia-ctk cdi generate` writes.
            SpecFormat::Yaml => format!("---\n{}", table::serialize_output(spec, true)?),
        };
        let mut out = std::io::stdout();
        let Some(dir) = &self.output else {
            return Ok(out.write_all(text.as_bytes())?);
        };
        let path = spec_path(dir, &spec.kind, self.format);
        fs_err::create_dir_all(dir)?;
        // Whole, by rename: a runtime watches the folder (container-device-interface,
        // pkg/cdi/cache.go) and must not read half a file.
        host::atomic::replace_file(&path, text.as_bytes(), MODE)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(writeln!(out, "{}", path.display())?)
    }
}

/// Path of a spec's file. It is the same as the agent's for kinds that the agent writes.
fn spec_path(dir: &Path, kind: &str, form: SpecFormat) -> PathBuf {
    let ending = match form {
        SpecFormat::Json => "json",
        SpecFormat::Yaml => "yaml",
    };
    dir.join(format!("{}.{ending}", kind.replace('/', "-")))
}

/// Returns true if a pool asks for CDI specs.
fn pools_ask(config: &Config) -> bool {
    let mut handovers = config.pools.pools.iter().map(|pool| &pool.handover);
    handovers.any(Handover::may_use_cdi)
}

/// Returns true if the vendor's probe reports devices.
fn is_running(rules: &dyn Rules, snapshot: &Snapshot) -> bool {
    let backend = snapshot.find_backend(rules.vendor().name);
    backend.is_some_and(|backend| backend.phase == Phase::Running)
}

fn why_none(snapshot: &Snapshot) -> String {
    let messages = snapshot.backends.iter().map(|backend| &backend.message);
    let messages: Vec<&str> = messages
        .map(String::as_str)
        .filter(|message| !message.is_empty())
        .collect();
    match messages.is_empty() {
        true => "there is no device that a spec could be made for".to_owned(),
        false => format!("no spec could be made: {}", messages.join("; ")),
    }
}
