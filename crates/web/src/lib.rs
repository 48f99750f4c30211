//! HTTP on the node: the control socket of the agent, and its client for the commands.

pub mod client;
pub mod control;
mod operator;

pub use self::operator::Operator;
