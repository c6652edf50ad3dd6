//! A host that listens, from its lock to its end.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::watch;
use turnlock_channels::http::PlatformHttp;
use turnlock_config::Config;
use turnlock_host::Host;
use turnlock_models::{Router, Scripted};

use crate::data::{Announcement, DirectoryLock, Taking, random_text};
use crate::failure::Misuse;
use crate::http::{Demo, Front, Guard, router};
use crate::journal::Journal;
use crate::setup::Setup;
use crate::unhurried::Unhurried;
use crate::{machine, platforms};

/// How long work in progress may take to end; what does not end goes on at the next start.
const DRAIN: Duration = Duration::from_secs(10);
/// How long answers may take to leave when the work behind them is done.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A host that listens. Nothing is worked on before [`Running::work`] is polled.
pub(crate) struct Running {
    host: Arc<Host>,
    listener: TcpListener,
    router: axum::Router,
    closing: watch::Sender<bool>,
    announcement: Announcement,
    /// Last, so that nobody takes the directory while anything above still works in it.
    _lock: DirectoryLock,
}

impl Running {
    /// Takes the data directory, puts the host together, listens and tells the other commands where.
    ///
    /// `listen` may be another address than the configured one.
    pub(crate) async fn start(setup: &Setup, listen: SocketAddr, journal: &Journal) -> anyhow::Result<Self> {
        let Taking::Taken(lock) = setup.data.take()? else { return Err(setup.data.in_use().into()) };
        let config = setup.config()?;
        // Before the store is opened: a port that is taken is the likeliest mistake.
        let listener = listener(listen).await?;
        let Outside { demo, platforms, models } = Outside::of(setup, &config, journal)?;
        let host = machine::host(&setup.data, Arc::clone(&config), platforms, models, setup.is_demo()).await?;
        let host = Arc::new(host);
        let announcement = Announcement {
            address: format!("http://{}", reachable(listener.local_addr()?)),
            pid: std::process::id(),
            token: random_text(24)?,
            demo: setup.is_demo(),
        };
        let (closing, closed) = watch::channel(false);
        let router = router(Front {
            host: Arc::clone(&host),
            guard: guard(setup, &config),
            token: SecretString::from(announcement.token.clone()),
            demo,
            closing: closed,
        });
        lock.announce(&announcement)?;
        Ok(Self { host, listener, router, closing, announcement, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn announcement(&self) -> &Announcement {
        &self.announcement
    }

    /// Works and answers until `ended`, then stops receiving and gives what is in progress some seconds. Dropping the
    /// future in that time ends at once; nothing is lost then either.
    pub(crate) async fn work(self, ended: impl Future<Output = ()>) -> anyhow::Result<()> {
        let mut closed = self.closing.subscribe();
        let until = async move { drop(closed.wait_for(|closing| *closing).await) };
        let server = axum::serve(self.listener, self.router).with_graceful_shutdown(until).into_future();
        tokio::pin!(server);
        tokio::select! {
            () = ended => {}
            () = self.host.run() => {}
            ended = &mut server => return ended.context("the HTTP server ended"),
        }
        self.closing.send_replace(true);
        let stopped = self.host.stop(DRAIN);
        tokio::pin!(stopped);
        tokio::select! {
            biased;
            // Nothing more is answered then: whoever still waits for a reply finds it after the next start.
            () = &mut stopped => drop(tokio::time::timeout(LAST_ANSWERS, server).await),
            _ = &mut server => stopped.await,
        }
        Ok(())
    }
}

/// What a host talks to: the real thing, or what stands in for it.
struct Outside {
    demo: Option<Demo>,
    platforms: Arc<dyn PlatformHttp>,
    models: Arc<Router>,
}

impl Outside {
    fn of(setup: &Setup, config: &Config, journal: &Journal) -> anyhow::Result<Self> {
        if !setup.is_demo() {
            let models = Arc::new(turnlock_app::model::models(&config.models, |_| None)?);
            return Ok(Self { demo: None, platforms: platforms::real()?, models });
        }
        let stand_ins = platforms::stand_ins(config);
        let demo = Demo { platforms: Arc::clone(&stand_ins), journal: journal.clone() };
        let model = Unhurried(Arc::new(Scripted::stand_in()));
        Ok(Self { demo: Some(demo), platforms: stand_ins, models: Arc::new(Router::single(Arc::new(model))) })
    }
}

async fn listener(listen: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Misuse(format!(
            "--port: {listen} is in use by another program; choose another port, 0 takes any that is free"
        ))
        .into(),
        _ => anyhow::Error::from(error).context(format!("cannot listen at {listen} (--port, server.listen)")),
    })
}

/// The address by which this machine reaches `bound`.
fn reachable(bound: SocketAddr) -> SocketAddr {
    if bound.ip().is_unspecified() { SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), bound.port()) } else { bound }
}

fn guard(setup: &Setup, config: &Config) -> Guard {
    if setup.is_demo() {
        return Guard::new([]);
    }
    let listen = &config.server.listen;
    Guard::new(config.server.hosts.iter().map(String::as_str).chain([listen.as_str()]))
}
