//! `turnlock chat`: a conversation in the terminal, with the host that runs or with one that is started for it.
//!
//! From a pipe every line is a message: each is answered before the next is sent, and the end of the input is the end of
//! the conversation.

mod input;
mod reply;

use std::process::ExitCode;

use turnlock_channels::command;
use turnlock_domain::envelope::Command;

use crate::arguments::Options;
use crate::client::{Client, Posted};
use crate::data::random_text;
use crate::journal::Journal;
use crate::running::Running;
use crate::setup::Setup;
use crate::signals::Signals;
use crate::{console, logs, signals};

use self::input::{Input, Line};
use self::reply::{Follows, Reply};

const HELP: &str = "\
/new      begin a new conversation
/stop     end what the agent is doing (or Ctrl-C)
/status   what it is doing
/approve  allow what it asks for (or /deny)
/help     what it can do
/quit     leave (or Ctrl-D, or Ctrl-C twice)";

/// Talks until the input ends.
pub(crate) async fn run(options: &Options, session: &str) -> anyhow::Result<ExitCode> {
    let journal = Journal::default();
    logs::start(options, &journal, true)?;
    let setup = Setup::read(options)?;
    let signals = signals::listen()?;
    if let Some(client) = Client::find(&setup.data).await? {
        return Conversation::new(client, session, signals).run().await;
    }
    let mut listen = setup.listen;
    if setup.is_demo() && !setup.port_is_chosen {
        // Nobody is told this address, so it need not be the usual one.
        listen.set_port(0);
    }
    let running = Running::start(&setup, listen, &journal).await?;
    let client = Client::new(running.announcement().clone())?;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let work = running.work(async move { drop(ended.await) });
    let talk = async move {
        let talked = Conversation::new(client, session, signals).run().await;
        drop(end);
        talked
    };
    let (worked, talked) = tokio::join!(work, talk);
    worked.and(talked)
}

struct Conversation<'s> {
    client: Client,
    session: &'s str,
    signals: Signals,
    input: Input,
    /// Whether the last thing said was Ctrl-C.
    interrupted: bool,
}

/// What came next.
enum Next {
    Line(Line),
    Interrupt,
}

impl<'s> Conversation<'s> {
    fn new(client: Client, session: &'s str, signals: Signals) -> Self {
        Self { client, session, signals, input: Input::start(), interrupted: false }
    }

    async fn run(mut self) -> anyhow::Result<ExitCode> {
        self.greet();
        loop {
            self.input.prompt();
            let next = tokio::select! {
                line = self.input.next() => Next::Line(line),
                () = self.signals.next() => Next::Interrupt,
            };
            match next {
                Next::Interrupt if self.interrupted => break,
                Next::Interrupt => {
                    self.interrupted = true;
                    console::line("\n(Ctrl-C once more leaves)");
                }
                Next::Line(Line::End) => break,
                Next::Line(Line::Text(text)) if matches!(text.as_str(), "/quit" | "/exit") => break,
                Next::Line(Line::Text(text)) => {
                    self.interrupted = false;
                    if self.say(&text).await? == Leaving::Yes {
                        break;
                    }
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn greet(&self) {
        if !self.input.is_terminal() {
            return;
        }
        let host = self.client.host();
        let what = if host.demo { "a stand-in, no language model" } else { "the configured model" };
        console::line(format_args!("Talking to {what}, at {} (session {}).\n{HELP}", host.address, self.session));
    }

    /// Says one thing and shows the whole answer.
    async fn say(&mut self, text: &str) -> anyhow::Result<Leaving> {
        let accepted = self.post(text).await?;
        let mut events = self.client.events(&accepted);
        let mut reply = Reply::new(self.input.is_terminal());
        let mut asked = false;
        loop {
            let next = tokio::select! {
                biased;
                news = events.next() => {
                    match reply.show(news?) {
                        Follows::Nothing => {
                            self.interrupted = false;
                            return Ok(Leaving::No);
                        }
                        Follows::Decision => asked = true,
                        Follows::More => {}
                    }
                    continue;
                }
                () = self.signals.next() => Next::Interrupt,
                line = self.input.overtaking(asked) => Next::Line(line),
            };
            match next {
                Next::Interrupt if self.interrupted => return Ok(Leaving::Yes),
                Next::Interrupt => {
                    self.interrupted = true;
                    self.command("/stop").await?;
                }
                Next::Line(Line::Text(text)) if overtakes(&text) => self.command(&text).await?,
                // Nobody is left here who could decide.
                Next::Line(Line::End) if asked => return Ok(Leaving::Yes),
                Next::Line(line) => self.input.keep(line),
            }
        }
    }

    /// The answer to a stop is what it stops, and to a decision what it is about; its own notice is not waited for.
    async fn command(&self, text: &str) -> anyhow::Result<()> {
        self.client.post_message(self.session, text, &random_text(16)?).await.map(|_| ())
    }

    async fn post(&self, text: &str) -> anyhow::Result<crate::client::Accepted> {
        let key = random_text(16)?;
        loop {
            match self.client.post_message(self.session, text, &key).await? {
                Posted::Accepted(accepted) => return Ok(accepted),
                Posted::Later(wait) => {
                    console::aside(format_args!("(the host takes the next message in {} s)", wait.as_secs()));
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }
}

/// Whether a line is for what the agent does now.
fn overtakes(text: &str) -> bool {
    match command::typed(text) {
        Some(Command::Stop | Command::Approve | Command::Deny) => true,
        Some(Command::New | Command::Status | Command::Help | Command::Tap | Command::Steer | Command::Unknown)
        | None => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Yes,
    No,
}
