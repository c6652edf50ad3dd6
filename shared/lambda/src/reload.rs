//! A use case that is built anew when its secrets have changed. A function looks at them every few minutes, between two
//! requests, so that a rotation needs no deployment.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use turnlock_config::Config;
use turnlock_domain::time::Millis;

use crate::start::{Loaded, Start, StartError};

/// How long a value is used without a look at the one in Secrets Manager.
const FRESH_FOR: Duration = Duration::from_secs(300);
/// When it is tried again after it could not be read; the old value is used meanwhile.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// What makes a use case of a configuration.
pub(crate) type Build<T> = dyn Fn(&Start, &Arc<Config>) -> Result<T, StartError>;

/// The use case as it is now.
pub(crate) struct Reloading<T> {
    start: Start,
    build: Box<Build<T>>,
    now: Mutex<Now<T>>,
}

struct Now<T> {
    built: Arc<T>,
    from: Loaded,
    /// By the wall clock: the monotonic one stands still while Lambda keeps the process frozen.
    looked_at: Millis,
    fresh_for: Duration,
}

impl<T> Reloading<T> {
    pub(crate) async fn new(start: Start, build: Box<Build<T>>) -> Result<Self, StartError> {
        let from = start.load().await?;
        let built = Arc::new(build(&start, &from.config)?);
        let looked_at = start.clock().now_ms();
        let now = Mutex::new(Now { built, from, looked_at, fresh_for: FRESH_FOR });
        Ok(Self { start, build, now })
    }

    /// The use case, with the newest secrets.
    pub(crate) async fn get(&self) -> Arc<T> {
        let mut now = self.now.lock().await;
        let at = self.start.clock().now_ms();
        if self.start.rotates() && at.since(now.looked_at) >= now.fresh_for {
            (now.looked_at, now.fresh_for) = (at, FRESH_FOR);
            if let Err(error) = self.refresh(&mut now).await {
                now.fresh_for = RETRY_AFTER;
                tracing::error!(error = %error, "the secrets could not be read again; those from before are used");
            }
        }
        Arc::clone(&now.built)
    }

    async fn refresh(&self, now: &mut Now<T>) -> Result<(), StartError> {
        let from = self.start.load().await?;
        if from.secrets != now.from.secrets {
            now.built = Arc::new((self.build)(&self.start, &from.config)?);
            now.from = from;
            tracing::info!("secrets have changed and are used from now on");
        }
        Ok(())
    }
}
