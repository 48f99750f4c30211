//! State of the registrations, for `/v1/status`: one row for each resource. Each plugin writes its
//! own row, and logs every change of the row once.

use std::sync::Arc;

use api::{Phase, Resource};
use jiff::Timestamp;
use model::ResourceName;
use pool::Offers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::front::ServedOffer;

/// State of the device plugin front end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// All resources that are offered now or were until less than a minute ago, sorted by name.
    pub resources: Vec<Resource>,
}

/// Handle to write one row of a [`Status`].
#[derive(Clone, Debug)]
pub(crate) struct ResourceRow {
    board: Arc<watch::Sender<Status>>,
    resource: ResourceName,
}

// === impl Status ===

impl Status {
    /// Finds the row of a resource.
    pub fn find_resource(&self, resource: &str) -> Option<&Resource> {
        self.resources
            .iter()
            .find(|row| row.resource.as_str() == resource)
    }

    /// Removes the rows of resources without an offer.
    pub(crate) fn retain_offered(&mut self, offers: &Offers) {
        let offered = |row: &Resource| offers.iter().any(|o| o.resource == row.resource);
        self.resources.retain(offered);
    }

    fn find_or_add(&mut self, resource: &ResourceName) -> &mut Resource {
        let at = self
            .resources
            .binary_search_by(|row| row.resource.cmp(resource))
            .unwrap_or_else(|at| {
                self.resources.insert(at, Resource::new(resource.clone()));
                at
            });
        &mut self.resources[at]
    }
}

// === impl ResourceRow ===

impl ResourceRow {
    pub(crate) fn new(board: Arc<watch::Sender<Status>>, resource: ResourceName) -> Self {
        Self { board, resource }
    }

    /// Present phase of the resource.
    pub(crate) fn current_phase(&self) -> Phase {
        let board = self.board.borrow();
        board
            .find_resource(self.resource.as_str())
            .map_or_else(Phase::default, |row| row.phase)
    }

    /// Sets phase, message and socket, and writes a log line if the phase or the message is new.
    pub(crate) fn set_phase(&self, phase: Phase, message: &str, socket: Option<&str>) {
        let mut news = false;
        self.edit(|row| {
            news = row.phase != phase || row.message != message;
            if row.phase != phase {
                row.phase = phase;
                row.since = Timestamp::now();
            }
            message.clone_into(&mut row.message);
            row.socket = socket.map(ToOwned::to_owned);
        });
        if news {
            self.log_phase(phase, message);
        }
    }

    /// Adds one to the number of registrations.
    pub(crate) fn count_registration(&self) {
        self.edit(|row| row.registrations += 1);
    }

    /// Takes the numbers of units from an offer, and logs a list that cannot be sent.
    pub(crate) fn set_offer(&self, served: &ServedOffer) {
        let (units, healthy) = (served.offer.units.len(), served.offer.healthy_count());
        let withheld = served.list.as_ref().err().map(ToString::to_string);
        let mut news = None;
        self.edit(|row| {
            if row.withheld != withheld {
                news.clone_from(&withheld);
            }
            (row.units, row.healthy, row.withheld) = (units, healthy, withheld);
        });
        if let Some(reason) = news {
            tracing::error!(resource = %self.resource, %reason, "a device list is withheld");
        }
    }

    /// Removes the row.
    pub(crate) fn remove_row(&self) {
        let other = |row: &Resource| row.resource != self.resource;
        self.board
            .send_modify(|status| status.resources.retain(other));
    }

    fn edit(&self, change: impl FnOnce(&mut Resource)) {
        self.board.send_if_modified(|status| {
            let known = status.resources.len();
            let row = status.find_or_add(&self.resource);
            let before = row.clone();
            change(row);
            *row != before || status.resources.len() != known
        });
    }

    fn log_phase(&self, phase: Phase, message: &str) {
        let resource = &self.resource;
        match phase {
            Phase::Refused | Phase::Failed => {
                tracing::warn!(%resource, ?phase, "{message}");
            }
            Phase::Registering => tracing::debug!(%resource, ?phase, "{message}"),
            Phase::WaitingForKubelet | Phase::Registered => {
                tracing::info!(%resource, ?phase, "{message}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_row(board: &Arc<watch::Sender<Status>>, resource: &str) -> ResourceRow {
        ResourceRow::new(Arc::clone(board), resource.parse().unwrap())
    }

    #[test]
    fn keeps_rows_sorted_and_apart() {
        let board = Arc::new(watch::Sender::new(Status::default()));
        make_row(&board, "b.com/x").set_phase(Phase::Refused, "no", None);
        make_row(&board, "a.com/x").count_registration();
        let status = board.borrow().clone();
        let names: Vec<&str> = status
            .resources
            .iter()
            .map(|r| r.resource.as_str())
            .collect();
        assert_eq!(names, ["a.com/x", "b.com/x"]);
        assert_eq!(
            status.find_resource("b.com/x").unwrap().phase,
            Phase::Refused
        );
        assert_eq!(status.find_resource("a.com/x").unwrap().registrations, 1);
    }

    #[test]
    fn wakes_readers_only_when_something_is_new() {
        let board = Arc::new(watch::Sender::new(Status::default()));
        let row = make_row(&board, "a.com/x");
        row.set_phase(Phase::Failed, "why", None);
        let mut reader = board.subscribe();
        let since = board.borrow().resources[0].since;
        row.set_phase(Phase::Failed, "why", None);
        assert!(!reader.has_changed().unwrap());
        row.set_phase(Phase::Failed, "why else", None);
        assert!(reader.has_changed().unwrap());
        assert_eq!(reader.borrow_and_update().resources[0].since, since);
    }

    #[test]
    fn reads_well_as_json() {
        let mut gpu = Resource::new("nvidia.com/gpu".parse().unwrap());
        gpu.since = Timestamp::UNIX_EPOCH;
        gpu.phase = Phase::Refused;
        gpu.message = "the kubelet refuses the registration: no (Unknown)".to_owned();
        (gpu.units, gpu.healthy) = (8, 7);
        let status = Status {
            resources: vec![gpu],
        };
        insta::assert_json_snapshot!(status, @r#"
        {
          "resources": [
            {
              "resource": "nvidia.com/gpu",
              "phase": "Refused",
              "message": "the kubelet refuses the registration: no (Unknown)",
              "since": "1970-01-01T00:00:00Z",
              "registrations": 0,
              "units": 8,
              "healthy": 7
            }
          ]
        }
        "#);
    }
}
