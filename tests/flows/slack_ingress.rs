//! What a request of Slack's costs before it is answered: the rate, the queue's depth every ten seconds, the send; where
//! the sender is on no list, one read more, unless a process remembers them. A message that follows another of its session
//! faster than the rate refills costs a second update of the rate. Nothing follows after the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use turnlock_app::admit::{Admission, Depth};
use turnlock_app::ingress::{FreshIds, Ingress, SlackRoute};
use turnlock_app::pairing::Pairings;
use turnlock_app::words::Language;
use turnlock_channels::{Groups, IngressRequest, slack};
use turnlock_clock::Clock;
use turnlock_config::Allow;
use turnlock_domain::event::Channel;
use turnlock_domain::rate::Rate;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_queue::local::{LocalQueues, Location, QueueSettings};
use turnlock_replay::faults::FaultPlan;
use turnlock_store::Store;
use turnlock_store::pairing::{Offered, Redeemed};

fn secret() -> SecretString {
    SecretString::from("signing-secret-of-the-test")
}

/// Slack's route over a store and queues that count.
struct Counted {
    ingress: Ingress,
    clock: Clock,
    plan: FaultPlan,
}

impl Counted {
    async fn new(allow: Allow) -> Self {
        let clock = Clock::starting_at("2026-01-05T09:00:00Z".parse().unwrap());
        let (database, plan) = (EmbeddedDynamoDb::memory().unwrap(), FaultPlan::new());
        let life = plan.process();
        Store::embedded(database.http_client(), "turnlock", clock.clone(), 1).create_table().await.unwrap();
        let settings = ["inbound", "control", "outbound"].map(QueueSettings::fifo).into();
        let queues = LocalQueues::open(&Location::Memory, clock.clone(), settings).unwrap();
        let queue = |name| life.queue(queues.queue(name).unwrap());
        let admission = Admission {
            store: Store::embedded(life.store(database.http_client()), "turnlock", clock.clone(), 2),
            inbound: queue("inbound"),
            control: queue("control"),
            outbound: queue("outbound"),
            rate: Rate { rpm: 20, burst: 5 },
            queue_limit: 1000,
            steered: [].into(),
            language: Language::English,
            clock: clock.clone(),
            depth: Depth::default(),
            pairings: Pairings::default(),
        };
        let app = slack::App {
            account: "main".to_owned(),
            app_id: "A0APP".to_owned(),
            team_id: "T0TEAM".to_owned(),
            bot_user_id: "U0BOT".to_owned(),
            bot_id: "B0BOT".to_owned(),
            allowed_bots: Vec::new(),
            groups: Groups::Mention,
        };
        let route = SlackRoute { app, signing_secret: Some(secret()), allow };
        let ingress = Ingress {
            admission: Arc::new(admission),
            clock: clock.clone(),
            ids: Arc::new(FreshIds::new(clock.clone(), 1)),
            telegram: BTreeMap::new(),
            slack: BTreeMap::from([("main".to_owned(), route)]),
            webhook: BTreeMap::new(),
        };
        Self { ingress, clock, plan }
    }

    /// Delivers `body` and returns what was asked of the table and of the queues by then, and a minute later.
    async fn costs(&self, content_type: &str, body: &str) -> Vec<(String, u64)> {
        let costs = self.costs_now(content_type, body).await;
        let answered = self.requests();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(self.requests(), answered, "nothing is left to do after the answer");
        costs
    }

    /// Delivers `body` and returns what was asked of the table and of the queues by then.
    async fn costs_now(&self, content_type: &str, body: &str) -> Vec<(String, u64)> {
        let before = self.requests();
        let mut headers = slack::sign(&secret(), self.clock.now(), body.as_bytes());
        headers.insert("content-type", content_type.parse().unwrap());
        let request = IngressRequest::post("/slack/main", headers, body.to_owned());
        assert_eq!(self.ingress.slack("main", request).await.status, 200);
        let grown = self.requests().into_iter().map(|(name, count)| {
            let earlier = before.get(&name).copied().unwrap_or_default();
            (name, count - earlier)
        });
        grown.filter(|(_, count)| *count > 0).collect()
    }

    fn requests(&self) -> BTreeMap<String, u64> {
        let ports = self.plan.counts().into_iter();
        let named = ports.flat_map(|(port, count)| {
            count.by_operation.into_iter().map(move |(operation, n)| (format!("{} {operation}", port.as_str()), n))
        });
        named.collect()
    }
}

fn message(channel: &str, ts: u32, extra: &Value) -> String {
    let mut event = json!({
        "type": "message", "channel": channel, "user": "U0USER", "ts": format!("1767603600.{ts:06}"),
        "text": "<@U0BOT> hello",
    });
    for (name, value) in extra.as_object().unwrap() {
        event[name] = value.clone();
    }
    json!({ "type": "event_callback", "team_id": "T0TEAM", "api_app_id": "A0APP", "event_id": "Ev1", "event": event })
        .to_string()
}

