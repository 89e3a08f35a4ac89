//! What goes into a client.

use leasehold_core::{self as core, op};
use serde::{Deserialize, Serialize};

use super::bytes::{array, to_hex};
use super::events::to_lock;
use super::member::to_stamp;
use super::{Error, Fault, LockOptions, Outcome, Within, each, integer};

/// One call of a client's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    /// Nothing happened, but time passed: `handle_timeout`, or a step without inputs.
    Timeout {},
    /// `acquire`.
    Acquire {
        /// Chosen by the caller.
        lock: u64,
        /// What to lock.
        resource: String,
        /// How.
        options: LockOptions,
    },
    /// `release`.
    Release {
        /// Which.
        lock: u64,
    },
    /// `declare_lost`.
    DeclareLost {
        /// Which.
        lock: u64,
    },
    /// `handle_response`.
    Response {
        /// The request.
        id: u64,
        /// What became of it.
        result: Reply,
    },
    /// `notified`.
    Notified {
        /// What was released.
        resource: String,
    },
    /// `subscribed`.
    Subscribed {
        /// Where.
        node: u16,
        /// For what.
        resource: String,
    },
    /// `credentials_renewed`.
    CredentialsRenewed {
        /// Where.
        node: u16,
    },
    /// `node_votes`.
    NodeVotes {
        /// Which.
        node: u16,
        /// The loss since which its counters are in doubt, 16 bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loss: Option<String>,
    },
    /// `reseed`.
    Reseed {
        /// The new seed, 32 bytes.
        seed: String,
    },
    /// `close`.
    Close {},
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// The node answered.
    Answered {
        /// One for each operation, in order.
        outcomes: Vec<Outcome>,
    },
    /// Nothing left this machine.
    NotSent(Fault),
    /// Something may have left.
    Unknown(Fault),
}

impl From<&core::Input> for Input {
    fn from(input: &core::Input) -> Self {
        match input {
            core::Input::Acquire { lock, resource, options } => {
                Self::Acquire { lock: lock.get(), resource: resource.as_str().to_owned(), options: options.into() }
            }
            core::Input::Release { lock } => Self::Release { lock: lock.get() },
            core::Input::DeclareLost { lock } => Self::DeclareLost { lock: lock.get() },
            core::Input::Response { id, result } => Self::Response {
                id: id.get(),
                result: match result {
                    Ok(outcomes) => Reply::Answered { outcomes: outcomes.iter().map(Outcome::from).collect() },
                    Err(op::TransportFault::NotSent(fault)) => Reply::NotSent(fault.into()),
                    Err(op::TransportFault::Unknown(fault)) => Reply::Unknown(fault.into()),
                },
            },
            core::Input::Notified { resource } => Self::Notified { resource: resource.as_str().to_owned() },
            core::Input::Subscribed { node, resource } => {
                Self::Subscribed { node: node.get(), resource: resource.as_str().to_owned() }
            }
            core::Input::CredentialsRenewed { node } => Self::CredentialsRenewed { node: node.get() },
            core::Input::NodeVotes { node, loss } => {
                Self::NodeVotes { node: node.get(), loss: loss.map(|loss| to_hex(&loss.0)) }
            }
            core::Input::Reseed { seed } => Self::Reseed { seed: to_hex(seed) },
            core::Input::Close => Self::Close {},
        }
    }
}

impl Input {
    /// The input itself; none for a timeout.
    ///
    /// # Errors
    /// What no input can have.
    pub fn to_core(&self) -> Result<Option<core::Input>, Error> {
        Ok(Some(match self {
            Self::Timeout {} => return Ok(None),
            Self::Acquire { lock, resource, options } => core::Input::Acquire {
                lock: to_lock(*lock).within("acquire")?,
                resource: core::Resource::new(resource).within("acquire.resource")?,
                options: options.to_core().within("acquire.options")?,
            },
            Self::Release { lock } => core::Input::Release { lock: to_lock(*lock).within("release")? },
            Self::DeclareLost { lock } => core::Input::DeclareLost { lock: to_lock(*lock).within("declare_lost")? },
            Self::Response { id, result } => core::Input::Response {
                id: core::RequestId::new(integer(*id).within("response.id")?),
                result: result.to_core().within("response.result")?,
            },
            Self::Notified { resource } => {
                core::Input::Notified { resource: core::Resource::new(resource).within("notified.resource")? }
            }
            Self::Subscribed { node, resource } => core::Input::Subscribed {
                node: core::NodeId::new(*node),
                resource: core::Resource::new(resource).within("subscribed.resource")?,
            },
            Self::CredentialsRenewed { node } => core::Input::CredentialsRenewed { node: core::NodeId::new(*node) },
            Self::NodeVotes { node, loss } => core::Input::NodeVotes {
                node: core::NodeId::new(*node),
                loss: loss.as_deref().map(to_stamp).transpose().within("node_votes.loss")?,
            },
            Self::Reseed { seed } => core::Input::Reseed { seed: array(seed).within("reseed.seed")? },
            Self::Close {} => core::Input::Close,
        }))
    }

    /// Whether the call takes fresh bytes.
    pub const fn takes_entropy(&self) -> bool {
        matches!(self, Self::Timeout {} | Self::Acquire { .. })
    }

    /// The method that it calls, for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Timeout {} => "timeout",
            Self::Acquire { .. } => "acquire",
            Self::Release { .. } => "release",
            Self::DeclareLost { .. } => "declare_lost",
            Self::Response { .. } => "response",
            Self::Notified { .. } => "notified",
            Self::Subscribed { .. } => "subscribed",
            Self::CredentialsRenewed { .. } => "credentials_renewed",
            Self::NodeVotes { .. } => "node_votes",
            Self::Reseed { .. } => "reseed",
            Self::Close {} => "close",
        }
    }
}

impl Reply {
    fn to_core(&self) -> Result<Result<Vec<op::Outcome>, op::TransportFault>, Error> {
        Ok(match self {
            Self::Answered { outcomes } => Ok(each(outcomes, Outcome::to_core).within("answered.outcomes")?),
            Self::NotSent(fault) => Err(op::TransportFault::NotSent(fault.to_core().within("not_sent")?)),
            Self::Unknown(fault) => Err(op::TransportFault::Unknown(fault.to_core().within("unknown")?)),
        })
    }
}
