//! NVML's return codes as arguments: `nvmlReturn_t` in nvml.h, by number or name.

use std::{fmt, str::FromStr};

/// Codes with a name, in the order of `nvmlReturn_t`.
const NAMES: [(u32, &str); 19] = [
    (1, "UNINITIALIZED"),
    (2, "INVALID_ARGUMENT"),
    (3, "NOT_SUPPORTED"),
    (4, "NO_PERMISSION"),
    (6, "NOT_FOUND"),
    (7, "INSUFFICIENT_SIZE"),
    (9, "DRIVER_NOT_LOADED"),
    (10, "TIMEOUT"),
    (11, "IRQ_ISSUE"),
    (12, "LIBRARY_NOT_FOUND"),
    (13, "FUNCTION_NOT_FOUND"),
    (14, "CORRUPTED_INFOROM"),
    (15, "GPU_IS_LOST"),
    (16, "RESET_REQUIRED"),
    (17, "OPERATING_SYSTEM"),
    (18, "LIB_RM_VERSION_MISMATCH"),
    (19, "IN_USE"),
    (20, "MEMORY"),
    (999, "UNKNOWN"),
];

/// Return code of a failing call; never 0, which is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli::sim) struct ReturnCode(u32);

// === impl ReturnCode ===

impl ReturnCode {
    /// NVML's number of the code.
    pub(super) fn nvml_number(self) -> u32 {
        self.0
    }
}

impl FromStr for ReturnCode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let upper = text.to_uppercase();
        let name = upper.strip_prefix("NVML_ERROR_").unwrap_or(&upper);
        let named = NAMES.iter().find(|(_, known)| *known == name);
        match named.map(|(number, _)| *number).or(text.parse().ok()) {
            Some(0) => Err("0 is success; `ostler sim clear` ends a fault".to_owned()),
            Some(number) => Ok(Self(number)),
            None => {
                let known = NAMES.map(|(_, name)| name).join(", ");
                Err(format!("give a number, or one of {known}"))
            }
        }
    }
}

impl fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("15", 15, "GPU_IS_LOST")]
    #[case("GPU_IS_LOST", 15, "GPU_IS_LOST")]
    #[case("gpu_is_lost", 15, "GPU_IS_LOST")]
    #[case("NVML_ERROR_UNKNOWN", 999, "UNKNOWN")]
    #[case("77", 77, "code 77")]
    fn reads_numbers_and_names(#[case] text: &str, #[case] number: u32, #[case] name: &str) {
        let code: ReturnCode = text.parse().unwrap();
        assert_eq!(
            (code.nvml_number(), code.to_string().as_str()),
            (number, name)
        );
    }

    #[rstest]
    #[case("0", "success")]
    #[case("", "GPU_IS_LOST")]
    #[case("-1", "GPU_IS_LOST")]
    #[case("LOST", "GPU_IS_LOST")]
    fn refuses_and_says_what_it_takes(#[case] text: &str, #[case] remedy: &str) {
        let error = text.parse::<ReturnCode>().unwrap_err();
        assert!(error.contains(remedy), "{error}");
    }
}