fn owned(costs: &[(&str, u64)]) -> Vec<(String, u64)> {
    costs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[tokio::test(start_paused = true)]
async fn before_the_answer_come_the_rate_the_depth_and_the_send_alone() {
    let counted = Counted::new(Allow::Everybody).await;
    let a_message = owned(&[("queue send", 1), ("queue waiting", 1), ("store UpdateItem", 1)]);
    let files = json!([{ "id": "F0LOG", "url_private": "https://files.slack.com/x" }]);
    for (name, body) in [
        ("direct message", message("D0ONE", 1, &json!({ "channel_type": "im" }))),
        ("mention", message("C0ONE", 2, &json!({}))),
        ("mention again", message("C0TWO", 3, &json!({ "type": "app_mention" }))),
        ("thread", message("C0ONE", 4, &json!({ "thread_ts": "1767603500.000001" }))),
        ("file", message("C0THREE", 5, &json!({ "subtype": "file_share", "files": files }))),
        (
            "broadcast",
            message("C0FOUR", 6, &json!({ "subtype": "thread_broadcast", "thread_ts": "1767603500.000002" })),
        ),
        (
            "other workspace",
            message("C0FIVE", 7, &json!({})).replace("\"team_id\":\"T0TEAM\"", "\"team_id\":\"T0OTHER\""),
        ),
    ] {
        assert_eq!(counted.costs("application/json", &body).await, a_message, "{name}");
    }
    let nothing = owned(&[]);
    for (name, body) in [
        ("edit", message("C0ONE", 8, &json!({ "subtype": "message_changed" }))),
        ("own post", message("C0ONE", 9, &json!({ "user": "U0BOT" }))),
        ("another bot", message("C0ONE", 10, &json!({ "bot_id": "B0OTHER" }))),
        ("chatter", message("C0ONE", 11, &json!({ "text": "lunch?" }))),
        ("challenge", json!({ "type": "url_verification", "challenge": "c" }).to_string()),
        ("uninstalled", message("C0ONE", 12, &json!({ "type": "app_uninstalled" }))),
    ] {
        assert_eq!(counted.costs("application/json", &body).await, nothing, "{name}");
    }
    let form = "application/x-www-form-urlencoded";
    let slash = |text: &str| format!("command=%2Fecho&text={text}&channel_id=C0SIX&user_id=U0USER&trigger_id={text}");
    assert_eq!(counted.costs(form, &slash("hello")).await, a_message);
    let a_command = owned(&[("queue send", 1)]);
    assert_eq!(counted.costs(form, &slash("stop")).await, a_command);
    let press = "payload=%7B%22type%22%3A%22block_actions%22%2C%22trigger_id%22%3A%221.2%22%2C%22user%22%3A%7B%22id%22%3A%22U0USER%22%7D%2C%22channel%22%3A%7B%22id%22%3A%22C0ONE%22%7D%7D";
    assert_eq!(counted.costs(form, press).await, a_command);
    assert_eq!(counted.costs(form, "ssl_check=1&token=x").await, nothing);
}

/// The depth is known for ten seconds: until then a message costs the rate and the send.
#[tokio::test(start_paused = true)]
async fn the_depth_is_asked_for_every_ten_seconds() {
    let counted = Counted::new(Allow::Everybody).await;
    let body = |ts| message("D0ONE", ts, &json!({ "channel_type": "im" }));
    let deliver = async |body: String| {
        let mut headers = slack::sign(&secret(), counted.clock.now(), body.as_bytes());
        headers.insert("content-type", "application/json".parse().unwrap());
        counted.ingress.slack("main", IngressRequest::post("/slack/main", headers, body)).await.status
    };
    for ts in 1..=3 {
        assert_eq!(deliver(body(ts)).await, 200);
    }
    assert_eq!(counted.requests()["queue waiting"], 1);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(deliver(body(4)).await, 200);
    assert_eq!(counted.requests()["queue waiting"], 2);
}

fn listed(id: &str) -> Allow {
    Allow::Only([id.to_owned()].into())
}

/// A list is in memory: who is on it costs what everybody costs. Who is not is looked for among the paired, with one read,
/// and told.
#[tokio::test(start_paused = true)]
async fn a_list_costs_nothing_and_a_stranger_one_read() {
    let direct = message("D0ONE", 1, &json!({ "channel_type": "im" }));
    let a_message = owned(&[("queue send", 1), ("queue waiting", 1), ("store UpdateItem", 1)]);
    for id in ["U0USER", "D0ONE"] {
        let counted = Counted::new(listed(id)).await;
        assert_eq!(counted.costs("application/json", &direct).await, a_message, "{id}");
    }
    let counted = Counted::new(listed("U0OTHER")).await;
    let a_refusal = owned(&[("queue send", 1), ("store GetItem", 1)]);
    assert_eq!(counted.costs("application/json", &direct).await, a_refusal);
}

/// Who is paired is looked for with one read, and remembered for a minute.
#[tokio::test(start_paused = true)]
async fn a_paired_sender_costs_one_read_a_minute() {
    let counted = Counted::new(listed("U0OTHER")).await;
    let store = &counted.ingress.admission.store;
    let (now, valid) = (counted.clock.now_ms(), Duration::from_secs(900));
    assert_eq!(store.offer_pairing(Channel::Slack, "main", "digest", now + valid).await.unwrap(), Offered::Waits);
    let redeemed = store.redeem_pairing(Channel::Slack, "main", "U0USER", "digest", now).await.unwrap();
    assert_eq!(redeemed, Redeemed::Paired);

    let message = |ts| message(&format!("D{ts}"), ts, &json!({ "channel_type": "im" }));
    let first = owned(&[("queue send", 1), ("queue waiting", 1), ("store GetItem", 1), ("store UpdateItem", 1)]);
    assert_eq!(counted.costs_now("application/json", &message(1)).await, first);
    let remembered = owned(&[("queue send", 1), ("store UpdateItem", 1)]);
    assert_eq!(counted.costs_now("application/json", &message(2)).await, remembered);
    let at_once = owned(&[("queue send", 1), ("store UpdateItem", 2)]);
    assert_eq!(counted.costs_now("application/json", &message(2).replace("000002", "000003")).await, at_once);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(counted.costs("application/json", &message(4)).await, first);
    let form = "command=%2Fecho&text=stop&channel_id=D0ONE&user_id=U0USER&trigger_id=1";
    assert_eq!(
        counted.costs("application/x-www-form-urlencoded", form).await,
        owned(&[("queue send", 1), ("store GetItem", 1)])
    );
}
