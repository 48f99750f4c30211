//! Blocking jobs that may hang, for example on a network disk: one job at a time, with a time limit
//! for the caller. A job that hangs costs one thread, no matter how often it is requested.

use std::time::Duration;

use tokio::{
    task::{JoinError, JoinHandle, spawn_blocking},
    time::{Instant, timeout_at},
};

/// Runner of blocking jobs with a result of type `T`, one at a time.
///
/// A thread in a system call cannot be ended from outside. A late job stays in its lane, and no other
/// job starts there until it has ended.
///
/// ```
/// # use std::{path::Path, time::Duration};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let mut lane = host::lane::Lane::default();
/// let exists = lane.run_job(Duration::from_secs(3), || Path::new("/nfs/file").exists());
/// match exists.await {
///     Ok(exists) => println!("it is {}there", if exists { "" } else { "not " }),
///     Err(error) => println!("not known: {error}"),
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Lane<T> {
    job: Option<JoinHandle<T>>,
    /// End of the present wait. A dropped wait does not postpone it.
    due: Option<Instant>,
}

/// Error of a job without a result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The job, or the one before it, did not end in time.
    #[error("it has not ended in time")]
    Late,
    /// The job panicked.
    #[error("it broke off: {0}")]
    Broken(#[source] JoinError),
}

// === impl Lane ===

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self {
            job: None,
            due: None,
        }
    }
}

impl<T: Send + 'static> Lane<T> {
    /// True while a job runs.
    pub fn is_busy(&self) -> bool {
        self.job.as_ref().is_some_and(|job| !job.is_finished())
    }

    /// Runs `work` on another thread and waits for its end. The result of an earlier late job that
    /// has ended and was not taken is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Late`] at once while an earlier job runs, and after `limit` otherwise. In both cases
    /// the job continues, and [`resume_wait`](Self::resume_wait) can wait for it.
    pub async fn run_job(
        &mut self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        if self.is_busy() {
            return Err(Error::Late);
        }
        (self.job, self.due) = (Some(spawn_blocking(work)), None);
        let ended = self.resume_wait(limit).await;
        ended.expect("a job was put into the lane")
    }

    /// Waits again for a late job; `None` if there is none. Cancel safe: after a dropped call the next
    /// one still gets the result, and waits no longer than the first would have.
    ///
    /// # Errors
    ///
    /// [`Error::Late`] after `limit`. The next call then waits for the whole `limit` again.
    pub async fn resume_wait(&mut self, limit: Duration) -> Option<Result<T, Error>> {
        let job = self.job.as_mut()?;
        let due = *self.due.get_or_insert_with(|| Instant::now() + limit);
        let ended = timeout_at(due, job).await;
        self.due = None;
        let Ok(ended) = ended else {
            return Some(Err(Error::Late));
        };
        self.job = None;
        Some(ended.map_err(Error::Broken))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;
    use tokio::time::{advance, sleep};

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(30);

    /// Makes a job that hangs until the sender is dropped or sends the result.
    fn hanging() -> (mpsc::Sender<u32>, impl FnOnce() -> u32 + Send + 'static) {
        let (end, hung) = mpsc::channel();
        (end, move || hung.recv().unwrap_or_default())
    }

    #[tokio::test]
    async fn gives_the_result_once() {
        let mut lane = Lane::default();
        assert_eq!(lane.run_job(LONG, || 1).await.unwrap(), 1);
        assert!(!lane.is_busy());
        assert!(lane.resume_wait(LONG).await.is_none());
        assert_eq!(lane.run_job(LONG, || 2).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn no_other_job_is_begun_while_one_hangs() {
        let mut lane = Lane::default();
        let (end, hung) = hanging();
        assert!(matches!(lane.run_job(SOON, hung).await, Err(Error::Late)));
        for _ in 0..3 {
            let refused = lane.run_job(LONG, || unreachable!("one hangs"));
            // The error must come without a wait.
            let refused = refused.now_or_never().unwrap();
            assert!(matches!(refused, Err(Error::Late)));
            assert!(matches!(
                lane.resume_wait(SOON).await,
                Some(Err(Error::Late))
            ));
        }
        end.send(7).unwrap();
        assert_eq!(lane.resume_wait(LONG).await.unwrap().unwrap(), 7);
        assert_eq!(lane.run_job(LONG, || 8).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn a_late_result_that_nobody_took_is_forgotten_by_the_next_job() {
        let mut lane = Lane::default();
        let (end, hung) = hanging();
        assert!(lane.run_job(SOON, hung).await.is_err());
        end.send(7).unwrap();
        while lane.is_busy() {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(lane.run_job(LONG, || 8).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn a_result_outlives_a_wait_that_was_dropped() {
        let mut lane = Lane::default();
        let (end, hung) = hanging();
        assert!(lane.run_job(LONG, hung).now_or_never().is_none());
        assert!(lane.resume_wait(LONG).now_or_never().is_none());
        end.send(7).unwrap();
        assert_eq!(lane.resume_wait(LONG).await.unwrap().unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_that_are_dropped_put_the_limit_off_only_once_it_was_told() {
        let mut lane = Lane::default();
        let (_end, hung) = hanging();
        assert!(lane.run_job(LONG, hung).now_or_never().is_none());
        for late in [false, false, true, false, false, true] {
            advance(LONG / 3).await;
            let told = lane.resume_wait(LONG).now_or_never();
            assert_eq!(matches!(told, Some(Some(Err(Error::Late)))), late);
            if late {
                assert!(
                    lane.resume_wait(LONG).now_or_never().is_none(),
                    "a new wait"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_job_that_panics_frees_its_lane() {
        let mut lane = Lane::default();
        let broken = lane.run_job(LONG, || panic!("on purpose")).await;
        assert!(matches!(broken, Err(Error::Broken(_))));
        lane.run_job(LONG, || ()).await.unwrap();
    }
}
