//! Every sentence shown to a user, by language: one kind sentence each, no jargon, no exception text.

use turnlock_domain::envelope::Command;
use turnlock_domain::turn::Failure;
use turnlock_store::approvals::{ApprovalState, Verdict};

use crate::decisions;

/// A language that the sentences exist in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// German.
    German,
    /// Chinese, simplified.
    Chinese,
}

impl Language {
    /// The language of a configured code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        match code {
            "en" => Some(Self::English),
            "de" => Some(Self::German),
            "zh" => Some(Self::Chinese),
            _ => None,
        }
    }

    fn pick(self, english: &str, german: &str, chinese: &str) -> String {
        match self {
            Self::English => english,
            Self::German => german,
            Self::Chinese => chinese,
        }
        .to_owned()
    }

    /// The session's rate is exceeded; `seconds` until the next message is taken.
    #[must_use]
    pub fn limited(self, seconds: u64) -> String {
        match self {
            Self::English => format!("That was a lot at once. Please try again in {}.", plural(seconds, "second")),
            Self::German => format!("Das war etwas viel auf einmal. Bitte versuch es in {seconds} s noch einmal."),
            Self::Chinese => format!("消息太频繁了，请在 {seconds} 秒后再试。"),
        }
    }

    /// Too many events wait.
    #[must_use]
    pub fn busy(self) -> String {
        self.pick(
            "I am very busy right now and could not take your message. Please send it again in a minute.",
            "Ich bin gerade sehr beschäftigt und konnte deine Nachricht nicht annehmen. Bitte sende sie in einer Minute noch einmal.",
            "我现在很忙，没能收下您的消息，请一分钟后再发一次。",
        )
    }

    /// The sender may not talk to this bot; `id` is what an operator puts on the list, or `group` for everybody in it.
    #[must_use]
    pub fn not_allowed(self, id: &str, group: Option<&str>) -> String {
        let said = match self {
            Self::English => {
                format!(
                    "I am not allowed to talk with you here. If you should be able to, give my operator this id: {id}"
                )
            }
            Self::German => {
                format!(
                    "Ich darf hier nicht mit dir sprechen. Wenn du es dürfen solltest, gib meinem Betreiber diese Kennung: {id}"
                )
            }
            Self::Chinese => format!("我还不能在这里和您对话。如需开通，请把这个编号告诉管理员：{id}"),
        };
        match (self, group) {
            (_, None) => said,
            (Self::English, Some(group)) => format!("{said} (or {group} for everybody here)"),
            (Self::German, Some(group)) => format!("{said} (oder {group} für alle hier)"),
            (Self::Chinese, Some(group)) => format!("{said}（或 {group}，对这里所有人开通）"),
        }
    }

    /// Before an answer that the asker gets alone, as the agent is no member of the channel where they asked.
    #[must_use]
    pub fn not_a_member(self) -> String {
        self.pick(
            "I am not in that channel, so here is my answer. Invite me there with /invite.",
            "Ich bin nicht in diesem Kanal, darum steht meine Antwort hier. Lade mich dort mit /invite ein.",
            "我不在那个频道里，所以在这里回答您。可以用 /invite 邀请我加入。",
        )
    }

    /// The sender was let in by a code.
    #[must_use]
    pub fn paired(self) -> String {
        self.pick(
            "Welcome! You may talk with me now. What can I do for you?",
            "Willkommen! Du darfst jetzt mit mir sprechen. Was kann ich für dich tun?",
            "欢迎！您现在可以和我对话了，有什么可以帮您？",
        )
    }

    /// The message has no text and nothing else that can be read.
    #[must_use]
    pub fn nothing_to_read(self) -> String {
        self.pick(
            "I could not find any text in your message. Could you write it out?",
            "Ich konnte in deiner Nachricht keinen Text finden. Kannst du ihn ausschreiben?",
            "您的消息里没有可读的文字，能写出来吗？",
        )
    }

    /// The message is larger than can be taken.
    #[must_use]
    pub fn too_large(self) -> String {
        self.pick(
            "That message is too large for me. Could you send a shorter one?",
            "Diese Nachricht ist zu groß für mich. Kannst du eine kürzere senden?",
            "这条消息太长了，能发一条短一些的吗？",
        )
    }

    /// Behind what was written of an answer that broke off: the rest is on its way.
    #[must_use]
    pub fn interrupted(self) -> String {
        self.pick(
            "(I was interrupted here, and begin again in a moment.)",
            "(Hier wurde ich unterbrochen; ich setze gleich neu an.)",
            "（写到这里被打断了，马上重新回答。）",
        )
    }

    /// A turn failed for good.
    #[must_use]
    pub fn failed(self, failure: Failure) -> String {
        match failure {
            Failure::NoAnswer => self.pick(
                "I thought about this but did not come to an answer. Could you put it another way?",
                "Ich habe nachgedacht, bin aber zu keiner Antwort gekommen. Kannst du es anders sagen?",
                "我想了想，但没有得出答案，能换个说法吗？",
            ),
            Failure::TooManySteps => self.pick(
                "This took more steps than I am allowed, so I stopped. Could you ask for a smaller piece?",
                "Das brauchte mehr Schritte, als ich gehen darf. Kannst du nach einem kleineren Stück fragen?",
                "步骤太多，我先停下了。能把问题拆小一点吗？",
            ),
            Failure::ApprovalExpired => self.pick(
                "Nobody allowed what I wanted to do in time, so I did not do it. Please ask me again if it is still wanted.",
                "Niemand hat rechtzeitig erlaubt, was ich tun wollte, also habe ich es gelassen. Frag mich bitte noch einmal, wenn es noch gewünscht ist.",
                "没有人及时批准我要做的操作，所以我没有执行。如果仍然需要，请再告诉我一次。",
            ),
            Failure::DailyLimit => self.pick(
                "I have done as much as I may for today. Please write to me again tomorrow.",
                "Für heute habe ich getan, was ich darf. Bitte schreib mir morgen wieder.",
                "我今天的额度已用完，请明天再来找我。",
            ),
            Failure::ModelRefused => self.pick(
                "The language model refused this message, so I have no answer. Whoever runs me finds the reason in my log.",
                "Das Sprachmodell hat diese Nachricht abgelehnt, darum habe ich keine Antwort. Wer mich betreibt, findet den Grund in meinem Protokoll.",
                "语言模型拒绝了这条消息，所以我无法回答。管理员可以在我的日志中找到原因。",
            ),
            Failure::TooOld | Failure::Dead | Failure::TooManyAttempts | Failure::Unknown => self.pick(
                "Sorry, something went wrong and I could not answer this message. Please send it again.",
                "Entschuldige, etwas ist schiefgegangen und ich konnte nicht antworten. Bitte sende die Nachricht noch einmal.",
                "抱歉，出了点问题，没能回答这条消息，请再发一次。",
            ),
        }
    }

    /// What a stopped turn ends with, after whatever it had said.
    #[must_use]
    pub fn stopped(self) -> String {
        self.pick("(stopped)", "(abgebrochen)", "（已停止）")
    }

    /// What an answer that hit its length limit ends with.
    #[must_use]
    pub fn cut(self) -> String {
        self.pick(
            "(This answer reached its length limit. Ask me to go on.)",
            "(Diese Antwort hat ihre Höchstlänge erreicht. Bitte mich, fortzufahren.)",
            "（回答已达长度上限，可以让我继续。）",
        )
    }

    /// What a reply ends with that is longer than an API client can be shown.
    #[must_use]
    pub fn rest_in_history(self) -> String {
        self.pick(
            "(This answer goes on in the conversation's history.)",
            "(Diese Antwort geht im Verlauf des Gesprächs weiter.)",
            "（其余内容请见对话历史。）",
        )
    }

    /// Control has stored a stop; `running` = a turn was running.
    #[must_use]
    pub fn stopping(self, running: bool) -> String {
        if running {
            self.pick("Stopping.", "Ich höre auf.", "正在停止。")
        } else {
            self.pick("Nothing is running.", "Es läuft gerade nichts.", "当前没有正在进行的任务。")
        }
    }

    /// What the button says that stops the turn whose reply is being written above it.
    #[must_use]
    pub fn stop_button(self) -> String {
        self.pick("Stop", "Stopp", "停止")
    }

    /// The button that was pressed means nothing any more.
    #[must_use]
    pub fn button_expired(self) -> String {
        self.pick(
            "This button has expired. Please send me a message instead.",
            "Dieser Knopf ist abgelaufen. Schreib mir bitte stattdessen eine Nachricht.",
            "这个按钮已失效，请直接给我发消息。",
        )
    }

    /// Before the call that somebody is to allow.
    #[must_use]
    pub fn may_i(self) -> String {
        self.pick("May I run this?", "Darf ich das ausführen?", "我可以执行以下操作吗？")
    }

    /// Who caused the call that is asked for; `who` is an id.
    #[must_use]
    pub fn asked_by(self, who: &str) -> String {
        match self {
            Self::English => format!("Asked for by `{who}`."),
            Self::German => format!("Gewünscht von `{who}`."),
            Self::Chinese => format!("请求人：`{who}`。"),
        }
    }

    /// How and until when a card is answered; `buttons` = it has some.
    #[must_use]
    pub fn how_to_decide(self, code: &str, until: &str, buttons: bool) -> String {
        match (self, buttons) {
            (Self::English, true) => {
                format!("Press a button, or write `/approve {code}` or `/deny {code}`, until {until}.")
            }
            (Self::English, false) => format!("Please write `/approve {code}` or `/deny {code}`, until {until}."),
            (Self::German, true) => {
                format!("Drück einen Knopf oder schreib `/approve {code}` oder `/deny {code}`, bis {until}.")
            }
            (Self::German, false) => format!("Schreib bitte `/approve {code}` oder `/deny {code}`, bis {until}."),
            (Self::Chinese, true) => {
                format!("请在 {until} 之前点按钮，或发送 `/approve {code}` 或 `/deny {code}`。")
            }
            (Self::Chinese, false) => format!("请在 {until} 之前发送 `/approve {code}` 或 `/deny {code}`。"),
        }
    }

    /// What the button says that allows a call, or that denies it.
    #[must_use]
    pub fn verdict_button(self, verdict: Verdict) -> String {
        match verdict {
            Verdict::Allow => self.pick("Allow", "Erlauben", "批准"),
            Verdict::Deny => self.pick("Deny", "Ablehnen", "拒绝"),
        }
    }

    /// What became of a call that was asked for; `by` is the id of who decided.
    #[must_use]
    pub fn settled(self, state: ApprovalState, by: Option<&str>) -> String {
        let by = by.unwrap_or("?");
        match (self, state) {
            (Self::English, ApprovalState::Allowed) => format!("Allowed by `{by}`."),
            (Self::German, ApprovalState::Allowed) => format!("Erlaubt von `{by}`."),
            (Self::Chinese, ApprovalState::Allowed) => format!("已由 `{by}` 批准。"),
            (Self::English, ApprovalState::Denied) => format!("Denied by `{by}`."),
            (Self::German, ApprovalState::Denied) => format!("Abgelehnt von `{by}`."),
            (Self::Chinese, ApprovalState::Denied) => format!("已由 `{by}` 拒绝。"),
            (_, ApprovalState::Expired) => self.pick(
                "Nobody decided in time, so I did not do it.",
                "Niemand hat rechtzeitig entschieden, also habe ich es gelassen.",
                "没有人及时决定，所以没有执行。",
            ),
            (_, ApprovalState::Stopped | ApprovalState::Open | ApprovalState::Unknown) => {
                self.pick("This is not asked for any more.", "Danach wird nicht mehr gefragt.", "这个请求已经结束。")
            }
        }
    }

    /// What deciding about a call came to, for whoever decided.
    #[must_use]
    pub(crate) fn decided(self, verdict: Verdict, outcome: &decisions::Outcome) -> String {
        match (self, outcome) {
            (_, decisions::Outcome::Done) => match verdict {
                Verdict::Allow => self.pick("Allowed. I go on.", "Erlaubt. Ich mache weiter.", "已批准，我继续。"),
                Verdict::Deny => {
                    self.pick("Denied. I will not do it.", "Abgelehnt. Ich lasse es.", "已拒绝，我不会执行。")
                }
            },
            (Self::English, decisions::Outcome::Before { verdict: Verdict::Allow, by }) => {
                format!("`{by}` has allowed this already.")
            }
            (Self::English, decisions::Outcome::Before { verdict: Verdict::Deny, by }) => {
                format!("`{by}` has denied this already.")
            }
            (Self::German, decisions::Outcome::Before { verdict: Verdict::Allow, by }) => {
                format!("`{by}` hat das schon erlaubt.")
            }
            (Self::German, decisions::Outcome::Before { verdict: Verdict::Deny, by }) => {
                format!("`{by}` hat das schon abgelehnt.")
            }
            (Self::Chinese, decisions::Outcome::Before { verdict: Verdict::Allow, by }) => {
                format!("`{by}` 已经批准了。")
            }
            (Self::Chinese, decisions::Outcome::Before { verdict: Verdict::Deny, by }) => {
                format!("`{by}` 已经拒绝了。")
            }
            (_, decisions::Outcome::Over) => self.pick(
                "This request has expired. Please ask me again if it is still wanted.",
                "Diese Anfrage ist abgelaufen. Frag mich bitte noch einmal, wenn es noch gewünscht ist.",
                "这个请求已失效。如果仍然需要，请再告诉我一次。",
            ),
            (_, decisions::Outcome::NotTheirs) => self.pick(
                "Only who asked for this, or an approver, can decide about it.",
                "Darüber kann nur entscheiden, wer darum gebeten hat, oder ein Freigeber.",
                "只有请求人或审批人可以决定。",
            ),
        }
    }

    /// Nothing waits for a decision, or nothing that is called so.
    #[must_use]
    pub fn no_request(self) -> String {
        self.pick(
            "There is no such request waiting for a decision.",
            "Es wartet keine solche Anfrage auf eine Entscheidung.",
            "没有等待决定的相应请求。",
        )
    }

    /// What waits for a decision is newer than the command that did not name it.
    #[must_use]
    pub fn newer_request(self, code: &str) -> String {
        match self {
            Self::English => {
                format!("There is a newer request than yours. Please name it: `/approve {code}` or `/deny {code}`.")
            }
            Self::German => {
                format!(
                    "Es gibt inzwischen eine neuere Anfrage. Nenn sie bitte: `/approve {code}` oder `/deny {code}`."
                )
            }
            Self::Chinese => format!("有一个更新的请求，请注明：`/approve {code}` 或 `/deny {code}`。"),
        }
    }

    /// Something stood behind `/approve`, so nothing was approved.
    #[must_use]
    pub fn approve_alone(self, code: &str) -> String {
        match self {
            Self::English => {
                format!("I have not taken that as a yes. To allow it, write `/approve {code}` with nothing behind it.")
            }
            Self::German => {
                format!(
                    "Das habe ich nicht als Ja genommen. Um es zu erlauben, schreib `/approve {code}` und nichts dahinter."
                )
            }
            Self::Chinese => format!("我没有把这当作批准。如要批准，请只发送 `/approve {code}`，后面不要加其他内容。"),
        }
    }

    /// A new conversation has begun.
    #[must_use]
    pub fn new_conversation(self) -> String {
        self.pick(
            "This is a new conversation. What can I do for you?",
            "Das ist ein neues Gespräch. Was kann ich für dich tun?",
            "已开始新的对话，有什么可以帮您？",
        )
    }

    /// What can be done here.
    #[must_use]
    pub fn help(self, name: &str) -> String {
        match self {
            Self::English => format!(
                "I am {name}. Just write to me.\n/new begins a new conversation\n/stop ends what I am doing and what waits for me\n/status says what I am doing\n/approve and /deny answer what I ask for"
            ),
            Self::German => format!(
                "Ich bin {name}. Schreib mir einfach.\n/new beginnt ein neues Gespräch\n/stop beendet, was ich gerade tue und was noch auf mich wartet\n/status sagt, was ich gerade tue\n/approve und /deny beantworten, worum ich bitte"
            ),
            Self::Chinese => {
                format!(
                    "我是 {name}，直接给我发消息即可。\n/new 开始新的对话\n/stop 停止当前任务和排队的消息\n/status 查看当前状态\n/approve 和 /deny 回答我的请求"
                )
            }
        }
    }

    /// What a command does, as a platform's list of commands shows it; none for what is no command of people's.
    #[must_use]
    pub fn command(self, command: Command) -> Option<String> {
        match command {
            Command::New => Some(self.pick("begin a new conversation", "ein neues Gespräch beginnen", "开始新的对话")),
            Command::Stop => Some(self.pick(
                "end what I am doing and what waits for me",
                "beenden, was ich gerade tue und was noch wartet",
                "停止当前任务和排队的消息",
            )),
            Command::Status => Some(self.pick("say what I am doing", "sagen, was ich gerade tue", "查看当前状态")),
            Command::Help => Some(self.pick("say what I can do", "sagen, was ich kann", "查看使用说明")),
            Command::Approve => {
                Some(self.pick("allow what I asked for", "erlauben, worum ich gebeten habe", "批准我请求的操作"))
            }
            Command::Deny => Some(self.pick(
                "do not allow what I asked for",
                "nicht erlauben, worum ich gebeten habe",
                "拒绝我请求的操作",
            )),
            Command::Tap | Command::Steer | Command::Unknown => None,
        }
    }

    /// What the app called `name` is, in a platform's directory.
    #[must_use]
    pub fn app(self, name: &str) -> String {
        match self {
            Self::English => format!("Talk with {name}, an assistant."),
            Self::German => format!("Sprich mit {name}, einem Assistenten."),
            Self::Chinese => format!("和助手 {name} 对话。"),
        }
    }

    /// What can be said behind the app's own command.
    #[must_use]
    pub fn command_hint(self) -> String {
        self.pick(
            "[new | stop | status | help | approve | deny | your message]",
            "[new | stop | status | help | approve | deny | deine Nachricht]",
            "[new | stop | status | help | approve | deny | 您的消息]",
        )
    }

    /// What a session is doing.
    #[must_use]
    pub fn status(self, doing: &Doing, messages: u64) -> String {
        let doing = match doing {
            Doing::Nothing => self.pick(
                "I am waiting for your next message.",
                "Ich warte auf deine nächste Nachricht.",
                "我在等您的下一条消息。",
            ),
            Doing::Working => self.pick(
                "I am working on a message.",
                "Ich arbeite gerade an einer Nachricht.",
                "我正在处理一条消息。",
            ),
            Doing::Asking { code } => match self {
                Self::English => {
                    format!("I am waiting for somebody to decide: `/approve {code}` or `/deny {code}`.")
                }
                Self::German => {
                    format!("Ich warte auf eine Entscheidung: `/approve {code}` oder `/deny {code}`.")
                }
                Self::Chinese => format!("我在等待决定：`/approve {code}` 或 `/deny {code}`。"),
            },
        };
        match self {
            Self::English => format!("{doing} This conversation has {}.", plural(messages, "message")),
            Self::German => format!("{doing} Dieses Gespräch hat {messages} Nachrichten."),
            Self::Chinese => format!("{doing}本次对话共有 {messages} 条消息。"),
        }
    }
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    /// Nothing.
    Nothing,
    /// A turn runs, or waits to run.
    Working,
    /// A turn waits for a person to decide.
    Asking {
        /// What the person calls it by.
        code: String,
    },
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
