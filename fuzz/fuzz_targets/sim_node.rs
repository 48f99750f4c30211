//! `node.json` of a simulated node: any bytes are parsed or refused, and a parsed state survives a
//! round trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::state::State;

fuzz_target!(|bytes: &[u8]| {
    let Ok(state) = serde_json::from_slice::<State>(bytes) else {
        return;
    };
    if state.check().is_err() {
        return;
    }
    let _ = state.cpus(None);
    for gpu in &state.gpus {
        let _ = state.cpus(gpu.numa);
        let model = &state.models[&gpu.model];
        for mig in &gpu.migs {
            let shape = model.shape(&mig.profile).expect("the check looks for it");
            let _ = mig.name(shape);
        }
    }
    let written = serde_json::to_vec(&state).expect("a state can be written");
    let again: State = serde_json::from_slice(&written).expect("a state can be read");
    assert_eq!(again, state);
});
