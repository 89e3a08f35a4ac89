//! The commands of `step` on their way in.

use alloc::string::String;
use alloc::vec::Vec;

use leasehold_core::{Input, LockId, LockOptions, NodeId, RequestId, Resource};
use leasehold_wire::client as wire;

use crate::outcomes::response;
use crate::runs;
use crate::settings::{loss, options, refused, seed};
use crate::stores::credentials;
use crate::wit::client as wit;
use crate::wit::types::{ConfigError, LockOptions as WitOptions};

/// A list of inputs, split into those the core takes and those that are rejected.
#[derive(Default)]
pub(crate) struct Commands {
    /// Inputs for the core, in order.
    pub(crate) inputs: Vec<wire::Input>,
    /// Commands that no client can accept.
    pub(crate) rejected: Vec<wit::RejectedCommand>,
}

/// All inputs, or none of them where one lacks the bytes that it must have.
pub(crate) fn commands(inputs: Vec<wit::Input>) -> Result<Commands, ConfigError> {
    let mut commands = Commands::default();
    for input in inputs {
        match command(input)? {
            Command::Given(input) => commands.inputs.push(input),
            Command::Rejected(rejected) => commands.rejected.push(rejected),
            Command::Ignored => {}
        }
    }
    Ok(commands)
}

enum Command {
    Given(wire::Input),
    Rejected(wit::RejectedCommand),
    /// A hint about what no lock can be called.
    Ignored,
}

fn command(input: wit::Input) -> Result<Command, ConfigError> {
    let input = match input {
        wit::Input::Acquire(acquire) => {
            let lock = acquire.lock;
            match wish(&acquire.resource, acquire.options) {
                Ok((resource, options)) => Input::Acquire { lock: LockId::new(lock), resource, options },
                Err(error) => {
                    return Ok(Command::Rejected(wit::RejectedCommand { lock, error: invalid(error) }));
                }
            }
        }
        wit::Input::Release(lock) => Input::Release { lock: LockId::new(lock.lock) },
        wit::Input::Finish(finish) => {
            let lock = finish.lock;
            match runs::result(finish.run_result) {
                Ok(run_result) => Input::Finish { lock: LockId::new(lock), run_result },
                Err(error) => return Ok(Command::Rejected(wit::RejectedCommand { lock, error: invalid(error) })),
            }
        }
        wit::Input::DeclareLost(lock) => Input::DeclareLost { lock: LockId::new(lock.lock) },
        wit::Input::Response(reply) => {
            let (id, response) = (RequestId::new(reply.id), response(reply.response));
            return Ok(Command::Given(wire::Input::Response { id, response }));
        }
        wit::Input::Notified(hint) => match resource(hint.resource) {
            Some(resource) => Input::Notified { resource },
            None => return Ok(Command::Ignored),
        },
        wit::Input::Subscribed(hint) => match resource(hint.resource) {
            Some(resource) => Input::Subscribed { node: NodeId::new(hint.node), resource },
            None => return Ok(Command::Ignored),
        },
        wit::Input::CredentialsRenewed(node) => Input::CredentialsRenewed { node: NodeId::new(node.node) },
        wit::Input::SetCredentials(new) => {
            let (node, credentials) = (NodeId::new(new.node), credentials(new.credentials));
            return Ok(Command::Given(wire::Input::SetCredentials { node, credentials }));
        }
        wit::Input::NodeVotes(vote) => Input::NodeVotes { node: NodeId::new(vote.node), loss: loss(vote.loss)? },
        wit::Input::Reseed(new) => Input::Reseed { seed: seed(&new.seed)? },
        wit::Input::Close => Input::Close,
    };
    Ok(Command::Given(wire::Input::Core(input)))
}

/// The resource and the options of an acquire command.
pub(crate) fn wish(name: &str, wanted: WitOptions) -> Result<(Resource, LockOptions), ConfigError> {
    Ok((Resource::new(name).map_err(refused)?, options(wanted)?))
}

/// A name that some lock can have.
pub(crate) fn resource(name: String) -> Option<Resource> {
    Resource::new(&name).ok()
}

pub(crate) fn invalid(error: ConfigError) -> wit::Error {
    wit::Error::Invalid(wit::InvalidArgument { error })
}
