//! `reqwest` against sockets of our own.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(5);

/// A server for one connection: reads the request's head and body, writes `answer` and closes. Returns what it read.
fn serve(answer: Vec<u8>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/bot1:planted-token/sendMessage", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        while !read.ends_with(b"}") {
            let count = stream.read(&mut buffer).unwrap();
            read.extend_from_slice(&buffer[..count]);
        }
        // The client may hang up when it has read enough.
        let _ = stream.write_all(&answer);
        String::from_utf8(read).unwrap()
    });
    (url, server)
}

fn request(url: &str) -> PlatformRequest {
    PlatformRequest {
        channel: Channel::Telegram,
        account: "main".to_owned(),
        method: "sendMessage".to_owned(),
        url: url.to_owned(),
        headers: HeaderMap::from_iter([(http::header::AUTHORIZATION, http::HeaderValue::from_static("Bearer x"))]),
        body: Bytes::from_static(b"{\"text\":\"hi\"}"),
    }
}

fn chain(error: &dyn Error) -> String {
    let mut shown = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        shown.push_str(&format!(" {error} {error:?}"));
        source = error.source();
    }
    shown
}

#[tokio::test]
async fn a_request_goes_out_and_the_answer_comes_back() {
    let (url, server) =
        serve(b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\n{}".to_vec());
    let response = ReqwestHttp::new().unwrap().send(request(&url), TIMEOUT).await.unwrap();
    assert_eq!((response.status, &response.body[..]), (429, &b"{}"[..]));
    assert_eq!(retry_after(&response.headers), Some(Duration::from_secs(3)));
    let seen = server.join().unwrap();
    assert!(seen.starts_with("POST /bot1:planted-token/sendMessage HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("authorization: Bearer x\r\n") && seen.ends_with("{\"text\":\"hi\"}"), "{seen}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_not_an_address() {
    let (url, _server) =
        serve(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".to_vec());
    assert_eq!(ReqwestHttp::new().unwrap().send(request(&url), TIMEOUT).await.unwrap().status, 302);
}

#[tokio::test]
async fn not_sent_and_not_answered_are_told_apart_and_show_no_token() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let http = ReqwestHttp::new().unwrap();
    for url in [format!("http://{closed}/bot1:planted-token/x"), "no address planted-token".to_owned()] {
        let Err(error) = http.send(request(&url), TIMEOUT).await else { panic!("an answer") };
        assert!(matches!(error, PlatformError::Unreachable(_)), "{error:?}");
        assert!(!chain(&error).contains("planted-token"), "{}", chain(&error));
    }
    let (url, _server) = serve(Vec::new());
    let Err(error) = http.send(request(&url), TIMEOUT).await else { panic!("an answer") };
    assert!(matches!(error, PlatformError::AnswerLost(_)), "{error:?}");
    assert!(!chain(&error).contains("planted-token"), "{}", chain(&error));
}

#[tokio::test]
async fn silence_ends_at_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let result = ReqwestHttp::new().unwrap().send(request(&url), Duration::from_millis(50)).await;
    assert!(matches!(result, Err(PlatformError::AnswerLost(_))));
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    answer.resize(answer.len() + MAX_RESPONSE + 100_000, b'x');
    let (url, _server) = serve(answer);
    let result = ReqwestHttp::new().unwrap().send(request(&url), TIMEOUT).await;
    assert!(matches!(result, Err(PlatformError::AnswerLost(_))));
}
