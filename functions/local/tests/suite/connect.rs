//! `setup telegram` against the stand-in platform over HTTP, and `setup slack`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use turnlock_channels::http::{PlatformHttp, PlatformRequest};
use turnlock_clock::Clock;
use turnlock_domain::event::Channel;
use turnlock_replay::fakes::{Accounts, Answer, FakePlatforms, ScriptedAnswer, TelegramBot};

use crate::kit::{Place, complaint, out};

const TOKEN: &str = "1:planted-token";

/// A Bot API server on loopback, for as long as `servers` lives.
async fn bot_api(servers: &mut JoinSet<()>) -> (Arc<FakePlatforms>, String) {
    let bot = TelegramBot { bot_id: 1, username: "echo_bot".into(), token: Some(TOKEN.into()) };
    let accounts = Accounts { telegram: [("main".to_owned(), bot)].into(), ..Accounts::default() };
    let platforms = Arc::new(FakePlatforms::new(Clock::system(), accounts));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Arc::clone(&platforms));
    servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (platforms, address)
}

async fn answer(State(platforms): State<Arc<FakePlatforms>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let request = PlatformRequest {
        channel: Channel::Telegram,
        account: "main".into(),
        method: String::new(),
        url: parts.uri.to_string(),
        headers: parts.headers,
        body: axum::body::to_bytes(body, 1 << 20).await.unwrap(),
    };
    let answer = platforms.send(request, Duration::from_secs(10)).await.unwrap();
    (axum::http::StatusCode::from_u16(answer.status).unwrap(), answer.headers, answer.body).into_response()
}

fn place(base_url: &str, more: &str) -> Place {
    let place = Place::new();
    place.write(
        "turnlock.toml",
        &format!(
            "[agent]\nlanguage = \"de\"\n[telegram.main]\nusername = \"echo_bot\"\nbase_url = \"{base_url}\"\n{more}\n\
             bot_token = \"env:BOT_TOKEN\"\nsecret_token = \"env:BOT_SECRET\"\n\
             [slack.main]\napp_id = \"A0APP\"\nteam_id = \"T0TEAM\"\nbot_user_id = \"U0BOT\"\n\
             bot_token = \"env:NOT_SET_HERE\"\nsigning_secret = \"env:NOT_SET_HERE\"\n"
        ),
    );
    place
}

fn setup(place: &Place, arguments: &[&str], secret: &str) -> std::process::Output {
    let mut command = place.command(&[&["setup", "telegram"], arguments].concat());
    let output = command.env("BOT_TOKEN", TOKEN).env("BOT_SECRET", secret).output().unwrap();
    for text in [out(&output), complaint(&output)] {
        assert!(!text.contains("planted-token") && !text.contains("hook-secret"), "{text}");
    }
    output
}

/// Case tg-privacy-mode: the setup says what will and will not arrive.
#[tokio::test(flavor = "multi_thread")]
async fn tg_privacy_mode_is_explained_when_a_bot_is_connected() {
    let mut servers = JoinSet::new();
    let (platforms, address) = bot_api(&mut servers).await;
    let place = place(&address, "");
    let done = setup(&place, &["--url", "https://bot.example.org/"], "hook-secret");
    let said = out(&done);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(said.contains("@echo_bot to https://bot.example.org/telegram/main"), "{said}");
    assert!(said.contains("Privacy mode is on") && said.contains("add it again"), "{said}");
    let calls = platforms.calls();
    let arguments = |method: &str| calls.iter().find(|call| call.method == method).unwrap().arguments.clone();
    assert_eq!(
        arguments("setWebhook"),
        json!({
            "url": "https://bot.example.org/telegram/main",
            "secret_token": "hook-secret",
            "allowed_updates": ["message", "channel_post", "business_message", "callback_query", "my_chat_member"],
            "max_connections": 40,
        })
    );
    let commands = arguments("setMyCommands")["commands"].clone();
    let names: Vec<&Value> = commands.as_array().unwrap().iter().map(|command| &command["command"]).collect();
    assert_eq!(names, ["new", "stop", "status", "help", "approve", "deny"]);
    assert_eq!(commands[0]["description"], "ein neues Gespräch beginnen");
}

