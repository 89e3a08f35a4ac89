//! The resources of the WIT.

use alloc::rc::Rc;
use alloc::string::String;
use core::cell::RefCell;
use core::time::Duration;

use leasehold_core::{LockId, NodeId, Resource, Token};

use crate::machine::Machine;
use crate::problem::config as wrong;
use crate::settings::{credentials, options, settings};
use crate::{Component, wit};

impl wit::Guest for Component {
    type Client = Client;
    type Lease = Lease;
}

/// Borrowed for one call at a time. Another that comes meanwhile is refused: to serve both is what this experiment leaves open.
type Shared = Rc<RefCell<Machine>>;

pub(crate) struct Client {
    machine: Shared,
    owner: String,
}

pub(crate) struct Lease {
    machine: Shared,
    lock: LockId,
    token: Token,
}

impl wit::GuestClient for Client {
    fn connect(config: wit::Config) -> Result<wit::Client, wit::Error> {
        let settings = settings(config)?;
        let owner = settings.owner.clone();
        let machine = Rc::new(RefCell::new(Machine::new(settings).map_err(wrong)?));
        Ok(wit::Client::new(Client { machine, owner }))
    }

    async fn acquire(&self, name: String, wanted: wit::LockOptions) -> Result<wit::Lease, wit::Error> {
        let name = Resource::new(&name).map_err(wrong)?;
        let wanted = options(&wanted, &self.owner)?;
        let (lock, token) = self.machine.try_borrow_mut().map_err(|_| busy())?.acquire(name, wanted).await?;
        Ok(wit::Lease::new(Lease { machine: Rc::clone(&self.machine), lock, token }))
    }

    async fn tend(&self, length: wit::Milliseconds) -> Option<wit::Milliseconds> {
        let mut machine = self.machine.try_borrow_mut().ok()?;
        machine.tend(Duration::from_millis(length)).await.map(ms_down)
    }

    fn set_credentials(&self, node: u16, new: wit::Credentials) -> Result<(), wit::Error> {
        self.machine
            .try_borrow_mut()
            .map_err(|_| busy())?
            .set_credentials(NodeId::new(node), credentials(new))
            .map_err(wrong)
    }

    async fn close(&self) -> Result<(), wit::Error> {
        self.machine.try_borrow_mut().map_err(|_| busy())?.close().await
    }
}

impl wit::GuestLease for Lease {
    fn token(&self) -> wit::Token {
        self.token.get()
    }

    fn remaining(&self) -> wit::Milliseconds {
        self.machine.try_borrow_mut().map_or(0, |mut machine| ms_down(machine.left(self.lock)))
    }

    fn check(&self, min: wit::Milliseconds) -> Result<(), wit::Error> {
        self.machine.try_borrow_mut().map_err(|_| busy())?.check(self.lock, Duration::from_millis(min))
    }

    async fn release(&self) -> Result<(), wit::Error> {
        self.machine.try_borrow_mut().map_err(|_| busy())?.release(self.lock).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Ok(mut machine) = self.machine.try_borrow_mut() {
            machine.forget(self.lock);
        }
    }
}

fn busy() -> wit::Error {
    wrong("another call of this client is under way")
}

fn ms_down(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
