//! A real one-node Kubernetes without an API server, and the tests of the agent on it.
//!
//! The program has two halves. [`outside`] makes a work folder and a cgroup, starts itself again
//! in new namespaces, and afterwards removes everything and checks that nothing is left.
//! [`inside`] is the first process of those namespaces: it builds a root of its own, starts
//! containerd, a kubelet, a simulated driver and the agent, and runs the [`scenarios`].

pub mod agent;
pub mod cdi;
pub mod containerd;
pub mod device;
pub mod image;
pub mod inside;
pub mod kubelet;
pub mod node;
pub mod numa;
pub mod outside;
pub mod place;
pub mod pod;
pub mod process;
pub mod report;
pub mod root;
pub mod say;
pub mod scenarios;
pub mod wait;
