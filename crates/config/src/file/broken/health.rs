//! Broken options of the section `health`.

use rstest::rstest;

use super::{load_warnings, the_problem};

#[rstest]
#[case(
    "health: {eventWarning: «soon}\n",
    "health.eventWarning",
    "`soon` is not a length of time",
    "e.g. 500ms"
)]
#[case(
    "health: {working: «never}\n",
    "health.working",
    "`never` is not a length of time",
    "or off"
)]
#[case(
    "health: {weights: {trend: «heavy}}\n",
    "health.weights.trend",
    "not one of out, warn, off",
    "write one of them"
)]
#[case(
    "backends: {nvidia: {xids: {actions: {«all: reset}}}}\n",
    "backends.nvidia.xids.actions.all",
    "not the number of an XID",
    "{94: reset}"
)]
#[case(
    "backends: {nvidia: {xids: {actions: {94: «rest}}}}\n",
    "backends.nvidia.xids.actions.94",
    "not one of ignore",
    "did you mean `reset`?"
)]
#[case(
    "health: {holdDown: 5m, holdDownLimit: «1m}\n",
    "health.holdDownLimit",
    "shorter than `holdDown`",
    "longer"
)]
#[case(
    "health: {holdDownLimit: «5s}\n",
    "health.holdDownLimit",
    "which is 20s",
    "a shorter `holdDown`"
)]
#[case(
    "health: {deep: «10m}\n",
    "health.deep",
    "none is named",
    "deepCommand"
)]
#[case(
    "health: {deepCommand: «\"\"}\n",
    "health.deepCommand",
    "the command is empty",
    "/bin/sh -c"
)]
#[case(
    "health: {thresholds: {meanWatts: «lots}}\n",
    "health.thresholds.meanWatts",
    "neither a whole number nor off",
    "or off"
)]
#[case(
    "health: {passes: «0}\n",
    "health.passes",
    "0 is out of range",
    "from 1 to 100"
)]
#[case(
    "health: {deepCommand: x, deepLimit: «0s}\n",
    "health.deepLimit",
    "between 1ms and 24h",
    "10s"
)]
#[case(
    "health: {deepLimit: «5m}\n",
    "health.deepLimit",
    "none is named",
    "deepCommand"
)]
#[case(
    "backends: {nvidia: {fabricJoin: «soon}}\n",
    "backends.nvidia.fabricJoin",
    "not a length of time",
    "10s"
)]
#[case(
    "backends: {nvidia: {xids: {base: «nvidea}}}\n",
    "backends.nvidia.xids.base",
    "not one of catalogue, nvidia",
    "`nvidia`"
)]
#[case(
    "health: {weights: {causes: {«temperature: out}}}\n",
    "health.weights.causes.temperature",
    "not a cause that can have a weight",
    "did you mean `Temperature`?"
)]
#[case(
    "health: {weights: {causes: {«Lost: warn}}}\n",
    "health.weights.causes.Lost",
    "not a cause that can have a weight",
    "Ecc, MemoryRepair, RecoveryAction, Throttled, Pcie, Link, Temperature, \
     Condition, Trend, Deep"
)]
#[case(
    "health: {weights: {causes: {Pcie: «heavy}}}\n",
    "health.weights.causes.Pcie",
    "not one of out, warn, off",
    "write one of them"
)]
#[case(
    "health: {weights: {conditions: {«RAS.umc: out}}}\n",
    "health.weights.conditions.RAS.umc",
    "not the name of a condition",
    "ostler health"
)]
#[case(
    "health: {weights: {conditions: {ras.umc: «heavy}}}\n",
    "health.weights.conditions.ras.umc",
    "not one of out, warn, off",
    "write one of them"
)]
#[case(
    "health:\n  weights:\n    causes:\n      Ecc: out\n      «Ecc: off\n",
    "health.weights.causes.Ecc",
    "said twice",
    "remove one"
)]
fn a_broken_rule_is_refused_at_its_place(
    #[case] text: &str,
    #[case] key: &str,
    #[case] message: &str,
    #[case] help: &str,
) {
    let problem = the_problem(text, load_warnings, [key, message, help]);
    assert!(problem.is_error(), "{problem}");
}

#[test]
fn a_command_that_is_too_long_for_the_probes_settings_is_refused() {
    let text = format!("health: {{deepCommand: {}}}\n", "x".repeat(40_000));
    let error = crate::parse_native("ostler.yaml", &text)
        .unwrap_err()
        .to_string();
    assert!(error.contains("and may have 32768"), "{}", &error[..200]);
}
