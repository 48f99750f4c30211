//! CSV files of a Tegra system with any bytes: a reported file exists, is below the root and is not
//! a link.
#![no_main]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use libfuzzer_sys::fuzz_target;

/// Folder of the CSV files.
const CSV: &str = "etc/nvidia-container-runtime/host-files-for-container.d";

/// Simulated board that all inputs share.
struct Board {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

fuzz_target!(|bytes: &[u8]| {
    static BOARD: OnceLock<Option<Board>> = OnceLock::new();
    let Some(board) = BOARD.get_or_init(|| make().ok()) else {
        return;
    };
    let file = board.root.join(CSV).join("drivers.csv");
    if fs::write(file, bytes).is_err() {
        return;
    }
    let found = nvidia_probe::find_board_files(&board.root);
    for file in &found.files {
        let place = board.root.join(file.path.trim_start_matches('/'));
        assert_eq!(place.canonicalize().ok().as_ref(), Some(&place), "{file:?}");
        let texts = file
            .links
            .iter()
            .flat_map(|link| [&link.path, &link.target]);
        let texts = texts.chain(&file.container_path);
        for text in texts {
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
    for node in &found.board_nodes {
        assert!(board.root.join(node.trim_start_matches('/')).is_file());
        assert!(!node.contains("/../"), "{node}");
    }
    assert!(found.problems.iter().all(|line| !line.contains('\n')));
});

fn make() -> std::io::Result<Board> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().canonicalize()?;
    let place = |path: &str| -> std::io::Result<PathBuf> {
        let place = root.join(path);
        fs::create_dir_all(place.parent().unwrap_or(Path::new("/")))?;
        Ok(place)
    };
    for path in [
        "dev/nvmap",
        "dev/nvhost-gpu",
        "dev/nvgpu/igpu0/as",
        "usr/lib/nvidia/libcuda.so.1.1",
        "usr/lib/nvidia/libnvrm.so",
        "usr/lib/firmware/a.bin",
        "etc/a.json",
    ] {
        fs::write(place(path)?, "")?;
    }
    for (path, target) in [
        ("lib", "usr/lib"),
        ("usr/lib/tegra", "nvidia"),
        ("usr/lib/libcuda.so", "tegra/libcuda.so"),
        ("usr/lib/nvidia/libcuda.so", "libcuda.so.1.1"),
        ("usr/lib/loop", "../lib/loop"),
        ("usr/lib/out", "../../../../../../../../etc/passwd"),
        ("etc/b.json", "/etc/a.json"),
    ] {
        symlink(target, place(path)?)?;
    }
    fs::create_dir_all(root.join(CSV))?;
    let devices = "dev, /dev/nv*\ndev, /dev/nvgpu/*/*\n";
    fs::write(root.join(CSV).join("devices.csv"), devices)?;
    Ok(Board {
        _folder: folder,
        root,
    })
}
