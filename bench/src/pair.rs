//! Something of ours, and the same of NVIDIA's if it takes part.

use serde::Serialize;

/// Two of a kind, in the order in which they are always treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Pair<T> {
    /// Ostler's.
    pub(crate) ours: T,
    /// NVIDIA's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) theirs: Option<T>,
}

// === impl Pair ===

impl<T> Pair<T> {
    /// Both that take part.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.ours).chain(&self.theirs)
    }

    /// Both that take part, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.ours).chain(&mut self.theirs)
    }

    /// The same of what is made of each.
    pub(crate) fn map<U>(self, mut make: impl FnMut(T) -> U) -> Pair<U> {
        Pair {
            ours: make(self.ours),
            theirs: self.theirs.map(make),
        }
    }

    /// References to both.
    pub(crate) fn as_ref(&self) -> Pair<&T> {
        Pair {
            ours: &self.ours,
            theirs: self.theirs.as_ref(),
        }
    }

    /// The same part of both, to be changed.
    pub(crate) fn each_mut<'a, U>(
        &'a mut self,
        mut part: impl FnMut(&'a mut T) -> &'a mut U,
    ) -> Pair<&'a mut U> {
        Pair {
            ours: part(&mut self.ours),
            theirs: self.theirs.as_mut().map(part),
        }
    }

    /// The same of what is made of each, one after the other.
    ///
    /// # Errors
    /// The first that there is.
    pub(crate) async fn each<U>(
        self,
        mut make: impl AsyncFnMut(T) -> anyhow::Result<U>,
    ) -> anyhow::Result<Pair<U>> {
        Ok(Pair {
            ours: make(self.ours).await?,
            theirs: match self.theirs {
                Some(theirs) => Some(make(theirs).await?),
                None => None,
            },
        })
    }
}

impl<T> Pair<anyhow::Result<T>> {
    /// Both results.
    ///
    /// # Errors
    /// The first that there is.
    pub(crate) fn transpose(self) -> anyhow::Result<Pair<T>> {
        Ok(Pair {
            ours: self.ours?,
            theirs: self.theirs.transpose()?,
        })
    }
}
