//! Orders with any body are carried out, or refused with a reason.

mod rig;

use axum::http::StatusCode;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use self::rig::{LONGEST, Order, runtime, send};

const ACTIONS: [&str; 4] = [api::CORDON, api::UNCORDON, api::RELEASE, api::RESUME];

/// Generates names of devices, and other values.
fn name() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[0-4]",
        "(GPU|gpu|MIG)-[0-4](-0)?",
        "0000:0[0-4]:00.0",
        "\\PC{0,8}"
    ];
    prop_oneof![
        4 => text.prop_map(Value::from),
        1 => select(vec![Value::Null, json!(0), json!(["0"])]),
    ]
}

/// Generates bodies that a program might send.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let parts = (
        option::of(name()),
        option::of("\\PC{0,1100}"),
        option::of(any::<bool>()),
        option::of(prop_oneof![0..100_000_u64, any::<u64>()]),
    );
    parts.prop_map(|(device, reason, all, seconds)| {
        let fields = [
            ("device", device),
            ("reason", reason.map(Value::from)),
            ("all", all.map(Value::from)),
            ("seconds", seconds.map(Value::from)),
        ];
        let fields = fields.into_iter();
        let fields = fields.filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let body: serde_json::Map<_, _> = fields.collect();
        Value::from(body).to_string().into_bytes()
    })
}

fn answers(orders: &[Order<'_>]) -> Vec<StatusCode> {
    runtime().block_on(send(orders))
}

#[test]
fn orders_of_an_operator_are_carried_out() {
    let orders = [
        (api::CORDON, json!({"device": "0", "reason": "a fan"})),
        (api::UNCORDON, json!({"device": "GPU-0"})),
        (
            api::RELEASE,
            json!({"device": "0000:01:00.0", "seconds": 60}),
        ),
        (api::RESUME, json!({"device": "MIG-1-0"})),
        (api::RELEASE, json!({"all": true})),
        (api::RESUME, json!({"all": true})),
    ];
    let orders = orders.map(|(action, body)| (action, body.to_string()));
    let sent: Vec<Order<'_>> = orders
        .iter()
        .map(|(a, body)| (*a, body.as_bytes()))
        .collect();
    assert_eq!(answers(&sent), [StatusCode::OK; 6]);
}

#[test]
fn a_body_is_read_up_to_64_kib() {
    let body = |length: usize| {
        let mut body = br#"{"device": "0"}"#.to_vec();
        body.resize(length, b' ');
        body
    };
    for action in ACTIONS {
        let (longest, longer) = (body(LONGEST), body(LONGEST + 1));
        let answers = answers(&[(action, &longest), (action, &longer)]);
        assert_ne!(answers[0], StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(answers[1], StatusCode::PAYLOAD_TOO_LARGE);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_get_an_answer(body in vec(any::<u8>(), 0..200)) {
        answers(&ACTIONS.map(|action| (action, &body[..])));
    }

    #[test]
    fn any_orders_get_answers(orders in vec((select(&ACTIONS[..]), body()), 0..12)) {
        let orders: Vec<Order<'_>> = orders.iter().map(|(a, body)| (*a, &body[..])).collect();
        prop_assert_eq!(answers(&orders).len(), orders.len());
    }
}
