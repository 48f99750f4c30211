//! Commands on the standard input of a simulated kubelet.

use std::{str::FromStr, time::Duration};

use anyhow::{Context, bail};
use sim::kubelet::{AdmittedPod, Kubelet, Pod, pod::PodId};
use tokio::time::timeout;

/// Time limit for the admission of a pod. The real kubelet calls Allocate without a deadline
/// (pkg/kubelet/cm/devicemanager/endpoint.go, `allocate`), so that a plugin that hangs stops it.
const ADMISSION: Duration = Duration::from_secs(30);

/// Text of the command `help`.
pub(in crate::cli) const HELP: &str = "\
Commands on standard input:
  pod NAME RESOURCE=COUNT…   admit a pod: pod train nvidia.com/gpu=2
  remove NAME                remove a pod; its devices are free again
  node                       show capacity and allocatable of every resource
  restart                    restart the kubelet
  cut RESOURCE               end the stream on which a resource's devices are listed
  help                       show this list
  quit                       end";

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum KubeletCommand {
    /// Admit a pod of one container.
    Pod(PodId, Vec<(String, usize)>),
    /// Remove a pod.
    Remove(PodId),
    /// Show capacity and allocatable of every resource.
    Node,
    /// Restart the kubelet.
    Restart,
    /// End the `ListAndWatch` stream of a resource.
    Cut(String),
    /// Show the commands.
    Help,
    /// End the kubelet.
    Quit,
}

// === impl KubeletCommand ===

impl FromStr for KubeletCommand {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["pod", name, requests @ ..] if !requests.is_empty() => {
                let requests: Result<_, _> = requests.iter().map(|word| request(word)).collect();
                Ok(Self::Pod(parse_pod_id(name), requests?))
            }
            ["pod", ..] => Err("a pod needs a name and what it asks for: \
                                pod train nvidia.com/gpu=2"
                .to_owned()),
            ["remove", name] => Ok(Self::Remove(parse_pod_id(name))),
            ["remove", ..] => Err("say which pod: remove train".to_owned()),
            ["cut", resource] => Ok(Self::Cut((*resource).to_owned())),
            ["cut", ..] => Err("say which resource: cut nvidia.com/gpu".to_owned()),
            ["node"] => Ok(Self::Node),
            ["restart"] => Ok(Self::Restart),
            ["help"] => Ok(Self::Help),
            ["quit" | "exit"] => Ok(Self::Quit),
            _ => Err(format!("`{}` is no command; type `help`", line.trim())),
        }
    }
}

impl KubeletCommand {
    /// Runs the command. Returns the text to print, with its line ends.
    ///
    /// # Errors
    /// The pod is refused, or there is no such pod or stream.
    pub(in crate::cli) async fn run_on_kubelet(self, kubelet: &Kubelet) -> anyhow::Result<String> {
        match self {
            Self::Pod(id, requests) => admit_requested_pod(kubelet, &id, &requests).await,
            Self::Remove(id) => match kubelet.remove_pod(&id) {
                true => Ok(format!("pod {id} is removed\n")),
                false => bail!("there is no pod {id}"),
            },
            Self::Node => Ok(format_capacity(kubelet)),
            Self::Restart => {
                kubelet.restart_kubelet().await?;
                Ok("the kubelet has restarted; plugins have to register again\n".to_owned())
            }
            Self::Cut(resource) => match kubelet.cut_stream(&resource) {
                true => Ok(format!("the stream of {resource} is cut\n")),
                false => bail!("{resource} has no stream; type `node` for the resources"),
            },
            Self::Help => Ok(format!("{HELP}\n")),
            Self::Quit => Ok(String::new()),
        }
    }
}

async fn admit_requested_pod(
    kubelet: &Kubelet,
    id: &PodId,
    requests: &[(String, usize)],
) -> anyhow::Result<String> {
    let requests = requests.iter().map(|(name, count)| (name.as_str(), *count));
    let pod = Pod::new(&id.namespace, &id.name).with_container("main", requests);
    let admitted = timeout(ADMISSION, kubelet.admit_pod(pod)).await;
    let admitted = admitted.with_context(|| {
        let seconds = ADMISSION.as_secs();
        format!("pod {id} was not admitted within {seconds} s: the plugin does not answer")
    })?;
    let admitted = admitted.with_context(|| format!("pod {id} is refused"))?;
    Ok(format!("pod {id} is admitted\n{}", format_grant(&admitted)))
}

/// Lists the environment and the device nodes that the containers of a pod got.
fn format_grant(admitted: &AdmittedPod) -> String {
    let mut text = String::new();
    for container in admitted.containers.values() {
        let mut envs: Vec<_> = container.response.envs.iter().collect();
        envs.sort();
        for (name, value) in envs {
            text += &format!("  {name}={value}\n");
        }
        for device in &container.response.devices {
            text += &format!("  {}\n", device.container_path);
        }
    }
    text
}

fn format_capacity(kubelet: &Kubelet) -> String {
    let node = kubelet.node_status();
    if node.is_empty() {
        return "no resources: no plugin has registered\n".to_owned();
    }
    let line = |(name, count): (&String, &sim::kubelet::DeviceCounts)| {
        let (capacity, allocatable) = (count.capacity, count.allocatable);
        format!("{name}: capacity {capacity}, allocatable {allocatable}\n")
    };
    node.iter().map(line).collect()
}

/// Parses `namespace/name`. A plain `name` is in the namespace `default`.
fn parse_pod_id(name: &str) -> PodId {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    PodId {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn request(word: &str) -> Result<(String, usize), String> {
    let wrong = || format!("`{word}` is no request; write it as nvidia.com/gpu=2");
    let (resource, count) = word.split_once('=').ok_or_else(wrong)?;
    let count = count.parse().map_err(|_| wrong())?;
    if resource.is_empty() || count == 0 {
        return Err(wrong());
    }
    Ok((resource.to_owned(), count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn reads_a_pod() {
        let pod: KubeletCommand = " pod ml/train nvidia.com/gpu=2  a.b/c=1 ".parse().unwrap();
        let requests = vec![("nvidia.com/gpu".to_owned(), 2), ("a.b/c".to_owned(), 1)];
        assert_eq!(pod, KubeletCommand::Pod(parse_pod_id("ml/train"), requests));
        assert_eq!(
            "remove train".parse(),
            Ok(KubeletCommand::Remove(parse_pod_id("default/train")))
        );
    }

    #[rstest]
    #[case("pod train", "nvidia.com/gpu=2")]
    #[case("pod train nvidia.com/gpu", "`nvidia.com/gpu`")]
    #[case("pod train nvidia.com/gpu=0", "`nvidia.com/gpu=0`")]
    #[case("pod train nvidia.com/gpu=-1", "`nvidia.com/gpu=-1`")]
    #[case("remove", "remove train")]
    #[case("cut", "cut nvidia.com/gpu")]
    #[case("dance", "`dance`")]
    fn refuses_and_says_how_it_is_written(#[case] line: &str, #[case] remedy: &str) {
        let error = line.parse::<KubeletCommand>().unwrap_err();
        assert!(error.contains(remedy), "{error}");
    }
}
