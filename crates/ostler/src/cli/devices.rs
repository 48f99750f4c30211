//! `ostler devices`: asks the agent. Without an agent, reads the hardware itself and says so.

use std::{io::Write, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use api::{DevicePage, ListedDevice};
use comfy_table::Table;
use config::Config;
use health::HealthPolicy;
use inventory::{ChangeRequests, Inputs, Published, Readers};
use model::{Backend, Kind, Phase, names};
use probe::{
    Update,
    protocol::FileSearch,
    supervisor::{self, ChildRegistry, OrdersByBackend},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use web::client::{self, Error};

use super::{
    place::HostFlags,
    table::{OutputFormat, new_table, serialize_output},
};
use crate::{
    run::{enabled_backends, probe_settings},
    vendors::VENDORS,
};

/// Time limit for reading the hardware without an agent.
const LOOK: Duration = Duration::from_secs(20);

/// Show the node's devices, with their health and its reason.
///
/// Asks the running agent. Without an agent, reads the hardware itself and says so.
#[derive(Debug, clap::Args)]
pub(super) struct DevicesArgs {
    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: OutputFormat,

    #[command(flatten)]
    sight: DeviceSource,
}

/// Source of the devices: the agent, or else the hardware.
#[derive(Debug, clap::Args)]
pub(super) struct DeviceSource {
    /// The agent's control socket [default: /run/ostler/control.sock]
    #[arg(long, env = "OSTLER_CONTROL_SOCKET", value_name = "FILE")]
    control_socket: Option<PathBuf>,

    #[command(flatten)]
    place: HostFlags,
}

// === impl DevicesArgs ===

impl DevicesArgs {
    pub(super) fn run_devices(self) -> anyhow::Result<ExitCode> {
        super::block_on(self.show_devices())??;
        Ok(ExitCode::SUCCESS)
    }

    async fn show_devices(self) -> anyhow::Result<()> {
        let devices = self.sight.read_devices().await?;
        let output = match self.output {
            OutputFormat::Table => format_devices(&devices),
            OutputFormat::Json => serialize_output(&devices, false)?,
            OutputFormat::Yaml => serialize_output(&devices, true)?,
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(())
    }
}

// === impl DeviceSource ===

impl DeviceSource {
    /// Reads the devices from the agent. Without an agent, reads the hardware and says so on standard
    /// error.
    ///
    /// # Errors
    /// An agent listens but does not answer, or the flags are invalid.
    pub(super) async fn read_devices(&self) -> anyhow::Result<DevicePage> {
        let socket = self.control_socket.clone();
        let socket = socket.unwrap_or_else(|| Config::CONTROL_SOCKET.into());
        match client::read_page(&socket, api::DEVICES).await {
            Ok(body) => serde_json::from_slice(&body).context("the agent's answer cannot be read"),
            Err(error @ Error::NoAgent { .. }) => {
                anstream::eprintln!("{error}; looking at the hardware without it");
                let overrides = self.place.to_overrides();
                let resolved = config::native(None, overrides, &config::ValueOrigin::of_flag)?;
                read_hardware(resolved.config, FileSearch::Never).await
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads the hardware once, through probe processes of our own: a driver call that hangs cannot hang
/// this command. `files` says if the driver's files are searched. Takes 20 s at most; devices without
/// a report by then are missing.
pub(super) async fn read_hardware(
    mut config: Config,
    files: FileSearch,
) -> anyhow::Result<DevicePage> {
    // The state file belongs to the agent.
    config.health.state_file = None;
    let (published, orders) = (Published::new(), OrdersByBackend::default());
    let (seen, updates) = mpsc::channel(64);
    let stop = CancellationToken::new();
    let readers = published.readers();
    let backends = enabled_backends(&config);
    let mut watching = JoinSet::new();
    for name in &backends {
        let (children, orders) = (ChildRegistry::default(), orders.orders_of(name));
        let mut settings = probe_settings(name, &config, &[], children, orders);
        // One report is enough: it needs no wait for events.
        settings.configure.events = false;
        settings.configure.driver_files = files;
        watching.spawn(supervisor::supervise(settings, seen.clone(), stop.clone()));
    }
    // The inventory ends when every sender is gone.
    drop(seen);
    let looking = async {
        let policy = HealthPolicy::from_config(&config, VENDORS);
        let look = first_look(policy, updates, orders.clone(), published, backends.len());
        let found = timeout(LOOK, look).await;
        stop.cancel();
        found.is_ok()
    };
    let (_, in_time) = tokio::join!(watching.join_all(), looking);
    if !in_time {
        let seconds = LOOK.as_secs();
        anstream::eprintln!("the driver did not tell everything within {seconds} s");
    }
    Ok(newest(&readers))
}

/// Runs an inventory until every backend has reported, with a sample of each device.
async fn first_look(
    policy: HealthPolicy,
    mut updates: mpsc::Receiver<Update>,
    orders: OrdersByBackend,
    published: Published,
    backends: usize,
) {
    let (_unchanged, policy) = watch::channel(policy);
    let (_silent, mut requests) = ChangeRequests::open_queue();
    let readers = published.readers();
    let inputs = Inputs {
        policy,
        updates: &mut updates,
        requests: &mut requests,
        orders,
        boot_id: String::new(),
    };
    tokio::select! {
        () = inventory::run_inventory(inputs, published) => {}
        () = enough(readers, backends) => {}
    }
}

/// Waits until so many backends have reported, each with samples of all its devices or with a phase
/// that explains why it has none.
async fn enough(mut readers: Readers, backends: usize) {
    loop {
        let devices = newest(&readers);
        let has_sample =
            |listed: &ListedDevice| listed.telemetry.is_some() || is_integrated(listed);
        let has_told = |backend: &Backend| match backend.phase {
            Phase::Starting => false,
            Phase::Running => {
                let mut own = devices.devices.iter();
                own.all(|listed| listed.device.vendor != backend.name || has_sample(listed))
            }
            _ => true,
        };
        if devices.backends.len() >= backends && devices.backends.iter().all(has_told) {
            return;
        }
        let changed = tokio::select! {
            changed = readers.snapshots.changed() => changed,
            changed = readers.samples.changed() => changed,
        };
        // The inventory has ended: nothing more comes.
        if changed.is_err() {
            return;
        }
    }
}

fn newest(readers: &Readers) -> DevicePage {
    DevicePage::new(&readers.snapshots.borrow(), &readers.samples.borrow())
}

/// True if a device is part of its board. There are no samples of such a device.
fn is_integrated(listed: &ListedDevice) -> bool {
    listed.device.bool_attribute(&names::INTEGRATED) == Some(true)
}

/// Text for a person: the state of each backend, and a table of the devices.
fn format_devices(snapshot: &DevicePage) -> String {
    let mut page = String::new();
    for backend in &snapshot.backends {
        let name = &backend.name;
        if let Some(driver) = &backend.driver {
            let cuda = driver.cuda.as_deref().unwrap_or("-");
            page += &format!("{name}: driver {}, CUDA {cuda}\n", driver.version);
        }
        if backend.phase != Phase::Running || !backend.message.is_empty() {
            page += &format!("{name}: {:?}: {}\n", backend.phase, backend.message);
        }
        for card in &backend.unreadable {
            page += &format!(
                "{name}: the card at {} cannot be read: {}\n",
                card.card, card.failure
            );
        }
    }
    if snapshot.devices.is_empty() {
        return page + "no devices\n";
    }
    page + &device_table(snapshot).trim_fmt() + "\n"
}

fn device_table(snapshot: &DevicePage) -> Table {
    let header = [
        "INDEX", "ID", "MODEL", "PCI", "NUMA", "MEMORY", "TEMP", "HEALTH", "WHY",
    ];
    let mut rows = new_table(&header);
    let mut entries: Vec<&ListedDevice> = snapshot.devices.iter().collect();
    entries.sort_by_key(|entry| (entry.device.pci, entry.device.index));
    for entry in entries {
        let device = &entry.device;
        let model = match &device.kind {
            Kind::Card { partitioned: false } => or_dash(device.product_name()),
            Kind::Card { partitioned: true } => {
                let mode = VENDORS.find_rules(&device.vendor).vendor().partition_mode;
                format!("{} ({mode})", or_dash(device.product_name()))
            }
            Kind::Partition { profile, .. } => format!("  {}", or_dash(profile.as_deref())),
        };
        let celsius = entry.telemetry.as_ref().and_then(|t| t.temperature_celsius);
        rows.add_row([
            or_dash(device.index),
            device.id.to_string(),
            model,
            or_dash(device.pci),
            or_dash(device.numa),
            device
                .memory_bytes()
                .map_or_else(|| "-".to_owned(), format_mebibytes),
            celsius.map_or_else(|| "-".to_owned(), |c| format!("{c} °C")),
            entry.verdict.state.to_string(),
            entry.verdict.join_evidence(),
        ]);
    }
    rows
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn format_mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
