//! The clients of a service: they ask, always with the same key, until they have an answer.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use leasehold_bench::rng::Rng;
use leasehold_servers::http::{Connection, Response};

use super::board::Board;
use super::lock;
use super::service::Doors;

/// Requests with one key. One of them has another body than the others.
pub const EACH: u64 = 5;
/// The last request with a key comes after so many others, when the first ones are done.
const LATER: u64 = 200;
/// Sums: that of most requests, and that of the other body.
const USUAL: u64 = 9;
const OTHER: u64 = 10;
/// The time for an answer. A process that is stopped is given up then.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// The pause before a request is sent again.
const AGAIN: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(150)];
/// The time in which each request must have an answer.
const ENOUGH: Duration = Duration::from_secs(180);

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The number of its key: of two users, each of whom has the same texts.
    pub key: usize,
    /// The sum in its body.
    pub eur: u64,
}

/// That many requests in the order in which they are sent, of which those with one key come close to each other, and one of each key
/// later.
pub fn orders(requests: u64, rng: &mut Rng) -> VecDeque<Order> {
    let mut orders = Vec::new();
    let mut other = 0;
    for number in 0..requests {
        if number % EACH == 0 {
            other = rng.draw() % EACH;
        }
        let eur = if number % EACH == other { OTHER } else { USUAL };
        let at = if number % EACH == EACH - 1 { number + LATER } else { number };
        orders.push((at, Order { key: usize::try_from(number / EACH).unwrap_or_default(), eur }));
    }
    orders.sort_by_key(|(at, _)| *at);
    orders.into_iter().map(|(_, order)| order).collect()
}

/// Asks for what nobody has asked for yet, until there is nothing left.
pub fn ask_all(orders: &Mutex<VecDeque<Order>>, doors: &Doors, board: &Mutex<Board>, mut rng: Rng) {
    loop {
        let Some(order) = lock(orders).pop_front() else { return };
        if !ask(order, doors, board, &mut rng) {
            return lock(board).fault(format!("key {}: a request had no answer within {ENOUGH:?}", order.key));
        }
    }
}

/// Sends a request until it is answered, to any process of the service.
fn ask(order: Order, doors: &Doors, board: &Mutex<Board>, rng: &mut Rng) -> bool {
    let start = Instant::now();
    while start.elapsed() < ENOUGH {
        let was_done = lock(board).is_done(order.key);
        let (address, process) = doors.any(rng);
        match send(order, address) {
            Ok(response) if lock(board).answered(order, process, was_done, &response) => return true,
            Ok(_) => {}
            Err(_) => lock(board).cut(),
        }
        sleep(rng.between(AGAIN[0], AGAIN[1]));
    }
    false
}

fn send(Order { key, eur }: Order, address: SocketAddr) -> io::Result<Response> {
    let (text, user) = (format!("order-{}", key / 2), format!("user-{}", key % 2));
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", &text), ("X-User", &user)];
    let mut connection = Connection::open(address)?;
    connection.give_up_after(PATIENCE)?;
    connection.request("POST", "/charge", &headers, format!(r#"{{"key": {key}, "eur": {eur}}}"#))
}
