//! `turnlock chat`: a conversation in the terminal, with the host that runs or with one that is started for it.
//!
//! From a pipe every line is a message: each is answered before the next is sent, and the end of the input is the end of
//! the conversation.

mod input;
mod reply;

use std::process::ExitCode;

use tokio::task::JoinSet;
use turnlock_app::approvals;
use turnlock_channels::command::{self, Argument};
use turnlock_domain::envelope::Command;

use crate::arguments::Options;
use crate::client::{Accepted, Client, News, Posted};
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
    let client = Client::new(&setup.data, running.announcement().clone())?;
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
                Next::Line(Line::Text(text)) if leaves(&text) => break,
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

    /// Says one thing and shows the whole answer, and those of the commands that overtake it.
    async fn say(&mut self, text: &str) -> anyhow::Result<Leaving> {
        let accepted = post(&self.client, self.session, text).await?;
        let mut events = self.client.events(&accepted);
        let mut reply = Reply::new(self.input.is_terminal());
        let mut commands = JoinSet::new();
        // The approval that somebody here is asked for.
        let mut asked: Option<String> = None;
        let (mut is_over, mut is_alone) = (false, false);
        while !(is_over && commands.is_empty()) {
            if is_alone && asked.is_some() && commands.is_empty() {
                // Nobody is left here who could decide.
                return Ok(Leaving::Yes);
            }
            let next = tokio::select! {
                biased;
                Some(answered) = commands.join_next() => During::Answered(answered.map_err(anyhow::Error::from).flatten()),
                news = events.next(), if !is_over => During::News(news?),
                () = self.signals.next() => During::Interrupt,
                // One after the other, so that they arrive in their order.
                line = self.input.overtaking(asked.is_some()), if !is_over && commands.is_empty() => During::Line(line),
            };
            match next {
                During::News(news) => match reply.show(news) {
                    Follows::Nothing => (is_over, asked) = (true, None),
                    Follows::Decision(approval) => asked = Some(approval),
                    Follows::More => {}
                },
                During::Answered(answer) => {
                    match answer {
                        Ok(Some(text)) => reply.beside(&text),
                        Ok(None) => {}
                        Err(error) => reply.beside(&format!("({error:#})")),
                    }
                    // While the host cannot be asked, nothing is known to have changed.
                    if asked.is_some() && self.client.asks(&accepted).await.is_ok_and(|now| now != asked) {
                        asked = None;
                    }
                    if asked.is_some() {
                        reply.prompt();
                    }
                }
                During::Interrupt if self.interrupted || is_over => return Ok(Leaving::Yes),
                During::Interrupt => {
                    self.interrupted = true;
                    commands.spawn(answer(self.client.clone(), self.session.to_owned(), "/stop".to_owned()));
                }
                During::Line(Line::Text(text)) if asked.is_some() && leaves(&text) => return Ok(Leaving::Yes),
                During::Line(Line::Text(text)) if overtakes(&text) => {
                    reply.typed();
                    let text = about(text, asked.as_deref());
                    commands.spawn(answer(self.client.clone(), self.session.to_owned(), text));
                }
                During::Line(line) => {
                    is_alone |= line == Line::End;
                    if asked.is_some() && line != Line::End && self.input.is_terminal() {
                        reply.typed();
                        console::aside("(I say that when this is decided: /approve or /deny)");
                        reply.prompt();
                    }
                    self.input.keep(line);
                }
            }
        }
        self.interrupted = false;
        Ok(Leaving::No)
    }
}

/// What comes while an answer is on its way.
enum During {
    News(News),
    /// What a command came to.
    Answered(anyhow::Result<Option<String>>),
    Line(Line),
    Interrupt,
}

/// Sends a command and waits for its answer; the answer to a stop is what it stops.
async fn answer(client: Client, session: String, text: String) -> anyhow::Result<Option<String>> {
    let accepted = post(&client, &session, &text).await?;
    if command::typed(&text) == Some(Command::Stop) {
        return Ok(None);
    }
    let mut events = client.events(&accepted);
    loop {
        if let News::Final(text) = events.next().await? {
            return Ok(Some(text));
        }
    }
}

/// Posts a message, as often as the host says that it takes it later or is started again.
async fn post(client: &Client, session: &str, text: &str) -> anyhow::Result<Accepted> {
    let key = random_text(16)?;
    loop {
        let host = client.host();
        match client.post_message(session, text, &key).await {
            Ok(Posted::Accepted(accepted)) => return Ok(accepted),
            Ok(Posted::Later(wait)) => {
                console::aside(format_args!("(the host takes the next message in {} s)", wait.as_secs()));
                tokio::time::sleep(wait).await;
            }
            Err(_) if client.follow_restart(&host) => {}
            Err(error) => return Err(error),
        }
    }
}

fn leaves(text: &str) -> bool {
    matches!(text, "/quit" | "/exit")
}

/// Whether a line is a command, which does not wait for its turn.
fn overtakes(text: &str) -> bool {
    command::typed(text).is_some()
}

/// The command as it is sent. A decision that names no request is about the one that is shown here, and no later one, which
/// nobody has seen.
fn about(text: String, asked: Option<&str>) -> String {
    let decision = command::typed(&text).filter(|command| matches!(command, Command::Approve | Command::Deny));
    match (asked, decision) {
        (Some(approval), Some(decision)) if command::argument(&text, decision) == Argument::default() => {
            format!("{text} {}", approvals::code(approval))
        }
        (Some(_) | None, _) => text,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_about_the_card_that_is_shown() {
        for (text, asked, sent) in [
            ("/approve", Some("0199ffa6048b"), "/approve A6048B"),
            ("/deny", Some("0199ffa6048b"), "/deny A6048B"),
            ("/approve 12AB9F", Some("0199ffa6048b"), "/approve 12AB9F"),
            ("/approve a part", Some("0199ffa6048b"), "/approve a part"),
            ("/status", Some("0199ffa6048b"), "/status"),
            ("/approve", None, "/approve"),
        ] {
            assert_eq!(about(text.to_owned(), asked), sent);
        }
    }
}
