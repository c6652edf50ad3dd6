//! `web_fetch`: the model reads a page of the public web.
//!
//! A model can be talked into fetching what only this machine can reach: its own services, its neighbours, the metadata of
//! its cloud. So an address is taken apart here, its name is looked up once, all of its addresses have to be public
//! (module `address`), and the connection can go nowhere else. Redirects are followed by hand, each as if it were a new address.
//! A page is read up to a size and within a time, whatever its server announces. Nor does an address carry a secret out.
//!
//! Nothing that goes wrong out there is this tool's failure: the model reads what it was, and may try another address.

mod address;
mod page;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;
use turnlock_domain::secrets::mask;
use turnlock_domain::text::cut;

use self::address::Addresses;
use self::page::Page;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{Risk, Tool};

/// The most bytes that are read of a page.
const BODY_MAX: usize = 2 * 1024 * 1024;
/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long everything may take, redirects and all.
const WITHIN: Duration = Duration::from_secs(20);
/// The most redirects that are followed.
const REDIRECTS: usize = 5;
/// The longest address that is fetched.
const URL_MAX: usize = 2048;
/// The longest type that is repeated to the model.
const TYPE_MAX: usize = 80;
/// Who asks: operators of pages can tell us apart, and look us up.
const USER_AGENT: &str = concat!("Turnlock/", env!("CARGO_PKG_VERSION"), " (web_fetch)");

/// Fetches from the public web.
pub struct WebFetch {
    addresses: Addresses,
}

/// What to fetch.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// The whole address of the page, such as `https://example.org/news`.
    url: String,
}

/// Why there is no page: a sentence for the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NotFetched {
    #[error("`url` is no address of a web page. Give the whole of it, such as `https://example.org/news`.")]
    NoAddress,
    #[error("`url` is longer than {URL_MAX} characters. Pages with such addresses cannot be fetched.")]
    TooLong,
    #[error("Only addresses that begin with https:// or http:// can be fetched.")]
    Scheme,
    #[error("An address with a user name or a password in it cannot be fetched. Leave them out.")]
    Credentials,
    #[error("There is a secret in this address, and secrets are not sent out. Leave it out.")]
    Secret,
    #[error("Only the ports 80, 443 and those from 1024 on can be fetched from.")]
    Port,
    #[error("This address is not on the public internet, and nothing else can be fetched. Go on without it.")]
    Private,
    #[error("There is no server of this name. Check the address.")]
    NoSuchName,
    #[error("The server cannot be reached. Try again later, or go on without it.")]
    Unreachable,
    #[error("The connection broke off in the middle of the page. Try again, or go on without it.")]
    BrokeOff,
    #[error("The page took longer than {} seconds. Go on without it.", WITHIN.as_secs())]
    TooSlow,
    #[error("The server sends on to an address that is none.")]
    BadRedirect,
    #[error("The server sends on from https to http, which is not followed.")]
    Downgrade,
    #[error("The server sends on more than {REDIRECTS} times.")]
    TooManyRedirects,
    #[error("The server answered {0}{reason}.", reason = reason(*.0))]
    Status(u16),
    #[error("What stands there is of the type {0}. Only HTML, plain text, JSON and XML can be read.")]
    Type(String),
    #[error("The server did not say of what type it is, so it cannot be read.")]
    NoType,
    #[error("The page cannot be read.")]
    Unreadable,
    #[error("The server packs the page although it was asked not to, so it cannot be read.")]
    Packed,
}

impl From<NotFetched> for ToolError {
    fn from(reason: NotFetched) -> Self {
        Self::for_model(reason.to_string())
    }
}

fn reason(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or(String::new(), |reason| format!(" ({reason})"))
}

impl Default for WebFetch {
    fn default() -> Self {
        Self { addresses: Addresses::public() }
    }
}

impl Tool for WebFetch {
    type Input = Input;

    const NAME: &'static str = "web_fetch";
    const DESCRIPTION: &'static str = "Reads a page of the public web: HTML as text with the addresses of its links, plain \
                                       text, JSON and XML as they are. It runs no scripts and has no login.";
    const RISK: Risk = Risk::Read;
    const KEYED: bool = true;
    const FOREIGN: bool = true;

    async fn run(&self, input: Input, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let fetched = timeout(WITHIN, self.fetch(&input.url)).await;
        Ok(fetched.map_err(|_| NotFetched::TooSlow)??)
    }
}

impl WebFetch {
    async fn fetch(&self, address: &str) -> Result<ToolOutput, NotFetched> {
        let mut url = parsed(address)?;
        for _ in 0..=REDIRECTS {
            let response = self.get(&url).await?;
            if !sends_on(&response) {
                return read(response, &url).await;
            }
            url = redirected(response.headers().get(LOCATION), &url)?;
        }
        Err(NotFetched::TooManyRedirects)
    }

