//! What `preStart` says, taken together with the rest.

use crate::{Method, PoolFile, PreStart, PreStartMode, source::Notes};

/// Checks what is done before a container starts.
pub(super) fn pool(pool: &PoolFile, key: &str, notes: &mut Notes) {
    let prepare = pool.prepare();
    let key_of = |name: &str| format!("{key}.{name}");
    let off = prepare.mode == PreStartMode::Off;
    if let Some(mode) = &pool.pre_start
        && !off
        && pool.sharing.resolve().method != Method::None
    {
        let message = "the devices of this pool are shared: before a container starts, others may \
                       well be at work on them";
        let help = "remove `preStart`, or `sharing`";
        notes.error(mode.place, &key_of("preStart"), message, help);
    }
    match (&pool.pre_start, &pool.pre_start_command) {
        (Some(mode), _) if mode.value == PreStartMode::Exec && prepare.command.is_empty() => {
            let help = "write it, e.g. `preStartCommand: prepare-gpu $OSTLER_DEVICE_PCI`";
            let message = "`preStartCommand` is missing: this runs a command of yours";
            notes.error(mode.place, &key_of("preStart"), message, help);
        }
        (_, Some(command)) if !prepare.mode.runs() => {
            let message = "no command is run with this `preStart`";
            let help = "write `preStart: exec`, or remove the command";
            notes.error(command.place, &key_of("preStartCommand"), message, help);
        }
        _ => {}
    }
    if let Some(limit) = &pool.pre_start_limit
        && prepare.limit > PreStart::MOST
    {
        let message = "the kubelet waits for 30 s and no longer";
        let help = "write at most 25s";
        notes.error(limit.place, &key_of("preStartLimit"), message, help);
    } else if let Some(limit) = &pool.pre_start_limit
        && off
        && prepare.limit != PreStart::default().limit
    {
        let message = "nothing is done that it could limit";
        let help = "write `preStart: wait`, or remove it";
        notes.error(limit.place, &key_of("preStartLimit"), message, help);
    }
}
