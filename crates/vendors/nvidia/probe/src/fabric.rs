//! State of a card in its NVLink fabric, as two conditions: the fabric refused the card, and
//! joining the fabric has not ended.

use std::time::Duration;

use model::{Condition, ConditionState};
use nvml::FabricState;

/// Condition that is critical if the fabric refused the card.
const REFUSED: &str = "fabric";
/// Condition that is a warning while the card has not joined the fabric.
const JOINING: &str = "fabric-joining";

/// Returns the conditions of a card. Joining may take as long as `limit` without a warning; until
/// it ends, the first condition is unknown.
pub(super) fn conditions(state: FabricState, limit: Duration) -> Vec<Condition> {
    let refused = match state {
        FabricState::NotSupported | FabricState::Completed(Ok(())) => {
            (ConditionState::Ok, String::new())
        }
        FabricState::Completed(Err(code)) => {
            let reason = format!("the fabric refused the card: {code}");
            (ConditionState::Critical, reason)
        }
        FabricState::NotStarted | FabricState::InProgress | FabricState::Unknown(_) => {
            (ConditionState::Unknown, String::new())
        }
    };
    let joining = match state {
        FabricState::NotSupported | FabricState::Completed(_) => {
            (ConditionState::Ok, String::new())
        }
        FabricState::NotStarted => (
            ConditionState::Warning,
            "joining the fabric has not begun".to_owned(),
        ),
        // An unknown state is taken as not ended.
        FabricState::InProgress | FabricState::Unknown(_) => (
            ConditionState::Warning,
            "joining the fabric has not ended".to_owned(),
        ),
    };
    let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    vec![
        fabric_condition(REFUSED, refused, 0),
        fabric_condition(JOINING, joining, millis),
    ]
}

fn fabric_condition(
    name: &str,
    (state, reason): (ConditionState, String),
    grace_millis: u64,
) -> Condition {
    Condition {
        name: name.parse().expect("the constants are names"),
        state,
        reason,
        // A new loading of the driver makes the card join its fabric again.
        ends_with_reset: true,
        grace_millis,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConditionState::{Critical, Ok, Unknown, Warning};
    use nvml::ReturnCode;
    use rstest::rstest;

    #[rstest]
    #[case::no_fabric(FabricState::NotSupported, [Ok, Ok])]
    #[case::not_begun(FabricState::NotStarted, [Unknown, Warning])]
    #[case::under_way(FabricState::InProgress, [Unknown, Warning])]
    #[case::a_new_state(FabricState::Unknown(9), [Unknown, Warning])]
    #[case::joined(FabricState::Completed(Result::Ok(())), [Ok, Ok])]
    #[case::refused(FabricState::Completed(Err(ReturnCode::INVALID_ARGUMENT)), [Critical, Ok])]
    fn each_state_is_two_conditions(
        #[case] state: FabricState,
        #[case] states: [ConditionState; 2],
    ) {
        let conditions = conditions(state, Duration::from_millis(1500));
        let told: Vec<ConditionState> = conditions.iter().map(|c| c.state).collect();
        assert_eq!(told, states);
        let graces: Vec<u64> = conditions.iter().map(|c| c.grace_millis).collect();
        assert_eq!(graces, [0, 1500], "only joining may take a while");
        for condition in &conditions {
            assert!(condition.ends_with_reset);
            let is_silent = matches!(condition.state, Ok | Unknown);
            assert_eq!(condition.reason.is_empty(), is_silent, "{condition:?}");
        }
    }
}
