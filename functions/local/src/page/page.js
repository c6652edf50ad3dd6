"use strict";
// Talks to the agent through the HTTP API and shows what the host's demo shows. Whatever comes from outside goes into
// the page as text (textContent), never as markup.

const $ = (id) => document.getElementById(id);
const log = $("log"), field = $("text"), picker = $("session"), state = $("state");
const stopButton = $("stop");

const REFRESH_MS = 1500;
const SHOWN_EVENTS = 100;
const RESUMES = 20;

// ---- what is remembered in this browser: the sessions' names, the API key of this tab

const remembered = {
  sessions() {
    try {
      const names = JSON.parse(localStorage.getItem("turnlock.sessions"));
      if (Array.isArray(names) && names.length && names.every((name) => typeof name === "string")) return names;
    } catch { /* nothing usable is stored */ }
    return ["page"];
  },
  current() { return localStorage.getItem("turnlock.session") || "page"; },
  keep(names, current) {
    localStorage.setItem("turnlock.sessions", JSON.stringify(names));
    localStorage.setItem("turnlock.session", current);
  },
  sessionKey(name) { return localStorage.getItem(`turnlock.key.${name}`) || `gateway:${encodeURIComponent(name)}`; },
  keepSessionKey(name, key) { localStorage.setItem(`turnlock.key.${name}`, key); },
  apiKey() { return sessionStorage.getItem("turnlock.api-key"); },
  keepApiKey(key) { sessionStorage.setItem("turnlock.api-key", key); },
};

let names = remembered.sessions();
let current = names.includes(remembered.current()) ? remembered.current() : names[0];
/** Grows whenever the shown conversation changes: what belongs to an earlier one is not shown any more. */
let shownConversation = 0;
let running = 0;

// ---- requests

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function call(path, options = {}) {
  const headers = { ...options.headers };
  if (remembered.apiKey()) headers.authorization = `Bearer ${remembered.apiKey()}`;
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401 || (response.status === 503 && !response.headers.has("retry-after"))) askForKey();
  return response;
}

/** Posts a message; a host that is busy is asked again with the same key, so nothing is said twice. */
async function post(text, session) {
  const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
  const body = JSON.stringify({ text, session });
  for (;;) {
    const response = await call("/v1/messages", { method: "POST", headers, body });
    const answer = await response.json().catch(() => ({}));
    const retryAfter = Number(response.headers.get("retry-after"));
    if (response.ok) {
      remembered.keepSessionKey(session, answer.session);
      return answer;
    }
    if (!retryAfter) throw new Error(answer.message || `the host answered ${response.status}`);
    say(`The host takes the next message in ${retryAfter} s.`);
    await pause(retryAfter * 1000);
    say();
  }
}

/** What a message comes to, as it comes: frames, cards that ask, the final; a connection that breaks is taken up where it ended. */
async function* news(path) {
  let seen = null;
  for (let failures = 0; failures < RESUMES; failures += 1) {
    if (failures > 0) await pause(500);
    let response;
    try {
      response = await call(path, { headers: seen ? { "last-event-id": seen } : {} });
    } catch {
      continue;
    }
    if (response.status !== 200) {
      if (response.status >= 500) continue;
      throw new Error(`the host answered ${response.status}`);
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        buffer += value;
        const blocks = buffer.split("\n\n");
        buffer = blocks.pop();
        for (const block of blocks) {
          const fields = Object.fromEntries(block.split("\n").map((line) => {
            const at = line.indexOf(": ");
            return [line.slice(0, at), line.slice(at + 2)];
          }));
          if (fields.id) seen = fields.id;
          if (!["frame", "approval", "final", "merged"].includes(fields.event)) continue;
          failures = 0;
          const final = fields.event === "final" || fields.event === "merged";
          yield { final, ...JSON.parse(fields.data) };
          if (final) return;
        }
      }
    } catch { /* resumed below */ }
  }
  throw new Error("the host does not answer; the reply will be in this session when it does");
}

