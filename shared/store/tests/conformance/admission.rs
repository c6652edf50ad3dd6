use turnlock_domain::session::SessionKey;
use turnlock_store::MARKER_LIFETIME;
use turnlock_store::admission::{AdmissionState, Admitted};

use crate::bench::{Bench, NOW, event, session};

#[tokio::test]
async fn one_key_is_one_event() {
    let bench = Bench::new().await;
    let admit = async |digest: &str, session: &SessionKey| {
        bench.store.admit(&event("gateway:ops:k"), digest, session, NOW).await.unwrap()
    };
    assert_eq!(admit("d1", &session()).await, Admitted::New);
    assert_eq!(admit("d1", &session()).await, Admitted::Again { queued: false }, "who admitted it may have died");
    bench.store.mark_queued(&event("gateway:ops:k")).await.unwrap();
    assert_eq!(admit("d1", &session()).await, Admitted::Again { queued: true });
    assert_eq!(admit("d2", &session()).await, Admitted::Conflict);
    assert_eq!(admit("d1", &SessionKey::from_text("gateway:other")).await, Admitted::Conflict);
    let admission = bench.store.admission(&event("gateway:ops:k")).await.unwrap().unwrap();
    assert_eq!((admission.digest.as_str(), admission.state), ("d1", AdmissionState::Queued));
}

#[tokio::test]
async fn a_lost_answer_still_leads_to_the_send() {
    let bench = Bench::new().await;
    bench.lose("PutItem");
    let admitted = bench.store.admit(&event("e"), "d", &session(), NOW).await.unwrap();
    assert_eq!(admitted, Admitted::Again { queued: false });
}

#[tokio::test]
async fn marking_what_is_not_there_makes_nothing() {
    let bench = Bench::new().await;
    bench.store.mark_queued(&event("e")).await.unwrap();
    assert_eq!(bench.store.admission(&event("e")).await.unwrap(), None);
}

/// Case ddb-sec-vs-ms: the lifetime is compared in its own unit, so neither everything nor nothing is over.
#[tokio::test]
async fn ddb_sec_vs_ms() {
    let bench = Bench::new().await;
    bench.store.admit(&event("e"), "old", &session(), NOW - MARKER_LIFETIME).await.unwrap();
    assert_eq!(bench.store.admission(&event("e")).await.unwrap(), None);
    assert_eq!(bench.store.admit(&event("e"), "new", &session(), NOW).await.unwrap(), Admitted::New);
    let almost = NOW + MARKER_LIFETIME - std::time::Duration::from_secs(1);
    assert_eq!(bench.store.admit(&event("e"), "newer", &session(), almost).await.unwrap(), Admitted::Conflict);
}
