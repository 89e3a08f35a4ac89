//! The resource `client`.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use leasehold_core::{LockId, NodeId, ReadId, RequestId, Resource, Revocation};
use leasehold_wire::client as wire;

use crate::Component;
use crate::answers;
use crate::commands::{Commands, commands, invalid, resource, wish};
use crate::ops::{all, holding, ns};
use crate::outcomes::{nonce, response};
use crate::outputs::{error, output, stats, wake};
use crate::runs;
use crate::settings::{config, fresh, loss, now, refused, seed};
use crate::stores::{credentials, none, store, unfit};
use crate::wit::client as wit;
use crate::wit::ops::Holding;
use crate::wit::stores::{Credentials, Store};
use crate::wit::types::{Config, ConfigError, LockOptions, Now, OtherError, RunResult};

impl wit::Guest for Component {
    type Client = Client;
}

/// Borrowed for one call at a time: nothing is called from here that could call back.
pub(crate) struct Client(pub(crate) RefCell<wire::WireClient>);

fn made(settings: Config, stores: Vec<wire::Store>, seed_: &[u8], at: Now) -> Result<wit::Client, ConfigError> {
    let client = wire::WireClient::new(config(settings)?, stores, seed(seed_)?, now(at)).map_err(unfit)?;
    Ok(wit::Client::new(Client(RefCell::new(client))))
}

impl wit::GuestClient for Client {
    fn create(settings: Config, seed_: Vec<u8>, at: Now) -> Result<wit::Client, ConfigError> {
        let stores = none(settings.nodes.len());
        made(settings, stores, &seed_, at)
    }

    fn create_wired(settings: Config, stores: Vec<Store>, seed_: Vec<u8>, at: Now) -> Result<wit::Client, ConfigError> {
        made(settings, all(stores, store), &seed_, at)
    }

    fn acquire(
        &self,
        lock: u64,
        name: String,
        options: LockOptions,
        fresh_: Vec<u8>,
        at: Now,
    ) -> Result<(), wit::Error> {
        let fresh = fresh(&fresh_).map_err(invalid)?;
        let (resource, options) = wish(&name, options).map_err(invalid)?;
        self.0.borrow_mut().acquire(LockId::new(lock), resource, options, &fresh, now(at)).map_err(error)
    }

    fn release(&self, lock: u64, at: Now) -> Result<(), wit::Error> {
        self.0.borrow_mut().release(LockId::new(lock), now(at)).map_err(error)
    }

    fn finish(&self, lock: u64, run_result: Option<RunResult>, at: Now) -> Result<(), wit::Error> {
        let result = runs::result(run_result).map_err(invalid)?;
        self.0.borrow_mut().finish(LockId::new(lock), result, now(at)).map_err(error)
    }

    fn read(&self, name: String, at: Now) -> Result<u64, ConfigError> {
        let resource = Resource::new(&name).map_err(refused)?;
        Ok(self.0.borrow_mut().read(&resource, now(at)).get())
    }

    fn take_read(&self, read: u64) -> Option<wit::Outcomes> {
        let answers = self.0.borrow_mut().take_read(ReadId::new(read))?;
        Some(wit::Outcomes { outcomes: all(answers, answers::outcome) })
    }

    fn revoke(&self, name: String, holder: Vec<u8>, at: Now) -> Result<u64, ConfigError> {
        let resource = Resource::new(&name).map_err(refused)?;
        let message = "a nonce has 16 bytes";
        let holder = nonce(&holder).ok_or_else(|| ConfigError::Other(OtherError { message: message.into() }))?;
        Ok(self.0.borrow_mut().revoke(&resource, holder, now(at)).get())
    }

    fn take_revoke(&self, revoke: u64) -> Option<wit::Revocation> {
        let Revocation { is_revoked, troubles } = self.0.borrow_mut().take_revoke(ReadId::new(revoke))?;
        Some(wit::Revocation { is_revoked, troubles: all(troubles, answers::outcome) })
    }

    fn declare_lost(&self, lock: u64, at: Now) -> Result<(), wit::Error> {
        self.0.borrow_mut().declare_lost(LockId::new(lock), now(at)).map_err(error)
    }

    fn close(&self, at: Now) {
        self.0.borrow_mut().close(now(at));
    }

    fn handle_response(&self, id: u64, reply: wit::Response, at: Now) {
        self.0.borrow_mut().handle_response(RequestId::new(id), response(reply), now(at));
    }

    fn handle_timeout(&self, fresh_: Vec<u8>, at: Now) -> Result<(), ConfigError> {
        let fresh = fresh(&fresh_)?;
        self.0.borrow_mut().handle_timeout(&fresh, now(at));
        Ok(())
    }

    fn notified(&self, name: String, at: Now) {
        if let Some(resource) = resource(name) {
            self.0.borrow_mut().notified(&resource, now(at));
        }
    }

    fn subscribed(&self, node: u16, name: String, at: Now) {
        if let Some(resource) = resource(name) {
            self.0.borrow_mut().subscribed(NodeId::new(node), &resource, now(at));
        }
    }

    fn credentials_renewed(&self, node: u16, at: Now) {
        self.0.borrow_mut().credentials_renewed(NodeId::new(node), now(at));
    }

    fn set_credentials(&self, node: u16, new: Credentials, at: Now) -> Result<(), ConfigError> {
        self.0.borrow_mut().set_credentials(NodeId::new(node), credentials(new), now(at)).map_err(unfit)
    }

    fn node_votes(&self, node: u16, loss_: Option<Vec<u8>>, at: Now) -> Result<(), ConfigError> {
        let loss = loss(loss_)?;
        self.0.borrow_mut().node_votes(NodeId::new(node), loss, now(at));
        Ok(())
    }

    fn reseed(&self, new: Vec<u8>) -> Result<(), ConfigError> {
        let seed = seed(&new)?;
        self.0.borrow_mut().reseed(seed);
        Ok(())
    }

    fn poll_output(&self, at: Now) -> wit::Output {
        output(self.0.borrow_mut().poll_output(now(at)))
    }

    fn step(&self, fresh_: Vec<u8>, at: Now, inputs: Vec<wit::Input>) -> Result<wit::Stepped, ConfigError> {
        let fresh = fresh(&fresh_)?;
        let Commands { inputs, rejected } = commands(inputs)?;
        let mut brought = Vec::new();
        let wake_at = self.0.borrow_mut().step(&fresh, now(at), inputs, &mut brought).map_err(unfit)?;
        let mut outputs = all(rejected, wit::Output::Rejected);
        outputs.extend(brought.into_iter().map(output));
        Ok(wit::Stepped { outputs, wake_at_ns: wake(wake_at) })
    }

    fn remaining_ns(&self, lock: u64, at: Now) -> u64 {
        ns(self.0.borrow().remaining(LockId::new(lock), now(at)))
    }

    fn nonce(&self, lock: u64) -> Option<Vec<u8>> {
        self.0.borrow().nonce(LockId::new(lock)).map(|nonce| nonce.as_bytes().to_vec())
    }

    fn holder(&self, lock: u64) -> Option<Holding> {
        self.0.borrow().holder(LockId::new(lock)).map(holding)
    }

    fn state(&self, lock: u64) -> Option<String> {
        self.0.borrow().state(LockId::new(lock)).map(String::from)
    }

    fn stats(&self) -> wit::Stats {
        stats(self.0.borrow().stats())
    }

    fn is_idle(&self) -> bool {
        self.0.borrow().is_idle()
    }
}