    /// One request, to an address that was checked. The client is made for it alone, so that no connection to a name
    /// outlives the check of its addresses.
    async fn get(&self, url: &Url) -> Result<Response, NotFetched> {
        let addresses = self.addresses.of(url).await?;
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            .dns_resolver(Arc::new(Pinned(addresses.clone())))
            .connect_timeout(CONNECT_WITHIN)
            .user_agent(USER_AGENT)
            .build()
            .map_err(|_| NotFetched::Unreachable)?;
        let accepted =
            "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1";
        let request = client.get(url.clone()).header(ACCEPT, accepted).header(ACCEPT_ENCODING, "identity");
        let response = request.send().await.map_err(|_| NotFetched::Unreachable)?;
        match response.remote_addr() {
            Some(peer) if !addresses.contains(&peer) => Err(NotFetched::Private),
            _ => Ok(response),
        }
    }
}

/// The addresses that were checked, whatever is asked for: nothing is looked up a second time.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

fn parsed(address: &str) -> Result<Url, NotFetched> {
    if address.len() > URL_MAX {
        return Err(NotFetched::TooLong);
    }
    let mut url: Url = address.trim().parse().map_err(|_| NotFetched::NoAddress)?;
    url.set_fragment(None);
    if has_secret(address) || has_secret(url.as_str()) {
        return Err(NotFetched::Secret);
    }
    allowed(url)
}

/// Whether a secret stands in `address`, as it is or in percent signs. What a server sends on to is not asked: it knows
/// what is in there.
fn has_secret(address: &str) -> bool {
    let is_secret = |text: &str| matches!(mask(text), Cow::Owned(_));
    is_secret(address) || is_secret(&percent_decode_str(address).decode_utf8_lossy())
}

/// Whether an answer is a redirect. 304 is none, nor is a choice of several addresses that names no best one.
fn sends_on(response: &Response) -> bool {
    match response.status() {
        StatusCode::MULTIPLE_CHOICES => response.headers().contains_key(LOCATION),
        StatusCode::NOT_MODIFIED => false,
        status => status.is_redirection(),
    }
}

/// `url`, if it is one that could be fetched at all.
fn allowed(url: Url) -> Result<Url, NotFetched> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(NotFetched::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(NotFetched::Credentials);
    }
    Ok(url)
}

/// Where a redirect leads.
fn redirected(location: Option<&HeaderValue>, from: &Url) -> Result<Url, NotFetched> {
    let location = location.and_then(|location| std::str::from_utf8(location.as_bytes()).ok());
    let location = location.filter(|location| location.len() <= URL_MAX).ok_or(NotFetched::BadRedirect)?;
    let mut next = from.join(location).map_err(|_| NotFetched::BadRedirect)?;
    next.set_fragment(None);
    if from.scheme() == "https" && next.scheme() == "http" {
        return Err(NotFetched::Downgrade);
    }
    allowed(next)
}

async fn read(mut response: Response, url: &Url) -> Result<ToolOutput, NotFetched> {
    let status = response.status();
    if !status.is_success() {
        return Err(NotFetched::Status(status.as_u16()));
    }
    if response
        .headers()
        .get(CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return Err(NotFetched::Packed);
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|content_type| content_type.to_str().ok());
    let (kind, charset) = kind(content_type.ok_or(NotFetched::NoType)?)?;
    let mut body: Vec<u8> = Vec::new();
    let mut is_cut = false;
    while let Some(chunk) = response.chunk().await.map_err(|_| NotFetched::BrokeOff)? {
        let room = BODY_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            is_cut = true;
            break;
        }
    }
    let from = url.clone();
    // A long page takes a while, in which others must be served.
    let page = tokio::task::spawn_blocking(move || {
        let text = page::decoded(&body, charset.as_deref(), kind == Kind::Html, is_cut);
        match kind {
            Kind::Html => page::read(&text, &from),
            Kind::Text => Page { text, ..Page::default() },
        }
    });
    let page = page.await.map_err(|error| {
        tracing::error!(cause = %error, "a page could not be read");
        NotFetched::Unreadable
    })?;
    let title = if page.title.is_empty() { String::new() } else { format!("\nTitle: {}", page.title) };
    let output = ToolOutput::text(format!("Address: {url}{title}\n\n{}", page.text));
    if is_cut || page.is_cut {
        return Ok(output.with_note("[The page was too long to be read whole: its end is missing.]"));
    }
    Ok(output)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    /// Text that is read as it is.
    Text,
}

/// What a content type promises, and the encoding that it names.
fn kind(content_type: &str) -> Result<(Kind, Option<String>), NotFetched> {
    let mut parts = content_type.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset =
        parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map(|(_, charset)| charset.trim().trim_matches('"').to_owned());
    let is_text_of_application = kind.strip_prefix("application/").is_some_and(|kind| {
        matches!(kind, "json" | "xml" | "javascript" | "x-ndjson" | "yaml" | "toml")
            || kind.ends_with("+json")
            || kind.ends_with("+xml")
    });
    match kind.as_str() {
        "text/html" | "application/xhtml+xml" => Ok((Kind::Html, charset)),
        _ if kind.starts_with("text/") || is_text_of_application => Ok((Kind::Text, charset)),
        "" => Err(NotFetched::NoType),
        _ => Err(NotFetched::Type(cut(&kind, TYPE_MAX).to_owned())),
    }
}
