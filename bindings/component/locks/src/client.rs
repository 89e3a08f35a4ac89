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

/// Borrowed for one call at a time: nothing that is called from here could call back.
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

    fn acquire(&self, name: String, wanted: wit::LockOptions) -> Result<wit::Lease, wit::Error> {
        let name = Resource::new(&name).map_err(wrong)?;
        let wanted = options(&wanted, &self.owner)?;
        let (lock, token) = self.machine.borrow_mut().acquire(name, wanted)?;
        Ok(wit::Lease::new(Lease { machine: Rc::clone(&self.machine), lock, token }))
    }

    fn tend(&self, length: wit::Milliseconds) -> Option<wit::Milliseconds> {
        self.machine.borrow_mut().tend(Duration::from_millis(length)).map(ms_down)
    }

    fn set_credentials(&self, node: u16, new: wit::Credentials) -> Result<(), wit::Error> {
        self.machine.borrow_mut().set_credentials(NodeId::new(node), credentials(new)).map_err(wrong)
    }

    fn close(&self) -> Result<(), wit::Error> {
        self.machine.borrow_mut().close()
    }
}

impl wit::GuestLease for Lease {
    fn token(&self) -> wit::Token {
        self.token.get()
    }

    fn remaining(&self) -> wit::Milliseconds {
        ms_down(self.machine.borrow_mut().left(self.lock))
    }

    fn check(&self, min: wit::Milliseconds) -> Result<(), wit::Error> {
        self.machine.borrow_mut().check(self.lock, Duration::from_millis(min))
    }

    fn release(&self) -> Result<(), wit::Error> {
        self.machine.borrow_mut().release(self.lock)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.machine.borrow_mut().forget(self.lock);
    }
}

fn ms_down(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
