//! The backend over a simulated node, in the test's own process.

use std::sync::Arc;

use nvidia_probe::NvmlBackend;
use probe::{
    CallTable,
    protocol::{Configure, Scope},
};

use crate::node::Rig;

impl Rig {
    /// Makes the library an older one, in which these symbols are absent.
    pub(crate) fn remove_symbols(&self, names: &[&str]) {
        let mut bytes = fs_err::read(self.node.driver_library()).unwrap();
        for name in names {
            let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
            let mut from = 0;
            while let Some(at) = find(&bytes[from..], &wanted) {
                bytes[from + at + 1] = b'x';
                from += at + 1;
            }
            assert!(from > 0, "the library has no {name}");
        }
        let newer = self.node.node_dir().join("older.so");
        fs_err::write(&newer, bytes).unwrap();
        fs_err::rename(newer, self.node.driver_library()).unwrap();
    }

    pub(crate) fn backend(&self) -> NvmlBackend {
        self.backend_for(Scope::All)
    }

    pub(crate) fn backend_for(&self, scope: Scope) -> NvmlBackend {
        self.backend_with(scope, Arc::default())
    }

    pub(crate) fn backend_with(&self, scope: Scope, calls: Arc<CallTable>) -> NvmlBackend {
        NvmlBackend::new(&self.configure(scope), self.section(), calls)
    }

    /// Creates the backend with these settings.
    pub(crate) fn backend_as(&self, configure: &Configure) -> NvmlBackend {
        NvmlBackend::new(configure, self.section(), Arc::default())
    }
}

/// Returns the position of `needle`.
fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    let first = needle.get(1)?;
    let mut from = 1;
    loop {
        let at = from + hay.get(from..)?.iter().position(|byte| byte == first)?;
        if hay[at - 1..].starts_with(needle) {
            return Some(at - 1);
        }
        from = at + 1;
    }
}
