//! Turnlock in one process: every function over an embedded DynamoDB and queues in files, and the operator's commands.
//!
//! | module | does |
//! |---|---|
//! | [`serve`], [`chat`], [`send`], [`pair`], [`redrive`], [`replay`] | a command each |
//! | [`connect`] | the command `setup`: what an account's platform is told |
//! | [`setup`], [`data`] | configuration and data directory: who works in it, the demo's secrets |
//! | [`running`], [`machine`], [`platforms`], [`unhurried`] | a host that listens, and what it is made of |
//! | [`http`] | routes, the guard against foreign pages, the page |
//! | [`client`] | what `chat`, `send` and `pair` need of a running host |
//! | [`journal`], [`logs`], [`console`], [`banner`] | what is shown, and to whom |

mod arguments;
mod banner;
mod chat;
mod client;
mod connect;
mod console;
mod data;
mod failure;
mod http;
mod journal;
mod logs;
mod machine;
mod pair;
mod platforms;
mod redrive;
mod replay;
mod running;
mod send;
mod serve;
mod setup;
mod signals;
mod unhurried;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use crate::arguments::{Arguments, Command};

/// A turn takes some seven thousand pieces of memory, nearly all of them in the SDK and the embedded DynamoDB, and gives
/// them back: with the system's allocator that was a fifth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run(Arguments::parse()).unwrap_or_else(|error| failure::report(&error))
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let options = &arguments.options;
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve => in_runtime(serve::run(options)),
        Command::Chat { session } => in_runtime(chat::run(options, &session)),
        Command::Send(send) => in_runtime(send::run(options, &send)),
        Command::Pair(pair) => in_runtime(pair::run(options, &pair)),
        Command::Setup(platform) => in_runtime(connect::run(options, &platform)),
        Command::Redrive(redrive) => in_runtime(redrive::run(options, &redrive)),
        // It has a runtime of its own, in which time is virtual.
        Command::Replay(replay) => replay::run(&replay),
    }
}

/// One thread: requests to the embedded store are answered inline, and a process that waits for models and platforms has
/// little else to do.
fn in_runtime(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("the runtime cannot be started")?;
    let ended = runtime.block_on(command);
    // A line that is still being read from the terminal must not hold the process.
    runtime.shutdown_background();
    ended
}
