//! HTTP/1.1 on loopback, which is what Lambda's Runtime API and AWS's endpoints speak, with TLS or without.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What answers requests.
pub(super) trait Answer: Send + Sync + 'static {
    /// Answers one.
    fn answer(&self, request: Request<Bytes>) -> impl Future<Output = anyhow::Result<Response<Bytes>>> + Send;
}

/// A port of the system's choice.
pub(super) async fn listen() -> anyhow::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("there is no port to listen on")?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Serves until it is dropped, and all connections with it.
pub(super) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, answerer: Arc<impl Answer>) {
    let mut connections = JoinSet::new();
    // A connection that cannot be taken, or breaks, is seen by who made it.
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(connection(stream, tls.clone(), Arc::clone(&answerer)));
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, answerer: Arc<impl Answer>) {
    // An answer must not wait for the peer's acknowledgement of the last one.
    drop(stream.set_nodelay(true));
    match tls {
        None => requests(stream, answerer).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                requests(stream, answerer).await;
            }
        }
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, answerer: Arc<impl Answer>) {
    let service = service_fn(|request: Request<Incoming>| {
        let answerer = Arc::clone(&answerer);
        async move { Ok::<_, Infallible>(one(request, &*answerer).await) }
    });
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

async fn one(request: Request<Incoming>, answerer: &impl Answer) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let answer = match body.collect().await {
        Ok(body) => answerer.answer(Request::from_parts(head, body.to_bytes())).await,
        Err(error) => Err(error.into()),
    };
    let answer = answer.unwrap_or_else(|error| {
        let mut response = Response::new(Bytes::from(format!("{error:#}")));
        *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        response
    });
    answer.map(Full::new)
}
