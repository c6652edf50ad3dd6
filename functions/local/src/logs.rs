//! Logs on stderr, and the ring of recent events that the page shows.

use std::any::Any;

use anyhow::Context;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};
use turnlock_config::names;

use crate::arguments::{LogFormat, Options};
use crate::failure::Misuse;
use crate::journal::Journal;

/// One line an event, at its end: it waits for a moment only, and what leaves for a channel is in that line already.
const SERVING: &str = "warn,turnlock=info,turnlock::outbound=warn,turnlock::accepted=warn";
/// Beside a conversation in the same terminal, only what went wrong.
const TALKING: &str = "warn";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Sends lines to stderr and events to `journal`. `talking` = the terminal is used for a conversation.
pub(crate) fn start(options: &Options, journal: &Journal, talking: bool) -> anyhow::Result<()> {
    let filter = filter(options.log_level.clone().or_else(|| names::environment(names::LOG)), talking)?;
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let lines = match options.log {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    let started = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(journal.layer().with_filter(crate::journal::targets()))
        .try_init();
    started.context("the log cannot be started")?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, what = what(panic.payload()), "a panic at {place}");
    }));
    Ok(())
}

/// What a panic says, where it is a sentence of the program's own: one that was put together may quote what somebody
/// wrote, and a log must not.
fn what(payload: &(dyn Any + Send)) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("(not shown: it may quote what somebody wrote)")
}

fn filter(wanted: Option<String>, talking: bool) -> anyhow::Result<Targets> {
    let wanted = match wanted {
        None if talking => TALKING.to_owned(),
        None => SERVING.to_owned(),
        // A bare level is about us; libraries say what they have to say at `warn`.
        Some(level) if LEVELS.contains(&level.to_lowercase().as_str()) => format!("warn,turnlock={level}"),
        Some(targets) => targets,
    };
    let wrong = || {
        Misuse(format!(
            "--log-level (or {}): `{wanted}` is not a level (off, error, warn, info, debug, trace) or a list like \
             `warn,turnlock_app=debug`",
            names::LOG
        ))
    };
    // The parser takes a misspelt level for the name of a target, and then nothing is logged at all.
    let level_of = |part: &str| part.split_once('=').map_or(part.to_owned(), |(_, level)| level.to_owned());
    if !wanted.split(',').all(|part| LEVELS.contains(&level_of(part.trim()).to_lowercase().as_str())) {
        return Err(wrong().into());
    }
    Ok(wanted.parse().map_err(|_| wrong())?)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_misspelt_level_is_refused() {
        for wrong in ["bogus", "inof", "info,=", "", "foo[", "warn,turnlock=loud"] {
            assert!(filter(Some(wrong.to_owned()), false).is_err(), "{wrong}");
        }
        for right in ["info", "DEBUG", "warn,turnlock_app=debug"] {
            assert!(filter(Some(right.to_owned()), false).is_ok(), "{right}");
        }
    }

    #[test]
    fn the_event_lines_are_logged_and_their_copies_for_channels_are_not() {
        let targets = filter(None, false).unwrap();
        assert!(targets.would_enable("turnlock::event", &Level::INFO));
        assert!(targets.would_enable("turnlock_app::turn", &Level::INFO));
        assert!(!targets.would_enable("turnlock::outbound", &Level::INFO));
        assert!(!targets.would_enable("hyper", &Level::INFO));
    }

    #[test]
    fn a_panic_shows_no_more_than_its_own_sentence() {
        let payload = |work: fn()| std::panic::catch_unwind(work).unwrap_err();
        assert_eq!(what(&*payload(|| std::panic::panic_any("a literal"))), "a literal");
        let text = String::from("somebody's words");
        assert!(!what(&format!("cannot read {text}")).contains("words"));
    }

    #[test]
    fn a_level_is_about_us_and_nonsense_names_the_option() {
        assert!(filter(Some("debug".into()), false).unwrap().would_enable("turnlock_store", &Level::DEBUG));
        assert!(!filter(Some("debug".into()), false).unwrap().would_enable("hyper", &Level::DEBUG));
        let error = filter(Some("warn,turnlock=loud".into()), false).unwrap_err();
        assert!(error.to_string().contains("--log-level"), "{error}");
    }
}
