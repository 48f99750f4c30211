//! Table of tests. They run one after the other on one node, which is cleared in between.

use std::pin::Pin;

use anyhow::{Result, ensure};
use tokio::time::Instant;

use crate::{node::Node, place, say::say, wait};

mod backends;
mod cdi;
mod grant;
mod health;
mod in_pod;
mod mig;
mod numa;
mod pools;
mod reboot;
mod release;
mod restart;
mod sharing;
mod takeover;

/// Number of lines of a log that are shown.
const TAIL: usize = 15;

/// A test on the node.
#[derive(Debug)]
pub struct Scenario {
    /// Name of the test.
    pub name: &'static str,
    /// True if only `full` runs the test.
    pub slow: bool,
    run: for<'a> fn(&'a mut Node) -> Run<'a>,
}

/// Future of a running test.
type Run<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

macro_rules! table {
    ($($(#[$slow:ident])? $topic:ident::$name:ident,)*) => {
        /// All tests, in the order in which they run.
        pub const ALL: &[Scenario] = &[$(Scenario {
            name: stringify!($name),
            slow: table!(@ $($slow)?),
            run: |node| Box::pin($topic::$name(node)),
        }),*];
    };
    (@) => { false };
    (@ slow) => { true };
}

table! {
    grant::a_pod_gets_one_gpu,
    grant::a_pod_gets_two_gpus,
    grant::a_pod_gets_all_eight_gpus,
    grant::two_containers_get_different_gpus,
    grant::an_init_container_hands_its_gpu_on,
    grant::a_sidecar_keeps_its_gpu,
    grant::a_pod_without_a_request_gets_nothing,
    grant::a_pod_that_asks_for_too_many_is_refused,
    release::a_finished_pod_frees_its_gpus,
    release::a_pod_removed_while_the_kubelet_is_down_frees_its_gpus,
    restart::a_container_that_restarts_keeps_its_gpu,
    restart::pods_outlive_a_kubelet_restart,
    restart::a_container_restart_and_a_kubelet_restart_keep_the_gpu,
    restart::pods_outlive_an_agent_restart,
    restart::pods_outlive_a_killed_agent,
    restart::pods_outlive_a_kubelet_and_an_agent_restart,
    restart::a_kubelet_killed_during_twenty_starts_hands_nothing_out_twice,
    takeover::a_second_instance_takes_over_while_pods_run,
    takeover::an_agent_that_stops_leaves_nothing_to_hand_out,
    takeover::a_finished_pod_stays_finished_without_an_agent,
    reboot::pods_come_back_with_their_gpus_after_a_reboot,
    reboot::a_reboot_without_an_agent_refuses_the_pod,
    health::a_lost_gpu_is_out_and_its_pod_is_told,
    health::gpus_go_and_come_back_one_by_one,
    health::a_lost_gpu_is_back_by_itself,
    health::pods_go_on_while_a_gpu_breaks_and_heals,
    health::a_broken_gpu_stays_out_over_restarts,
    health::a_cordoned_gpu_is_out_until_it_is_uncordoned,
    health::a_released_gpu_is_open_nowhere_and_can_be_cut,
    sharing::two_pods_share_one_gpu,
    sharing::the_plugin_of_nvidias_name_shares_as_its_config_says,
    pools::exclusive_and_shared_gpus_are_on_one_node,
    pools::a_new_config_reaches_the_kubelet_and_leaves_pods_alone,
    mig::a_gpu_cut_on_the_live_node_reaches_pods,
    cdi::pods_have_what_the_spec_says_by_cdi_names,
    cdi::pods_have_what_the_spec_says_by_annotations,
    cdi::auto_hands_over_by_cdi_where_the_runtime_can,
    cdi::the_plugin_of_nvidias_name_hands_over_by_cdi,
    cdi::a_container_whose_device_lost_its_spec_says_which,
    cdi::cdi_pods_outlive_agent_and_kubelet_restarts,
    cdi::cdi_pods_restart_after_the_config_left_cdi,
    cdi::cdi_pods_come_back_after_a_reboot,
    numa::pods_get_gpus_and_processors_of_one_numa_node,
    numa::a_request_that_no_numa_node_can_meet_is_refused,
    in_pod::the_agent_works_in_a_pod_like_nvidias,
    in_pod::a_pod_without_a_driver_says_so,
    backends::cards_of_a_python_probe_reach_pods_beside_gpus,
    backends::a_card_of_a_python_probe_fails_and_recovers,
    backends::a_python_probe_that_dies_hangs_or_floods_leaves_gpus_alone,
    backends::an_nvidia_probe_that_dies_or_hangs_leaves_other_cards_alone,
    #[slow] takeover::five_minutes_without_an_agent_and_back,
}

/// Prints the names of all tests.
pub fn list() {
    for scenario in ALL {
        let when = if scenario.slow { " (full)" } else { "" };
        say(format_args!("{}{when}", scenario.name));
    }
}

/// Runs the tests, prints a line for each, and the total. Returns the number of failed tests.
///
/// # Errors
/// If no test has such a name.
pub async fn run(node: &mut Node, slow: bool, only: Option<&str>) -> Result<usize> {
    let wanted = |s: &&Scenario| match only {
        Some(part) => s.name.contains(part),
        None => slow || !s.slow,
    };
    let chosen: Vec<&Scenario> = ALL.iter().filter(wanted).collect();
    if chosen.is_empty() {
        anyhow::bail!("no test has such a name; see them with `e2e/run list`");
    }
    let mut failed = 0;
    for scenario in &chosen {
        let result = one(node, scenario).await;
        failed += usize::from(!result);
    }
    say(format_args!(
        "{} passed, {failed} failed",
        chosen.len() - failed
    ));
    Ok(failed)
}

/// Runs one test and prints its line. The time includes clearing the node.
async fn one(node: &mut Node, scenario: &Scenario) -> bool {
    let logs = ["agent", "kubelet"].map(|program| (program, length(program)));
    let start = Instant::now();
    let result = (scenario.run)(node).await;
    let result = match (result, node.clear().await) {
        (Ok(()), Ok(())) => Ok(()),
        (Ok(()), Err(error)) => Err(error.context("the node did not get clear again")),
        (Err(error), _) => Err(error),
    };
    let seconds = start.elapsed().as_secs_f32();
    let name = scenario.name;
    match &result {
        Ok(()) => say(format_args!("ok    {name} ({seconds:.1} s)")),
        Err(error) => {
            say(format_args!("FAIL  {name} ({seconds:.1} s): {error:#}"));
            for (program, from) in logs {
                show_tail(program, from);
            }
        }
    }
    result.is_ok()
}

fn length(program: &str) -> usize {
    let meta = fs_err::metadata(place::log(program));
    meta.map_or(0, |meta| usize::try_from(meta.len()).unwrap_or(0))
}

/// Waits until the agent logs `words` after an offset in its log.
async fn logged(from: usize, words: &str) -> Result<()> {
    wait::until("the agent to say why", wait::LONG, async || {
        let log = fs_err::read(place::log("agent"))?;
        let new = String::from_utf8_lossy(log.get(from..).unwrap_or_default());
        ensure!(new.contains(words), "its log has no `{words}`");
        Ok(())
    })
    .await
}

/// Shows the last lines of a log, starting at an offset. For the kubelet only warnings and errors,
/// without the one that the node has no address, which is always there.
pub fn show_tail(program: &str, from: usize) {
    let bytes = fs_err::read(place::log(program)).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned();
    let matters = |line: &&str| {
        let is_noise = line.contains("Failed to set some node status fields");
        program != "kubelet" || (line.starts_with(['E', 'W', 'F']) && !is_noise)
    };
    let lines: Vec<&str> = text.lines().filter(matters).collect();
    say(format_args!("      the end of {program}.log:"));
    for line in &lines[lines.len().saturating_sub(TAIL)..] {
        let short: String = line.chars().take(400).collect();
        say(format_args!("      | {short}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tests_have_the_same_name() {
        let mut names: Vec<_> = ALL.iter().map(|scenario| scenario.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
