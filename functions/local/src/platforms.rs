//! The way to the platforms: over the network, or to the stand-ins of the demo.

use std::sync::Arc;

use anyhow::Context;
use turnlock_channels::http::{PlatformHttp, ReqwestHttp};
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_replay::fakes::{Accounts, FakePlatforms};

/// The platforms over the network.
pub(crate) fn real() -> anyhow::Result<Arc<dyn PlatformHttp>> {
    Ok(Arc::new(ReqwestHttp::new().context("the HTTP client cannot be set up")?))
}

/// Stand-ins that know the identities in `config`.
pub(crate) fn stand_ins(config: &Config) -> Arc<FakePlatforms> {
    Arc::new(FakePlatforms::new(Clock::system(), Accounts::from_config(config)))
}
