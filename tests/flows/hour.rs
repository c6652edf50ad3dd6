//! An hour of two bots and two workspaces in virtual time: fifty chats and two groups, streamed answers of ten thousand
//! characters, platforms that limit, answer too late or are blocked, processes that die. Whatever happened, each chat shows
//! what its conversation holds: every final complete, in order and once; or marked, where the platform's answer was lost.

use std::fmt::Write as _;

use serde_json::{Value, json};
use turnlock_replay::script::Script;
use turnlock_replay::{FEATURES, play};

/// How long the story is, in seconds.
const HOUR: u64 = 3600;
/// How many private chats and direct messages there are.
const CHATS: usize = 50;
/// How many messages a person sends in the hour.
const QUESTIONS: usize = 2;
/// How long an answer is.
const ANSWER: usize = 10_000;
/// In how many pieces a model writes an answer, a second each.
const PIECES: usize = 12;
/// Where processes die, before and after what they ask for there.
const PORTS: [&str; 3] = ["store", "queue", "platform"];
const DEATHS: usize = 2 * PORTS.len();
/// Who blocks the bot for a while.
const BLOCKED: [&str; 2] = ["2000004", "2000010"];
const SEED: u64 = 20_260_105;

/// Somebody's chat with one of our accounts.
struct Chat {
    channel: &'static str,
    account: &'static str,
    id: String,
    kind: &'static str,
}

impl Chat {
    fn key(&self) -> String {
        format!("{}:{}:{}", self.channel, self.account, self.id)
    }

    /// The default account does not stand in a session's key.
    fn session(&self) -> String {
        if self.account == "main" { format!("{}:{}", self.channel, self.id) } else { self.key() }
    }
}

fn chats() -> Vec<Chat> {
    let private = (0..CHATS).map(|n| {
        let account = if n % 4 < 2 { "main" } else { "other" };
        if n % 2 == 0 {
            Chat { channel: "telegram", account, id: (2_000_000 + n).to_string(), kind: "private" }
        } else {
            Chat { channel: "slack", account, id: format!("D0{n:04}"), kind: "private" }
        }
    });
    let group = |account, id: &str| Chat { channel: "telegram", account, id: id.to_owned(), kind: "supergroup" };
    private.chain([group("main", "-1001000000001"), group("other", "-1001000000002")]).collect()
}

/// An answer as a model writes it: words, each only once, in paragraphs.
fn answer(name: &str) -> String {
    let mut text = String::new();
    for word in 0.. {
        if text.len() >= ANSWER {
            break;
        }
        // A paragraph, something bold in it, and now and then a block of code.
        let around = match word % 160 {
            20 => ("**", "** "),
            120 => ("\n\n```\n", " "),
            150 => ("", "\n```\n\n"),
            39 | 79 => ("", "\n\n"),
            _ => ("", " "),
        };
        write!(text, "{}{name}.{word}{}", around.0, around.1).unwrap();
    }
    text.trim_end().to_owned()
}

fn pieces(text: &str) -> Vec<Value> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let chunks = words.chunks(words.len().div_ceil(PIECES));
    chunks.flat_map(|words| [json!(words.concat()), json!({ "wait": 1 })]).collect()
}

/// What goes wrong, each at its moment.
fn faults(chats: &[Chat], random: &mut fastrand::Rng) -> Vec<(u64, Value)> {
    let mut faults = Vec::new();
    let moment = |random: &mut fastrand::Rng| random.u64(30..HOUR - 300);
    let post = |chat: &Chat| if chat.channel == "telegram" { "sendMessage" } else { "chat.postMessage" };
    let edit = |chat: &Chat| if chat.channel == "telegram" { "editMessageText" } else { "chat.update" };
    let line = |chat: &Chat, method: &str, answer: Value| {
        let mut line = json!({ "channel": chat.channel, "account": chat.account, "chat": chat.id, "method": method });
        line.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        json!({ "platform": line })
    };
    for chat in chats {
        if random.bool() {
            continue;
        }
        let seconds = random.u64(3..40);
        let limited = match chat.channel {
            "telegram" => json!({ "status": 429, "body": { "ok": false, "error_code": 429,
                "description": format!("Too Many Requests: retry after {seconds}"), "parameters": { "retry_after": seconds } } }),
            _ => {
                json!({ "status": 429, "headers": { "retry-after": seconds.to_string() }, "body": { "ok": false, "error": "ratelimited" } })
            }
        };
        let lost = json!({ "timeout": true, "applied": random.bool() });
        let (what, method) = match random.u8(0..4) {
            0 => (limited, edit(chat)),
            1 => (limited, post(chat)),
            2 => (lost, edit(chat)),
            _ => (lost, post(chat)),
        };
        let at = moment(random);
        faults.push((at, line(chat, method, what)));
    }
    for chat in chats.iter().filter(|chat| BLOCKED.contains(&chat.id.as_str())) {
        let blocked = json!({ "status": 403, "times": 2,
            "body": { "ok": false, "error_code": 403, "description": "Forbidden: bot was blocked by the user" } });
        let at = moment(random);
        faults.push((at, line(chat, "*", blocked)));
    }
    for after in [false, true] {
        for port in PORTS {
            let nth = random.u64(1..60);
            let at = moment(random);
            faults.push((at, json!({ "kill": { port: "*", "nth": nth, "after": after } })));
        }
    }
    faults
}