#[tokio::test(flavor = "multi_thread")]
async fn privacy_mode_that_is_off_and_a_failed_delivery_are_told() {
    let mut servers = JoinSet::new();
    let (platforms, address) = bot_api(&mut servers).await;
    let says = |method: &str, result: Value| ScriptedAnswer {
        method: Some(method.into()),
        answer: Answer { body: Some(json!({ "ok": true, "result": result }).to_string().into()), ..Answer::default() },
        ..ScriptedAnswer::default()
    };
    platforms.script(says(
        "getMe",
        json!({ "id": 1, "username": "Echo_Bot", "can_join_groups": true, "can_read_all_group_messages": true }),
    ));
    platforms.script(says(
        "getWebhookInfo",
        json!({ "url": "https://bot.example.org:8443/telegram/main", "pending_update_count": 3,
                "last_error_message": format!("Wrong response for {TOKEN}") }),
    ));
    let place = place("https://unused.example", "groups = \"always\"");
    let done = setup(&place, &["--url", "https://bot.example.org:8443", "--base-url", &address], "hook-secret");
    let said = out(&done);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    for part in ["answers every message there", "3 updates wait", "Wrong response for …"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_telegram_would_refuse_is_said_with_the_fix_and_changes_nothing() {
    let mut servers = JoinSet::new();
    let (platforms, address) = bot_api(&mut servers).await;
    let place = place(&address, "");
    let cases: [(&[&str], &str, &str); 5] = [
        (&["--url", "http://bot.example.org"], "hook-secret", "https"),
        (&["--url", "https://bot.example.org:8080"], "hook-secret", "8443"),
        (&["--url", "https://bot.example.org"], "hook-secret ü", "openssl rand"),
        (&["--url", "https://bot.example.org", "--account", "other"], "hook-secret", "[telegram.other]"),
        (&["--url", "https://bot.example.org", "--base-url", "http://127.0.0.1:1"], "hook-secret", "does not answer"),
    ];
    for (arguments, secret, part) in cases {
        let refused = setup(&place, arguments, secret);
        assert!(complaint(&refused).contains(part), "{part}: {refused:?}");
        assert!(!refused.status.success(), "{refused:?}");
    }
    platforms.set_accounts(Accounts {
        telegram: [("main".to_owned(), TelegramBot { bot_id: 1, username: "x".into(), token: Some("1:new".into()) })]
            .into(),
        ..Accounts::default()
    });
    let unknown = setup(&place, &["--url", "https://bot.example.org"], "hook-secret");
    assert!(complaint(&unknown).contains("@BotFather"), "{unknown:?}");
    assert!(platforms.calls().iter().all(|call| call.method == "getMe"));
    let demo = Place::new().run(&["setup", "telegram", "--url", "https://bot.example.org"]);
    assert!(complaint(&demo).contains("--config") && demo.status.code() == Some(2), "{demo:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployments_bot_is_connected_with_its_secrets_in_the_environment() {
    let mut servers = JoinSet::new();
    let (platforms, address) = bot_api(&mut servers).await;
    let place = Place::new();
    place.write(
        "aws.toml",
        "[telegram.main]\nbot_token = \"secret:bot-token\"\nsecret_token = \"secret:bot-secret\"\n\
         bot_id = 1\nusername = \"echo_bot\"\n",
    );
    let url = "https://api.example.org/telegram/main";
    let done = setup(&place, &["--url", url, "--base-url", &address, "--config", "aws.toml"], "hook-secret");
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(platforms.calls().iter().any(|call| call.arguments["url"] == url));
}

#[test]
fn a_slack_manifest_is_printed_before_there_is_an_app() {
    let printed = Place::new().run(&["setup", "slack", "--url", "https://bot.example.org", "--account", "two"]);
    assert_eq!(printed.status.code(), Some(0), "{printed:?}");
    let manifest: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let url = "https://bot.example.org/slack/two";
    assert_eq!(manifest["settings"]["event_subscriptions"]["request_url"], url);
    assert_eq!(manifest["settings"]["interactivity"]["request_url"], url);
    assert_eq!(manifest["features"]["slash_commands"][0]["url"], url);
    let steps = complaint(&printed);
    assert!(steps.contains("api.slack.com/apps") && steps.contains("slack.two.signing_secret"), "{steps}");

    let place = place("https://unused.example", "");
    let named = place.run(&["setup", "slack", "--url", "https://b.example", "--name", "Ops Bot"]);
    let manifest: Value = serde_json::from_slice(&named.stdout).unwrap();
    assert_eq!(manifest["display_information"]["description"], "Sprich mit Ops Bot, einem Assistenten.");
    assert_eq!(manifest["features"]["slash_commands"][0]["command"], "/ops-bot");
    let long = place.run(&["setup", "slack", "--url", "https://b.example", "--name", &"x".repeat(36)]);
    assert_eq!(long.status.code(), Some(2), "{long:?}");
    assert!(complaint(&long).contains("35") && complaint(&long).contains("--name"), "{long:?}");
}
