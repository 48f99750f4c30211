//! What a person or a program on the node asks the agent over HTTP. Today: the control socket,
//! through which the commands ask a running agent.

pub mod client;
pub mod control;
mod operator;

pub use self::operator::Operator;
