//! A process on a card as an argument: `PID` or `PID:MIB`.

use std::str::FromStr;

use sim::state::{GpuProcess, ProcessWork};

/// Process that computes, with the memory that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessArg {
    pid: u32,
    mib: u64,
}

// === impl ProcessArg ===

impl ProcessArg {
    /// The process, on the whole card and not on a MIG device.
    pub(super) fn to_process(self) -> GpuProcess {
        GpuProcess {
            pid: self.pid,
            work: ProcessWork::Compute,
            memory_mib: self.mib,
            instance: None,
        }
    }
}

impl FromStr for ProcessArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (pid, mib) = text.split_once(':').unwrap_or((text, "0"));
        match (pid.parse(), mib.parse()) {
            (Ok(pid), Ok(mib)) => Ok(Self { pid, mib }),
            _ => Err(format!(
                "`{text}` is no process: give its id, or its id and MiB as 4711:2048"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_an_id_and_perhaps_its_memory() {
        assert_eq!("7:20".parse(), Ok(ProcessArg { pid: 7, mib: 20 }));
        assert_eq!("7".parse(), Ok(ProcessArg { pid: 7, mib: 0 }));
        assert!("x:1".parse::<ProcessArg>().is_err() && "7:".parse::<ProcessArg>().is_err());
    }
}
