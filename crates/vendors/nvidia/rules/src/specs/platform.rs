//! What differs in specs between kinds of machines.

use model::{Device as Card, Driver, Platform};

/// The names of cards for which images have a CUDA of their own in a folder of its own.
const ORIN: &str = "Orin (nvgpu)";
const ORIN_COMPAT: &str = "/usr/local/cuda/compat_orin";

/// What the hook is told that lets a newer CUDA of the image take the driver's place; nothing where
/// it cannot.
pub(super) fn compat(
    platform: Platform,
    driver: Option<&Driver>,
    cards: &[&Card],
) -> Option<Vec<String>> {
    let driver = driver?;
    match platform {
        Platform::Usual => Some(vec![format!("--host-driver-version={}", driver.version)]),
        // There the driver is Windows'.
        Platform::Wsl => None,
        Platform::Tegra => {
            let cuda = driver.cuda.as_ref()?;
            let mut args = vec![format!("--host-cuda-version={cuda}")];
            let is_orin = |card: &&Card| card.product().is_some_and(|name| name.contains(ORIN));
            if cards.iter().any(is_orin) {
                args.push(format!("--cuda-compat-container-root={ORIN_COMPAT}"));
            }
            Some(args)
        }
    }
}
