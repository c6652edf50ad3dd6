//! Random answers with thinking tags, in random pieces and at random speeds, through the whole path: what stands inside a
//! tag is in no frame, no history, no chat, no later request and no log, and the final is what the batch filter leaves of
//! the text.
//!
//! Every word says what it is: `v7x` is seen, `h7x` is hidden, `e7x` is seen until a closer that nothing opened hides it.

use fastrand::Rng;
use serde_json::{Value, json};
use turnlock_domain::thinking;
use turnlock_replay::player::FEATURES;
use turnlock_replay::script::Script;

/// How many answers are played.
const ANSWERS: u64 = 40;
/// How often the API is asked how far the turn is, and how many seconds pass in between: less than frames are apart.
const LOOKS: u32 = 24;
const BETWEEN_LOOKS: f64 = 0.8;

const NAMES: [&str; 6] = ["think", "Thinking", "reasoning", "thought", "REASONING_SCRATCHPAD", "m2_think"];

/// An answer and what is known of it.
struct Answer {
    text: String,
    starts_in_reasoning: bool,
    /// Whether a closer that nothing opened hides what stands before it.
    orphan: bool,
}

struct Writer {
    rng: Rng,
    text: String,
    words: u32,
}

impl Writer {
    fn word(&mut self, kind: char) {
        self.words += 1;
        self.text.push_str(&format!("{kind}{}x", self.words));
        let space = ["", " ", " ", "\n", ", ", "\n\n"];
        self.text.push_str(space[self.rng.usize(..space.len())]);
    }

    fn words(&mut self, kind: char) {
        for _ in 0..self.rng.u32(1..6) {
            self.word(kind);
            // What looks like the beginning of a tag, and is none.
            if self.rng.u32(..6) == 0 {
                let looks = ["< ", "<b>", "</b>", "<thi", "<thinker>", "<|", "\\", "é😀 ", "a<b "];
                self.text.push_str(looks[self.rng.usize(..looks.len())]);
                self.text.push(' ');
            }
        }
    }

    /// Tags in code are text.
    fn code(&mut self, kind: char) {
        let name = self.name();
        if self.rng.bool() {
            self.text.push_str(&format!(" `<{name}>` "));
        } else {
            self.text.push_str(&format!("\n```xml\n<{name}>"));
            self.words(kind);
            self.text.push_str(&format!("</{name}>\n```\n"));
        }
    }

    fn block(&mut self, depth: u32) {
        let name = self.name();
        let attribute = if self.rng.u32(..4) == 0 { " effort=\"high\"" } else { "" };
        self.text.push_str(&format!("<{name}{attribute}>"));
        self.words('h');
        if depth < 2 && self.rng.u32(..3) == 0 {
            self.block(depth + 1);
            self.words('h');
        }
        if self.rng.u32(..3) == 0 {
            self.code('h');
            self.words('h');
        }
        self.text.push_str(&format!("</{name}>"));
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.rng.usize(..NAMES.len())]
    }
}

fn answer(seed: u64) -> Answer {
    let mut writer = Writer { rng: Rng::with_seed(seed), text: String::new(), words: 0 };
    let starts_in_reasoning = seed.is_multiple_of(5);
    let orphan = seed % 5 == 1;
    if starts_in_reasoning || orphan {
        writer.words(if orphan { 'e' } else { 'h' });
        writer.text.push_str("</think>");
    }
    writer.words('v');
    for _ in 0..writer.rng.u32(1..5) {
        match writer.rng.u32(..3) {
            0 => writer.block(0),
            1 => writer.code('v'),
            _ => writer.words('v'),
        }
        writer.words('v');
    }
    if writer.rng.u32(..4) == 0 {
        writer.text.push_str("<think>");
        writer.words('h');
    }
    Answer { text: writer.text, starts_in_reasoning, orphan }
}

/// The text in random pieces, with random waits between them.
fn chunks(text: &str, rng: &mut Rng) -> Vec<Value> {
    let mut chunks = Vec::new();
    let mut piece = String::new();
    for character in text.chars() {
        piece.push(character);
        if rng.u32(..7) == 0 {
            chunks.push(json!(std::mem::take(&mut piece)));
            if rng.u32(..4) == 0 {
                chunks.push(json!({"wait": f64::from(rng.u32(1..20)) / 10.0}));
            }
        }
    }
    chunks.push(json!(piece));
    chunks
}

/// The words of a kind that `text` holds, wherever they stand in it.
fn words(text: &str, kind: char) -> Vec<&str> {
    let word = |(at, _)| {
        let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let word = text.get(at..at + digits + 2)?;
        (digits > 0 && word.ends_with('x')).then_some(word)
    };
    text.match_indices(kind).filter_map(word).collect()
}

