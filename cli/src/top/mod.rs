//! `leasehold top`: a live table of the locks that are held.

mod looks;
mod view;

use std::io::{self, IsTerminal, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use leasehold::ffi;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use rustix::process::Signal;

use crate::args::TopArgs;
use crate::exec::{Event as Caught, Inbox, Signals};
use crate::output::Failure;
use crate::status;
use crate::store::{Target, shown};
use looks::Looks;
use view::{Scroll, View};

/// How often the screen is drawn, and signals are looked for. A key is answered at once.
const FRAME: Duration = Duration::from_millis(200);

#[derive(Clone, Copy)]
enum Key {
    Quit(u8),
    Suspend,
    Sort,
    Scroll(Scroll),
}

const WITH_CONTROL: [(KeyCode, Key); 2] =
    [(KeyCode::Char('c'), Key::Quit(status::of_signal(Signal::INT.as_raw()))), (KeyCode::Char('z'), Key::Suspend)];
const ALONE: [(KeyCode, Key); 12] = [
    (KeyCode::Char('q'), Key::Quit(status::DONE)),
    (KeyCode::Esc, Key::Quit(status::DONE)),
    (KeyCode::Char('s'), Key::Sort),
    (KeyCode::Down, Key::Scroll(Scroll::Down)),
    (KeyCode::Char('j'), Key::Scroll(Scroll::Down)),
    (KeyCode::Up, Key::Scroll(Scroll::Up)),
    (KeyCode::Char('k'), Key::Scroll(Scroll::Up)),
    (KeyCode::PageDown, Key::Scroll(Scroll::PageDown)),
    (KeyCode::Char(' '), Key::Scroll(Scroll::PageDown)),
    (KeyCode::PageUp, Key::Scroll(Scroll::PageUp)),
    (KeyCode::Home, Key::Scroll(Scroll::Home)),
    (KeyCode::End, Key::Scroll(Scroll::End)),
];

pub(crate) fn run(args: &TopArgs, target: &Target) -> Result<u8, Failure> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    if is_dumb || !stdout().is_terminal() {
        let what = "`top` needs a terminal: use `leasehold list`, or `leasehold list --json` for programs";
        return Err(Failure::usage(what));
    }
    let client = target.connect()?;
    let mut view = View::new(shown(client.stores()), &args.prefix);
    let (first, looks) = Looks::start(client, args)?;
    view.learn(first);
    let inbox = Inbox::new();
    let mut signals =
        Signals::catch(inbox.sender()).map_err(|error| Failure::system("cannot catch signals", &error))?;
    show(&mut view, &looks, &inbox, &mut signals).map_err(|error| Failure::system("cannot use the terminal", &error))
}

fn show(view: &mut View, looks: &Looks, inbox: &Inbox, signals: &mut Signals) -> io::Result<u8> {
    let mut screen = Screen::open()?;
    // The reader of keys is made here. A key that comes together with a change of size would wait in it for the next key, so
    // it is not told of those: each drawing sees them.
    event::poll(Duration::ZERO)?;
    signals.ignore_sizes()?;
    let keys = typed()?;
    loop {
        if let Some(look) = looks.next()? {
            view.learn(look);
        }
        screen.0.draw(|frame| view.draw(frame, ffi::clocks().0))?;
        looks.count_waiters_of(view.visible());
        let mut patience = FRAME;
        while let Some(event) = next(&keys, patience)? {
            match key(&event) {
                Some(Key::Quit(status)) => return Ok(status),
                Some(Key::Suspend) => {
                    drop(screen);
                    signals.stop_process()?;
                    screen = Screen::open()?;
                }
                Some(Key::Sort) => view.sort_otherwise(),
                Some(Key::Scroll(by)) => view.scroll(by),
                None => {}
            }
            patience = Duration::ZERO;
        }
        if let Some(Caught::Signal(signal)) = inbox.next(Duration::ZERO) {
            return Ok(status::of_signal(signal.as_raw()));
        }
    }
}

/// The keys, read on a thread of their own: once the terminal has gone, the call that reads it never ends.
fn typed() -> io::Result<Receiver<io::Result<Event>>> {
    let (sender, keys) = channel();
    let read = move || while sender.send(event::read()).is_ok() {};
    thread::Builder::new().name("leasehold-keys".to_owned()).spawn(read).map(|_| keys)
}

fn next(keys: &Receiver<io::Result<Event>>, patience: Duration) -> io::Result<Option<Event>> {
    match keys.recv_timeout(patience) {
        Ok(event) => event.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread that reads the keys has died")),
    }
}

/// The terminal in raw mode, with a screen of its own. Dropping it gives the terminal back; so does a panic, before its
/// message is printed.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self).inspect_err(|_| drop(ratatui::try_restore()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A second time would move the cursor to before the message.
        if !thread::panicking() {
            // A terminal that has gone needs nothing.
            let _ = ratatui::try_restore();
        }
    }
}

/// The meaning of a key; `None` for other keys.
fn key(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    let keys = if is_control { &WITH_CONTROL[..] } else { &ALONE };
    let (_, meaning) = keys.iter().find(|(code, _)| *code == key.code)?;
    (key.kind != KeyEventKind::Release).then_some(*meaning)
}
