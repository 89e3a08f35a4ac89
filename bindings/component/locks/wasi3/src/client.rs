//! The resources of the WIT.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{RefCell, RefMut};
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

/// For one call at a time. Another that comes meanwhile is refused; `remaining`, which cannot fail, answers 0, and `tend`
/// that nothing is due. To serve both is what this experiment leaves open.
struct Shared {
    machine: RefCell<Machine>,
    /// Leases that nobody has any more, and of which the machine does not know yet.
    dropped: RefCell<Vec<LockId>>,
}

impl Shared {
    fn machine(&self) -> Result<RefMut<'_, Machine>, wit::Error> {
        let mut machine = self.machine.try_borrow_mut().map_err(|_| wrong("another call of this client is under way"))?;
        self.dropped.take().into_iter().for_each(|lock| machine.forget(lock));
        Ok(machine)
    }
}

pub(crate) struct Client {
    shared: Rc<Shared>,
    owner: String,
}

pub(crate) struct Lease {
    shared: Rc<Shared>,
    lock: LockId,
    token: Token,
}

impl wit::GuestClient for Client {
    fn connect(config: wit::Config) -> Result<wit::Client, wit::Error> {
        let settings = settings(config)?;
        let owner = settings.owner.clone();
        let machine = RefCell::new(Machine::new(settings).map_err(wrong)?);
        let shared = Rc::new(Shared { machine, dropped: RefCell::default() });
        Ok(wit::Client::new(Client { shared, owner }))
    }

    async fn acquire(&self, name: String, wanted: wit::LockOptions) -> Result<wit::Lease, wit::Error> {
        let name = Resource::new(&name).map_err(wrong)?;
        let wanted = options(&wanted, &self.owner)?;
        let (lock, token) = self.shared.machine()?.acquire(name, wanted).await?;
        Ok(wit::Lease::new(Lease { shared: Rc::clone(&self.shared), lock, token }))
    }

    async fn tend(&self, length: wit::Milliseconds) -> Option<wit::Milliseconds> {
        let mut machine = self.shared.machine().ok()?;
        machine.tend(Duration::from_millis(length)).await.map(ms_down)
    }

    fn set_credentials(&self, node: u16, new: wit::Credentials) -> Result<(), wit::Error> {
        self.shared.machine()?.set_credentials(NodeId::new(node), credentials(new)).map_err(wrong)
    }

    async fn close(&self) -> Result<(), wit::Error> {
        self.shared.machine()?.close().await
    }
}

impl wit::GuestLease for Lease {
    fn token(&self) -> wit::Token {
        self.token.get()
    }

    fn remaining(&self) -> wit::Milliseconds {
        self.shared.machine().map_or(0, |mut machine| ms_down(machine.left(self.lock)))
    }

    fn check(&self, min: wit::Milliseconds) -> Result<(), wit::Error> {
        self.shared.machine()?.check(self.lock, Duration::from_millis(min))
    }

    async fn release(&self) -> Result<(), wit::Error> {
        self.shared.machine()?.release(self.lock).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.dropped.borrow_mut().push(self.lock);
        // Told now, or with the next call.
        drop(self.shared.machine());
    }
}

fn ms_down(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
