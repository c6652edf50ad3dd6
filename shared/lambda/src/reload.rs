//! A use case that is built anew when its secrets have changed: a rotation needs no deployment. A function looks at its
//! secrets every few minutes, between two requests; and at once when a signature does not match, since a platform may
//! know the new secret before we do.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::sync::Mutex;
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_domain::time::Millis;

use crate::start::{Loaded, Start, StartError};

/// How long a value is used without a look at the one in Secrets Manager. By the wall clock: the monotonic one stands still
/// while Lambda keeps a process frozen.
const FRESH_FOR: Duration = Duration::from_secs(300);
/// How soon after a look the next one may follow, whatever comes in: strangers must not make us ask all the time.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// How long a request waits for that look.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// Reads secrets and configuration.
type Load = dyn Fn() -> LocalBoxFuture<'static, Result<Loaded, StartError>>;
/// Makes a use case of a configuration.
type Build<T> = dyn Fn(&Arc<Config>) -> Result<T, StartError>;

/// The use case as it is now.
pub(crate) struct Reloading<T> {
    load: Box<Load>,
    build: Box<Build<T>>,
    clock: Clock,
    /// Whether anything can change.
    rotates: bool,
    now: Mutex<Now<T>>,
}

struct Now<T> {
    built: Arc<T>,
    from: Loaded,
    looked_at: Millis,
}

impl<T> Reloading<T> {
    /// Loads and builds for the first time; what is wrong then ends the start.
    pub(crate) async fn new(
        start: Start,
        build: impl Fn(&Start, &Arc<Config>) -> Result<T, StartError> + 'static,
    ) -> Result<Self, StartError> {
        let (clock, rotates) = (start.clock(), start.rotates());
        let loader = start.clone();
        let load = move || -> LocalBoxFuture<'static, _> {
            let start = loader.clone();
            Box::pin(async move { start.load().await })
        };
        Self::with(Box::new(load), Box::new(move |config| build(&start, config)), clock, rotates).await
    }

    async fn with(load: Box<Load>, build: Box<Build<T>>, clock: Clock, rotates: bool) -> Result<Self, StartError> {
        let from = load().await?;
        let built = Arc::new(build(&from.config)?);
        let now = Mutex::new(Now { built, from, looked_at: clock.now_ms() });
        Ok(Self { load, build, clock, rotates, now })
    }

    /// The use case, with secrets that are a few minutes old at the most.
    pub(crate) async fn get(&self) -> Arc<T> {
        let mut now = self.now.lock().await;
        if self.is_due(&now, FRESH_FOR) {
            self.look(&mut now).await;
        }
        Arc::clone(&now.built)
    }

    /// The use case with new secrets, if there are any; for whoever was refused by the old ones.
    pub(crate) async fn newer(&self) -> Option<Arc<T>> {
        let mut now = self.now.lock().await;
        (self.is_due(&now, LOOK_AGAIN) && self.look(&mut now).await).then(|| Arc::clone(&now.built))
    }

    fn is_due(&self, now: &Now<T>, after: Duration) -> bool {
        self.rotates && self.clock.now_ms().since(now.looked_at) >= after
    }

    /// Looks, and builds anew if something has changed; whether it has. What cannot be read leaves everything as it is.
    async fn look(&self, now: &mut Now<T>) -> bool {
        now.looked_at = self.clock.now_ms();
        let looked = async {
            let from = (self.load)().await?;
            let changed = from.secrets != now.from.secrets;
            if changed {
                now.built = Arc::new((self.build)(&from.config)?);
                now.from = from;
            }
            Ok::<_, StartError>(changed)
        };
        let looked = tokio::time::timeout(LOOK_WITHIN, looked).await;
        match looked.unwrap_or(Err(StartError::Slow)) {
            Ok(true) => {
                tracing::info!("secrets have changed and are used from now on");
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::error!(%error, "the secrets could not be read again; those from before are used");
                false
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use tokio::time::sleep;

    use super::*;
    use crate::secrets::Values;

    /// A secret that can be changed, and how often it was read. The use case is the secret's value.
    pub(crate) struct Rotation {
        pub(crate) secret: Rc<RefCell<Option<String>>>,
        reads: Rc<Cell<u32>>,
        pub(crate) use_case: Reloading<String>,
    }

    pub(crate) async fn rotation(rotates: bool) -> Rotation {
        let secret = Rc::new(RefCell::new(Some("one".to_owned())));
        let reads = Rc::new(Cell::new(0));
        let (value, count) = (Rc::clone(&secret), Rc::clone(&reads));
        let load = move || -> LocalBoxFuture<'static, _> {
            count.set(count.get() + 1);
            let value = value.borrow().clone();
            Box::pin(async move {
                let value =
                    value.ok_or_else(|| StartError::Secret { id: "id".to_owned(), reason: "gone".to_owned() })?;
                let mut config = Config::default();
                config.agent.name.clone_from(&value);
                Ok(Loaded { config: Arc::new(config), secrets: Values::of([("name", &value)]) })
            })
        };
        let clock = Clock::starting_at("2026-01-05T09:00:00Z".parse().unwrap());
        let use_case =
            Reloading::with(Box::new(load), Box::new(|config| Ok(config.agent.name.clone())), clock, rotates);
        Rotation { secret, reads, use_case: use_case.await.unwrap() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rotation_is_seen_within_minutes() {
        let rotation = rotation(true).await;
        rotation.secret.replace(Some("two".to_owned()));
        sleep(Duration::from_secs(299)).await;
        assert_eq!((rotation.use_case.get().await.as_str(), rotation.reads.get()), ("one", 1));
        sleep(Duration::from_secs(1)).await;
        assert_eq!((rotation.use_case.get().await.as_str(), rotation.reads.get()), ("two", 2));
        // Nothing has changed, so nothing is built.
        sleep(Duration::from_secs(300)).await;
        let built = rotation.use_case.get().await;
        assert!(Arc::ptr_eq(&built, &rotation.use_case.get().await) && rotation.reads.get() == 3);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_refused_makes_us_look_but_not_all_the_time() {
        let rotation = rotation(true).await;
        assert!(rotation.use_case.newer().await.is_none() && rotation.reads.get() == 1);
        sleep(Duration::from_secs(30)).await;
        rotation.secret.replace(Some("two".to_owned()));
        assert_eq!(rotation.use_case.newer().await.as_deref(), Some(&"two".to_owned()));
        for _ in 0..100 {
            assert!(rotation.use_case.newer().await.is_none());
        }
        assert_eq!(rotation.reads.get(), 2);
        assert_eq!(rotation.use_case.get().await.as_str(), "two");
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_leaves_everything_as_it_was() {
        let rotation = rotation(true).await;
        rotation.secret.replace(None);
        sleep(Duration::from_secs(300)).await;
        assert_eq!((rotation.use_case.get().await.as_str(), rotation.reads.get()), ("one", 2));
        rotation.secret.replace(Some("two".to_owned()));
        sleep(Duration::from_secs(300)).await;
        assert_eq!(rotation.use_case.get().await.as_str(), "two");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_no_secrets_never_looks() {
        let rotation = rotation(false).await;
        rotation.secret.replace(Some("two".to_owned()));
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(rotation.use_case.get().await.as_str(), "one");
        assert!(rotation.use_case.newer().await.is_none() && rotation.reads.get() == 1);
    }
}
