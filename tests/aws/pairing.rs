//! Who may talk: nobody on the list, and one person with a code.

use std::process::Command;
use std::time::Duration;

use turnlock_tests::programs;

use crate::kit::Kit;

/// The same deployment, with empty lists.
pub(crate) async fn close_lists(kit: &Kit) {
    let closed = kit.aws.configuration.replace("allow = [\"*\"]", "allow = []");
    kit.aws.replace_all(&closed, Duration::ZERO).await;
}

/// What somebody is told who writes to a bot without being let in.
pub(crate) fn refusal(id: &str) -> String {
    format!("I am not allowed to talk with you here. If you should be able to, give my operator this id: {id}")
}

/// `turnlock pair` prints a code; who sends it first talks to the bot from then on, and nobody else does.
#[tokio::test(flavor = "multi_thread")]
async fn who_sends_the_code_first_is_let_in() {
    let kit = Kit::start("", &[]).await;
    close_lists(&kit).await;
    kit.say(31, "hello?").await;
    kit.shows("telegram:main:31", &[&refusal("31")]).await;
    let text = pair(&kit, &[]);
    let code = text.lines().find_map(|line| line.strip_prefix("    ")).unwrap_or_else(|| panic!("{text}"));
    kit.say(31, &format!("/start {code}")).await;
    let welcome = "Welcome! You may talk with me now. What can I do for you?";
    kit.shows("telegram:main:31", &[&refusal("31"), welcome]).await;
    kit.say(31, "hello").await;
    kit.shows("telegram:main:31", &[&refusal("31"), welcome, "echo: hello"]).await;
    kit.say(32, code).await;
    kit.shows("telegram:main:32", &[&refusal("32")]).await;
    assert!(pair(&kit, &["--list"]).starts_with("31  since "));
    assert!(pair(&kit, &["--remove", "31"]).contains("31 may no longer talk"));
    assert!(pair(&kit, &["--list"]).contains("Nobody is paired"));
    for function in kit.aws.lambda.deployed() {
        assert!(!kit.aws.log(&function.id).contains(code), "{} logs the code", function.id);
    }
    kit.end().await;
}

/// The operator's command with the deployment's environment: what it says on stdout.
fn pair(kit: &Kit, arguments: &[&str]) -> String {
    let environment = [
        ("TURNLOCK_TABLE", kit.aws.stack.physical("Table")),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "Operator"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_ENDPOINT_URL", kit.aws.front.address()),
    ];
    let program = programs::folder().join("turnlock");
    assert!(programs::is_current(&program), "{} is older than its sources", program.display());
    let output = Command::new(program).arg("pair").args(arguments).env_clear().envs(environment).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
