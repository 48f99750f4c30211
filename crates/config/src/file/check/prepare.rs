//! What `preStart` and `health` say, taken together with the rest.

use crate::{
    HealthFile, Method, PoolFile, PreStart, PreStartMode,
    source::{Notes, Place},
};

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
        (Some(mode), _) if mode.value.runs() && prepare.command.is_empty() => {
            let help = "write it, e.g. `preStartCommand: nvidia-smi --gpu-reset -i \
                        $OSTLER_DEVICE_PCI`";
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
    } else if let Some(limit) = pool.pre_start_limit.as_ref().filter(|_| off) {
        let message = "nothing is done that it could limit";
        let help = "write `preStart: wait`, or remove it";
        notes.error(limit.place, &key_of("preStartLimit"), message, help);
    }
}

/// Checks how verdicts are made.
pub(super) fn health(health: &HealthFile, notes: &mut Notes) {
    let mut wrong = |place: Place, key: &str, message: &str, help: &str| {
        notes.error(place, &format!("health.{key}"), message, help);
    };
    if let (Some(least), Some(most)) = (&health.hold_down, &health.hold_down_limit)
        && least.value > most.value
    {
        let message = "it is shorter than `holdDown`, which it limits";
        wrong(most.place, "holdDownLimit", message, "write a longer time");
    }
    if let Some(deep) = &health.deep
        && deep.value.0.is_some()
        && health.deep_command.is_none()
    {
        let message = "the tier runs a command of yours, and none is named";
        let help = "write `deepCommand: [PROGRAM, ARGUMENT]`, or remove `deep`";
        wrong(deep.place, "deep", message, help);
    }
}