fn play(answer: &Answer, seed: u64) -> Value {
    let mut rng = Rng::with_seed(seed ^ 0xC4A9);
    let capability =
        if answer.starts_in_reasoning { json!(["tools", "starts_in_reasoning"]) } else { json!(["tools"]) };
    let model = |session: &str, chunks: Vec<Value>| json!({"model": {"session": session, "chunks": chunks}});
    let post = |text: &str, key: &str| {
        let body = json!({"session": "s", "text": text});
        json!({"deliver": {"route": "/v1/messages", "headers": {"idempotency-key": key}, "body": body}})
    };
    let mut lines = vec![
        json!({"config": {"models": [{"provider": "scripted", "model": "scripted", "capabilities": capability}]}}),
        model("gateway:s", chunks(&answer.text, &mut rng)),
        model("telegram:1000001", chunks(&answer.text, &mut rng)),
        post("a question", "k1"),
    ];
    for _ in 0..LOOKS {
        lines.push(json!({"advance": BETWEEN_LOOKS}));
        lines.push(json!({"deliver": {"route": "/v1/events/gateway:main:k1", "method": "GET"}}));
    }
    lines.push(json!({"run": true}));
    lines.push(json!({"deliver": {"route": "/v1/events/gateway:main:k1/stream", "method": "GET"}}));
    lines.push(json!({"model": {"session": "gateway:s", "chunks": ["Later."]}}));
    lines.push(post("go on", "k2"));
    lines.push(json!({"say": {"channel": "telegram", "chat": 1_000_001, "text": "a question"}}));
    let source: Vec<String> = lines.iter().map(Value::to_string).collect();
    let script = Script::parse("thinking", &source.join("\n"), FEATURES).unwrap();
    turnlock_replay::play(&script, seed).unwrap().output.to_json().unwrap()
}

/// The texts of the answers to whoever asked how far the turn is.
fn looks(output: &Value) -> (Vec<String>, Vec<String>) {
    let bodies = output["deliveries"].as_array().unwrap().iter().map(|delivery| &delivery["body"]);
    let texts = |status: &str| -> Vec<String> {
        let those = bodies.clone().filter(|body| body["status"] == json!(status));
        those.filter_map(|body| body["message"]["text"].as_str().map(str::to_owned)).collect()
    };
    (texts("running"), texts("done"))
}

#[test]
#[expect(clippy::print_stdout, reason = "how much was looked at")]
fn what_a_model_thinks_is_nowhere() {
    let mut frames_seen = 0;
    for seed in 0..ANSWERS {
        let answer = answer(seed);
        let fail = |what: &str, output: &Value| -> ! {
            panic!("seed {seed}: {what}\n{}\n{}", answer.text, serde_json::to_string_pretty(output).unwrap())
        };
        let shown = thinking::strip(&answer.text, answer.starts_in_reasoning);
        assert_eq!(words(&shown, 'v'), words(&answer.text, 'v'), "seed {seed}: the filter\n{}", answer.text);
        assert!(words(&shown, 'h').is_empty() && words(&shown, 'e').is_empty(), "seed {seed}: the filter");

        let output = play(&answer, seed);
        let (frames, finals) = looks(&output);
        frames_seen += frames.len();
        if !words(&output.to_string(), 'h').is_empty() {
            fail("a hidden word is there", &output);
        }
        if frames.iter().any(|frame| !answer.orphan && !shown.starts_with(frame.trim_end())) {
            fail("a frame shows what the final does not begin with", &output);
        }
        if finals.iter().any(|text| *text != shown) {
            fail("a final is not what the filter leaves", &output);
        }
        let stream = output["deliveries"][LOOKS as usize + 1]["body"].as_str().unwrap_or_default();
        let last = format!("data: {}\n", json!({"text": shown, "kind": "final"}));
        if !(stream.contains("event: final") && stream.contains(&last)) {
            fail("the stream does not end in the final", &output);
        }
        // The chat shows it formatted: the words are compared.
        let chat = output["chats"]["telegram:main:1000001"]["messages"][0]["text"].as_str().unwrap_or_default();
        if words(chat, 'v') != words(&shown, 'v') {
            fail("the chat shows something else", &output);
        }
        let content = json!([{"type": "text", "text": shown}]);
        if output["sessions"].as_array().unwrap().iter().any(|session| session["messages"][1]["content"] != content) {
            fail("a history holds something else", &output);
        }
        let mut requests = output["model_requests"].as_array().unwrap().iter();
        let later = requests.find(|request| request["request"]["messages"].as_array().unwrap().len() > 1);
        if later.is_none_or(|request| request["request"]["messages"][1]["content"] != content) {
            fail("the next turn's model is told something else", &output);
        }
        let mut elsewhere = output.clone();
        // Frames went out before the closer came: to who looked, and to the chat, where an edit took them back.
        for frames in ["deliveries", "platform_calls"] {
            elsewhere.as_object_mut().unwrap().remove(frames);
        }
        if !words(&elsewhere.to_string(), 'e').is_empty() {
            fail("what a closer took back is still somewhere", &output);
        }
    }
    assert!(frames_seen > 100, "{frames_seen} frames were looked at");
    println!("{ANSWERS} answers, {frames_seen} frames looked at");
}
