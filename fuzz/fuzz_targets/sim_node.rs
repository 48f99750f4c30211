//! `node.json` of a simulated node: any bytes are parsed or refused, and a parsed state survives a
//! round trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::state::NodeState;

fuzz_target!(|bytes: &[u8]| {
    let Ok(state) = serde_json::from_slice::<NodeState>(bytes) else {
        return;
    };
    if state.check_state().is_err() {
        return;
    }
    let _ = state.cpus_near(None);
    for gpu in &state.gpus {
        let _ = state.cpus_near(gpu.numa);
        let model = &state.models[&gpu.model];
        for mig in &gpu.migs {
            let shape = model
                .find_shape(&mig.profile)
                .expect("the check looks for it");
            let _ = mig.mig_name(shape);
        }
    }
    let written = serde_json::to_vec(&state).expect("a state can be written");
    let again: NodeState = serde_json::from_slice(&written).expect("a state can be read");
    assert_eq!(again, state);
});
