//! Differences in specs between kinds of machines.

use model::{Device as Card, Driver, Platform};

/// Part of the product name of Orin's card, and the folder of the CUDA that images have for it.
const ORIN: &str = "Orin (nvgpu)";
const ORIN_COMPAT: &str = "/usr/local/cuda/compat_orin";

/// Returns the arguments of the hook that lets a newer CUDA of the image replace the driver's;
/// `None` if that is impossible.
pub(super) fn compat(
    platform: Platform,
    driver: Option<&Driver>,
    cards: &[&Card],
) -> Option<Vec<String>> {
    let driver = driver?;
    match platform {
        Platform::Usual => Some(vec![format!("--host-driver-version={}", driver.version)]),
        // Under WSL the driver belongs to Windows and cannot be replaced.
        Platform::Wsl => None,
        Platform::Tegra => {
            let cuda = driver.cuda.as_ref()?;
            let mut args = vec![format!("--host-cuda-version={cuda}")];
            let is_orin =
                |card: &&Card| card.product_name().is_some_and(|name| name.contains(ORIN));
            if cards.iter().any(is_orin) {
                args.push(format!("--cuda-compat-container-root={ORIN_COMPAT}"));
            }
            Some(args)
        }
    }
}