// ---- the conversation

function say(text = "") {
  state.textContent = text || "ready";
  state.classList.toggle("bad", false);
}

function complain(error) {
  state.textContent = error.message;
  state.classList.toggle("bad", true);
}

function bubble(kind, text) {
  log.querySelector(".empty")?.remove();
  const element = document.createElement("div");
  element.className = `message ${kind}`;
  const author = document.createElement("span");
  author.className = "hidden";
  author.textContent = kind === "user" ? "You: " : kind === "agent" ? "Agent: " : "";
  const content = document.createElement("span");
  content.textContent = text;
  element.append(author, content);
  const follows = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  log.append(element);
  if (follows) log.scrollTop = log.scrollHeight;
  return {
    element,
    set(text, kind) {
      const follows = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
      content.textContent = text;
      if (kind) element.className = `message ${kind}`;
      if (follows) log.scrollTop = log.scrollHeight;
    },
  };
}

function empty() {
  const hint = document.createElement("p");
  hint.className = "empty";
  hint.textContent = "Say something. Every message becomes one event, every event at most one committed turn, and the reply appears here while it is written. Begin with “slowly” to watch the stand-in write, and to try Stop.";
  log.replaceChildren(hint);
}

function working(change) {
  running += change;
  stopButton.disabled = running <= 0;
}

/** Says one thing and shows its answer as it grows. */
async function talk(text) {
  const session = current, conversation = shownConversation;
  bubble("user", text);
  const reply = bubble("agent waiting", "");
  working(1);
  try {
    const accepted = await post(text, session);
    for await (const one of news(accepted.links.stream)) {
      if (conversation !== shownConversation) return;
      if (one.approval) {
        ask(one);
        continue;
      }
      const kind = { error: "agent error", notice: "agent notice" }[one.kind] || "agent";
      if (one.final && !one.text) reply.element.remove();
      else reply.set(one.text, one.final ? kind : "agent waiting");
    }
    say();
  } catch (error) {
    if (!reply.element.textContent.trim()) reply.element.remove();
    complain(error);
  } finally {
    reply.element.classList.remove("waiting");
    if (conversation === shownConversation) working(-1);
    refresh();
  }
}

/** Shows a card and its buttons; the answer comes in the reply. */
function ask(card) {
  const { element } = bubble("agent notice", card.text);
  const buttons = [["Allow", "allow"], ["Deny", "deny"]].map(([label, decision]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", async () => {
      try {
        const options = { method: "POST", body: JSON.stringify({ decision }) };
        const response = await call(`/v1/approvals/${encodeURIComponent(card.approval)}`, options);
        const answer = await response.json().catch(() => ({}));
        if (!response.ok && response.status !== 409 && response.status !== 410) {
          throw new Error(answer.message || `the host answered ${response.status}`);
        }
        say(answer.state || answer.message);
        buttons.forEach((button) => button.remove());
      } catch (error) {
        complain(error);
      }
    });
    return button;
  });
  element.append(document.createElement("br"), ...buttons);
}

async function stop() {
  try {
    await post("/stop", current);
    say("stopping…");
  } catch (error) {
    complain(error);
  }
}

/** The newest messages of the shown session. */
async function history() {
  const conversation = (shownConversation += 1);
  running = 0;
  working(0);
  empty();
  try {
    const response = await call(`/v1/sessions/${encodeURIComponent(remembered.sessionKey(current))}/messages?limit=100`);
    if (conversation !== shownConversation || !response.ok) return say();
    const { messages } = await response.json();
    for (const message of messages) {
      for (const block of message.content) {
        if (block.type === "text" && block.text) bubble(message.role === "user" ? "user" : "agent", block.text);
        if (block.type === "tool_use") bubble("tool", `used ${block.name}`);
      }
    }
    log.scrollTop = log.scrollHeight;
    say();
  } catch {
    complain(new Error("the host does not answer"));
  }
}

function askForKey() {
  $("access").hidden = false;
}

