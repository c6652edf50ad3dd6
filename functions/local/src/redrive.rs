//! `turnlock redrive`: lists what was given up, or sends it again; for a deployment on AWS, or for the data directory of
//! a host that is stopped.

use std::process::ExitCode;

use turnlock_app::redrive::Redrive;
use turnlock_config::names;
use turnlock_lambda::Start;
use turnlock_store::dead::DeadItem;

use crate::arguments::{self, Options};
use crate::data::{DirectoryLock, Taking};
use crate::failure::Misuse;
use crate::setup::Setup;
use crate::{console, logs, machine};

/// What says where a deployment is.
const SETTINGS: &[&str] =
    &[names::TABLE, names::INBOUND_QUEUE, names::OUTBOUND_QUEUE, names::CONSOLIDATE_QUEUE, names::REVIEW_QUEUE];

/// Exit code 0 = everything that was asked for was sent, or listed.
pub(crate) async fn run(options: &Options, wanted: &arguments::Redrive) -> anyhow::Result<ExitCode> {
    logs::start(options, &crate::journal::Journal::default(), true)?;
    // One of them is enough to know that a deployment is meant: what is missing of the rest is named.
    let is_deployment = SETTINGS.iter().any(|name| names::environment(name).is_some_and(|value| !value.is_empty()));
    let (redrive, _lock) = if is_deployment {
        (deployed()?, None)
    } else {
        let (redrive, lock) = here(options).await?;
        (redrive, Some(lock))
    };
    let items = redrive.list(wanted.newest.into()).await?;
    if wanted.ids.is_empty() && !wanted.all {
        list(&items);
        return Ok(ExitCode::SUCCESS);
    }
    send(&redrive, items, &wanted.ids).await
}

fn deployed() -> anyhow::Result<Redrive> {
    let start = Start::for_operator(SETTINGS).map_err(|error| Misuse(error.to_string()))?;
    let setting = |name| names::environment(name).unwrap_or_default();
    console::aside(format_args!("The table {} in {}:", setting(names::TABLE), setting(names::AWS_REGION)));
    Ok(Redrive {
        store: start.store()?,
        inbound: start.queue(names::INBOUND_QUEUE)?,
        outbound: start.queue(names::OUTBOUND_QUEUE)?,
        consolidate: start.queue(names::CONSOLIDATE_QUEUE)?,
        review: start.queue(names::REVIEW_QUEUE)?,
    })
}

async fn here(options: &Options) -> anyhow::Result<(Redrive, DirectoryLock)> {
    let setup = Setup::read(options)?;
    let place = setup.data.file("");
    if !setup.data.file("store.db").exists() {
        return Err(Misuse(format!(
            "there is no data in {}; for a deployment on AWS, set what the stack's output RedriveEnvironment says",
            place.display()
        ))
        .into());
    }
    console::aside(format_args!("The data in {}:", place.display()));
    let Taking::Taken(lock) = setup.data.take()? else { return Err(setup.data.in_use().into()) };
    let redrive = machine::redrive(&setup.data, &*setup.config()?).await?;
    Ok((redrive, lock))
}

fn list(items: &[DeadItem]) {
    if items.is_empty() {
        return console::line("Nothing was given up.");
    }
    for item in items {
        let at = item.at.timestamp();
        let DeadItem { event_id, queue, reason, receive_count, .. } = item;
        console::line(format_args!("{at:.0}  {event_id}  {queue} ({reason}, {receive_count} receives)"));
    }
    console::line("`turnlock redrive --all` sends them again, `turnlock redrive ID…` some of them.");
}

async fn send(redrive: &Redrive, mut items: Vec<DeadItem>, ids: &[String]) -> anyhow::Result<ExitCode> {
    let unknown: Vec<&str> =
        ids.iter().map(String::as_str).filter(|id| !items.iter().any(|item| item.event_id.as_str() == *id)).collect();
    if !unknown.is_empty() {
        return Err(Misuse(format!("nothing was given up under: {}", unknown.join(", "))).into());
    }
    items.retain(|item| ids.is_empty() || ids.iter().any(|id| item.event_id.as_str() == id));
    let mut code = ExitCode::SUCCESS;
    if items.is_empty() {
        console::line("Nothing was given up.");
    }
    for (item, sent) in redrive.send(items).await? {
        match sent {
            Ok(()) => console::line(format_args!("{}: sent to the {} queue again", item.event_id, item.queue)),
            Err(error) => {
                console::line(format_args!("{}: not sent: {error}", item.event_id));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}
