//! Request bodies on the control socket: any bytes, in any order of actions, are carried out or
//! refused with a reason. Each line is an order; its first byte selects the action, the rest is the
//! body.
#![no_main]

#[path = "../../crates/web/tests/orders/rig.rs"]
mod rig;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

/// Limit of orders in one input.
const MOST: usize = 16;

thread_local! {
    static RUNTIME: Runtime = rig::runtime();
}

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|byte| *byte == b'\n');
    let orders: Vec<rig::Order<'_>> = lines.filter_map(order).take(MOST).collect();
    // A body may contain line breaks, too.
    let whole = order(bytes).into_iter().collect::<Vec<_>>();
    RUNTIME.with(|runtime| {
        for orders in [orders, whole] {
            let answers = runtime.block_on(rig::send(&orders));
            assert_eq!(answers.len(), orders.len());
        }
    });
});

fn order(line: &[u8]) -> Option<rig::Order<'_>> {
    let (first, body) = line.split_first()?;
    let action = match first {
        b'c' => api::CORDON,
        b'u' => api::UNCORDON,
        b'r' => api::RELEASE,
        _ => api::RESUME,
    };
    Some((action, body))
}
