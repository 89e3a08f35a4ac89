//! The interface `redis`: what a host with a connection of its own needs.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use leasehold_core::Resource;
use leasehold_wire::redis::Codec;
use leasehold_wire::resp;

use crate::Component;
use crate::settings::{large, refused};
use crate::stores::redis_command;
use crate::wit::redis as wit;
use crate::wit::stores::RedisCommand;
use crate::wit::types::ConfigError;

/// The longest reply where the host sets no other bound.
const MAX_REPLY_BYTES: u32 = 1 << 20;

impl wit::Guest for Component {
    type Reader = Reader;

    fn encode(commands: Vec<RedisCommand>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for command in commands {
            resp::encode(&redis_command(command), &mut bytes);
        }
        bytes
    }

    fn channel(name: String) -> Result<Vec<u8>, ConfigError> {
        Ok(Codec::channel(&Resource::new(&name).map_err(refused)?))
    }

    fn released_by(channel: Vec<u8>, message: Vec<u8>) -> Option<String> {
        Codec::released_by(&channel, &message).map(|resource| resource.as_str().into())
    }
}

pub(crate) struct Reader(RefCell<resp::Reader>);

impl wit::GuestReader for Reader {
    fn create(max_reply_bytes: Option<u32>) -> Result<wit::Reader, ConfigError> {
        let reader = resp::Reader::new(large(max_reply_bytes.unwrap_or(MAX_REPLY_BYTES))).map_err(refused)?;
        Ok(wit::Reader::new(Self(RefCell::new(reader))))
    }

    fn push(&self, bytes: Vec<u8>) {
        self.0.borrow_mut().push(&bytes);
    }

    fn take(&self, replies: u32) -> Result<Option<Vec<u8>>, wit::Malformed> {
        let taken = self.0.borrow_mut().take(large(replies));
        taken.map_err(|malformed| wit::Malformed { message: malformed.to_string() })
    }
}