fn script(chats: &[Chat], random: &mut fastrand::Rng) -> Vec<Value> {
    let mut lines = vec![json!({ "config": {
        "agent": { "limits": { "concurrency": 6, "consolidate_after": 1000 } },
        "telegram": {
            "main": { "groups": "always" },
            "other": { "bot_id": 2, "username": "other_bot", "groups": "always" },
        },
        "slack": { "other": { "app_id": "A0TWO", "team_id": "T0TWO", "bot_user_id": "U0TWO" } },
    } })];
    let mut said = Vec::new();
    for (n, chat) in chats.iter().enumerate() {
        for question in 0..QUESTIONS {
            // What a dead process had been told is gone: there is another answer for who asks again.
            for draft in 0..3 {
                let text = answer(&format!("c{n}q{question}d{draft}"));
                lines.push(json!({ "model": { "session": chat.session(), "chunks": pieces(&text) } }));
            }
            let say = json!({ "say": { "channel": chat.channel, "account": chat.account, "chat": chat.id,
                "chat_type": chat.kind, "from": if chat.channel == "slack" { "U0ANN" } else { "2000000" },
                "text": format!("c{n}q{question}?") } });
            said.push((random.u64(0..HOUR), say));
        }
    }
    said.extend(faults(chats, random));
    said.sort_by_key(|(at, _)| *at);
    let mut now = 0;
    for (at, line) in said {
        if at > now {
            lines.push(json!({ "advance": at - now }));
            now = at;
        }
        lines.push(line);
    }
    lines.push(json!({ "advance": HOUR.saturating_sub(now) }));
    lines.push(json!({ "run": true }));
    lines
}

/// What a reader sees, without white space and marks: a chat of Slack's shows its own.
fn visible(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !"`*".contains(*c)).collect()
}

/// Whether `messages` are `wanted` in order, with at most `strays` more among them: what shows some of it a second time,
/// or what a process that died had been told for a question of the `chat`.
fn shows(messages: &[String], wanted: &str, strays: usize, chat: usize) -> bool {
    let Some((first, rest)) = messages.split_first() else { return wanted.is_empty() };
    let next = wanted.strip_prefix(first.as_str()).is_some_and(|wanted| shows(rest, wanted, strays, chat));
    let is_ours = first.starts_with(&format!("c{chat}q"));
    next || (strays > 0 && is_ours && shows(rest, wanted, strays - 1, chat))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
#[expect(clippy::print_stdout, reason = "what was played")]
fn an_hour_of_everything_shows_every_final_complete_in_order_and_once() {
    let mut random = fastrand::Rng::with_seed(SEED);
    let chats = chats();
    let source: Vec<String> = script(&chats, &mut random).iter().map(Value::to_string).collect();
    let script = Script::parse("hour", &source.join("\n"), FEATURES).unwrap();
    let played = play(&script, SEED).unwrap();
    let output = played.output.to_json().unwrap();

    assert_eq!(played.faults_left, 0, "every process that was to die has died");
    for event in list(&output["events"]) {
        assert_eq!(event["outcome"], "committed", "{event}");
    }

    let (mut shown, mut marked, mut gone) = (0, 0, 0);
    for (number, chat) in chats.iter().enumerate() {
        let name = chat.key();
        let session = list(&output["sessions"]).iter().find(|session| session["key"] == chat.session()).unwrap();
        let answers = list(&session["messages"]).iter().filter(|message| message["role"] == "assistant");
        let answers: Vec<String> =
            answers.map(|message| visible(message["content"][0]["text"].as_str().unwrap())).collect();
        let events = list(&output["events"]).iter().filter(|event| event["session"] == chat.session());
        assert!(answers.iter().all(|answer| answer.len() > ANSWER * 4 / 5), "{name}: an answer is not a whole one");
        let deliveries: Vec<&Value> = events.map(|event| delivery(&output, event["id"].as_str().unwrap())).collect();
        assert_eq!(deliveries.len(), QUESTIONS, "{name}");
        let mut wanted = String::new();
        let mut strays = 0;
        for (answer, delivery) in answers.iter().zip(&deliveries) {
            let uncertain = list(&delivery["parts"]).iter().filter(|part| part["state"] == "uncertain").count();
            match delivery["state"].as_str().unwrap() {
                // Nobody sees it: the person had blocked us.
                "failed" if BLOCKED.contains(&chat.id.as_str()) => gone += 1,
                "sent" | "uncertain" => wanted.push_str(answer),
                state => panic!("{name}: a delivery is {state}: {delivery}"),
            }
            strays += uncertain;
        }
        let messages = list(&output["chats"][&name]["messages"]).iter().filter(|message| message["deleted"] != true);
        let messages: Vec<String> = messages.map(|message| visible(message["text"].as_str().unwrap())).collect();
        let short: Vec<String> = messages.iter().map(|text| format!("{:.12}… {}", text, text.len())).collect();
        assert!(shows(&messages, &wanted, strays, number), "{name} ({strays} uncertain): {short:#?}");
        shown += messages.len();
        marked += strays;
    }
    assert_eq!(output["unsettled"], json!([]));
    let calls: Vec<&Value> = output["platform_calls"].as_object().unwrap().values().flat_map(list).collect();
    let lost = calls.iter().filter(|call| call["status"].is_null()).count();
    assert!(marked > 0 && marked <= lost + DEATHS, "{marked} parts are marked, {lost} answers were lost");
    assert!(gone > 0, "nobody had blocked us");
    println!("{} chats, {shown} messages, {marked} parts marked, {gone} finals to who had blocked us", chats.len());
    for (method, calls) in output["platform_calls"].as_object().unwrap() {
        let limited = list(calls).iter().filter(|call| call["status"] == 429).count();
        println!("{method}: {} calls, {limited} of them refused with 429", list(calls).len());
    }
}

/// What delivery notes of the final of the event `id`.
fn delivery<'a>(output: &'a Value, id: &str) -> &'a Value {
    let of_event = |ledger: &&Value| ledger["event"].as_str().is_some_and(|event| event.starts_with(id));
    list(&output["ledger"]).iter().find(of_event).unwrap()
}
