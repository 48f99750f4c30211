//! Strategies by which the container runtime learns of the devices: those of the config, with
//! `auto` decided.

use std::fmt;

use config::{Handover, ListStrategy};
use serde::Serialize;

/// Facts about the way of a CDI name to a container. The default is that nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CdiSupport {
    /// True if a CDI spec on the disk has every device that is offered.
    pub cdi_spec: bool,
    /// True if the container runtime is known to take CDI names from the CRI: containerd since 2.0,
    /// 1.7 with `enable_cdi`, and CRI-O.
    pub cdi_devices: bool,
    /// True if the kubelet is known to pass CDI names on (feature gate `DevicePluginCDIDevices`).
    pub kubelet: bool,
}

/// Strategies in force, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResolvedLists {
    /// Strategies, sorted, each once, never [`ListStrategy::Auto`].
    pub strategies: Vec<ListStrategy>,
    /// Reason for these strategies.
    pub reason: ListReason,
}

/// Reason for the strategies in force. Prints as a sentence for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListReason {
    /// The config names them.
    Configured,
    /// `auto`: no CDI spec with all names is on the disk.
    NoSpec,
    /// `auto`: the container runtime is not known to take CDI names.
    NoCdi,
    /// `auto`: the kubelet is not known to pass CDI names on.
    NoKubelet,
    /// `auto`: CDI works.
    Cdi,
}

// === impl ResolvedLists ===

impl ResolvedLists {
    /// Returns true if the strategy is in force.
    pub fn has_strategy(&self, strategy: ListStrategy) -> bool {
        self.strategies.contains(&strategy)
    }

    /// Returns true if all strategies use CDI, so that the CDI devices contain the device nodes.
    pub fn only_cdi(&self) -> bool {
        let cdi =
            |s: &ListStrategy| matches!(s, ListStrategy::CdiAnnotations | ListStrategy::CdiCri);
        !self.strategies.is_empty() && self.strategies.iter().all(cdi)
    }
}

// === impl ListReason ===

impl fmt::Display for ListReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configured => "the config names it",
            Self::NoSpec => {
                "auto is envvar and device nodes, because no CDI spec with all of the names is in \
                 place"
            }
            Self::NoCdi => {
                "auto is envvar and device nodes, because the container runtime is not known to \
                 take CDI names from the kubelet"
            }
            Self::NoKubelet => {
                "auto is envvar and device nodes, because the kubelet is not known to pass CDI \
                 names on"
            }
            Self::Cdi => {
                "auto is cdi-cri, because there is a CDI spec, the kubelet passes CDI names on, and \
                 the container runtime takes them"
            }
        })
    }
}

/// Returns the strategies of `handover`, with `auto` replaced by the best one that is known to
/// work.
pub fn resolve_lists(handover: &Handover, runtime: CdiSupport) -> ResolvedLists {
    // An unknown CDI name fails the start of a container, and a dropped one leaves it without
    // devices. Variables and device nodes work everywhere, so that `auto` takes CDI only with
    // evidence.
    let auto = handover.lists.contains(&ListStrategy::Auto);
    let (choice, reason) = match runtime {
        _ if !auto => (None, ListReason::Configured),
        CdiSupport {
            cdi_spec: false, ..
        } => (Some(ListStrategy::Envvar), ListReason::NoSpec),
        CdiSupport {
            cdi_devices: false, ..
        } => (Some(ListStrategy::Envvar), ListReason::NoCdi),
        CdiSupport { kubelet: false, .. } => (Some(ListStrategy::Envvar), ListReason::NoKubelet),
        _ => (Some(ListStrategy::CdiCri), ListReason::Cdi),
    };
    let named = handover.lists.iter().copied();
    let mut strategies: Vec<ListStrategy> = named
        .filter(|strategy| *strategy != ListStrategy::Auto)
        .chain(choice)
        .collect();
    strategies.sort_unstable();
    strategies.dedup();
    ResolvedLists { strategies, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::ListStrategy::{Auto, CdiAnnotations, CdiCri, Envvar, VolumeMounts};
    use rstest::rstest;

    const ALL: CdiSupport = CdiSupport {
        cdi_spec: true,
        cdi_devices: true,
        kubelet: true,
    };
    const NOTHING: CdiSupport = CdiSupport {
        cdi_spec: false,
        cdi_devices: false,
        kubelet: false,
    };
    const NO_SPEC: CdiSupport = CdiSupport {
        cdi_spec: false,
        ..ALL
    };
    const NO_RUNTIME: CdiSupport = CdiSupport {
        cdi_devices: false,
        ..ALL
    };
    const NO_KUBELET: CdiSupport = CdiSupport {
        kubelet: false,
        ..ALL
    };

    #[rstest]
    #[case::nothing_known(&[Auto], NOTHING, &[Envvar], ListReason::NoSpec)]
    #[case::no_spec(&[Auto], NO_SPEC, &[Envvar], ListReason::NoSpec)]
    #[case::no_runtime(&[Auto], NO_RUNTIME, &[Envvar], ListReason::NoCdi)]
    #[case::no_kubelet(&[Auto], NO_KUBELET, &[Envvar], ListReason::NoKubelet)]
    #[case::all_known(&[Auto], ALL, &[CdiCri], ListReason::Cdi)]
    #[case::auto_beside_others(&[CdiCri, Auto], NOTHING, &[Envvar, CdiCri], ListReason::NoSpec)]
    #[case::auto_beside_itself(&[Envvar, Auto, Auto], NOTHING, &[Envvar], ListReason::NoSpec)]
    #[case::named(&[Envvar], ALL, &[Envvar], ListReason::Configured)]
    #[case::named_cdi(&[CdiAnnotations], NOTHING, &[CdiAnnotations], ListReason::Configured)]
    #[case::unsorted_twice(&[CdiCri, VolumeMounts, CdiCri], NOTHING, &[VolumeMounts, CdiCri], ListReason::Configured)]
    #[case::none(&[], ALL, &[], ListReason::Configured)]
    fn auto_is_decided_by_what_is_known(
        #[case] lists: &[ListStrategy],
        #[case] runtime: CdiSupport,
        #[case] strategies: &[ListStrategy],
        #[case] reason: ListReason,
    ) {
        let handover = Handover {
            lists: lists.to_vec(),
            ..Handover::default()
        };
        let found = resolve_lists(&handover, runtime);
        assert_eq!((&found.strategies[..], found.reason), (strategies, reason));
    }

    #[rstest]
    #[case(&[], false)]
    #[case(&[Envvar], false)]
    #[case(&[VolumeMounts], false)]
    #[case(&[Envvar, CdiCri], false)]
    #[case(&[VolumeMounts, CdiAnnotations, CdiCri], false)]
    #[case(&[CdiCri], true)]
    #[case(&[CdiAnnotations], true)]
    #[case(&[CdiAnnotations, CdiCri], true)]
    fn only_cdi_is_when_nothing_else_is(#[case] strategies: &[ListStrategy], #[case] only: bool) {
        let strategies = strategies.to_vec();
        let lists = ResolvedLists {
            strategies,
            reason: ListReason::Configured,
        };
        assert_eq!(lists.only_cdi(), only);
    }
}