// ---- sessions

function show(name) {
  current = name;
  if (!names.includes(name)) names.push(name);
  remembered.keep(names, current);
  picker.replaceChildren(...names.map((name) => new Option(name, name, false, name === current)));
  history();
  field.focus();
}

picker.addEventListener("change", () => show(picker.value));
$("add").addEventListener("click", () => {
  const name = prompt("A name for the session", `page-${names.length + 1}`)?.trim();
  if (name) show(name.slice(0, 64));
});
$("fresh").addEventListener("click", () => {
  shownConversation += 1;
  running = 0;
  log.replaceChildren();
  talk("/new");
  field.focus();
});

// ---- the message field

function fit() {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

$("compose").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = field.value.trim();
  if (!text) return;
  field.value = "";
  fit();
  if (text === "/stop") stop();
  else talk(text);
});
field.addEventListener("input", fit);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("compose").requestSubmit();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running > 0) stop();
});
stopButton.addEventListener("click", stop);
$("access").addEventListener("submit", (event) => {
  event.preventDefault();
  remembered.keepApiKey($("key").value.trim());
  $("key").value = "";
  $("access").hidden = true;
  history();
});

// ---- the side panel: what the demo shows

let lastEvent = 0;
let shownChats = "";

async function refresh() {
  if (document.hidden || !demo) return;
  try {
    const [events, chats] = await Promise.all([fetch(`/demo/events?after=${lastEvent}`), fetch("/demo/chats")]);
    showEvents(await events.json());
    showChats((await chats.json()).chats);
    if (state.textContent === "the host is away") say();
  } catch {
    complain(new Error("the host is away"));
  }
}

function showEvents({ events, last }) {
  // A host that was started anew counts anew.
  if (last < lastEvent) $("events").replaceChildren();
  lastEvent = last;
  for (const event of events) {
    if (event.kind === "event") $("events").prepend(eventItem(event));
  }
  while ($("events").childElementCount > SHOWN_EVENTS) $("events").lastElementChild.remove();
  $("no-events").hidden = $("events").childElementCount > 0;
}

function eventItem(event) {
  const item = document.createElement("li");
  const time = document.createElement("time");
  const at = new Date(event.at);
  time.dateTime = event.at;
  time.textContent = at.toLocaleTimeString([], { hour12: false });
  const what = document.createElement("span");
  what.className = "what";
  const badge = document.createElement("span");
  const tone = { committed: "good", failed: "bad", dead: "bad", refused: "bad", limited: "warn" }[event.outcome] || "";
  badge.className = `badge ${tone}`;
  badge.textContent = event.outcome;
  what.append(`${event.channel} `, badge, event.reason ? ` (${event.reason})` : "");
  const detail = document.createElement("span");
  detail.className = "detail";
  detail.textContent = [event.session, event.event_id].filter(Boolean).join(" · ");
  item.append(time, what, detail);
  return item;
}

function showChats(chats) {
  const text = JSON.stringify(chats);
  if (text === shownChats) return;
  shownChats = text;
  $("chats").replaceChildren(...Object.entries(chats || {}).map(([name, chat]) => {
    const element = document.createElement("article");
    element.className = "chat";
    const title = document.createElement("h3");
    title.textContent = name;
    element.append(title, ...chat.messages.slice(-5).map((message) => {
      const line = document.createElement("p");
      const buttons = (message.buttons || []).map((button) => `  [${button.label}]`).join("");
      line.textContent = message.text + (message.edits ? "  (edited)" : "") + buttons;
      line.classList.toggle("deleted", message.deleted);
      return line;
    }));
    return element;
  }));
}

let demo = false;

async function start() {
  show(current);
  try {
    demo = (await fetch("/demo/events")).ok;
  } catch { /* the conversation says it */ }
  $("side").hidden = !demo;
  if (!demo) return;
  for (;;) {
    await refresh();
    await pause(REFRESH_MS);
  }
}

start();
