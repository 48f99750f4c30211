//! Connections that can be cut from outside, as by the death of a process, and the texts of grpc-go
//! for a status.

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
};

use hyper_util::rt::TokioIo;
use kubelet_api::MESSAGE_LIMIT;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::{
    Code, Status,
    transport::{
        Channel, Endpoint,
        server::{Connected, UdsConnectInfo},
    },
};

/// A unix socket connection that ends at once when its token is cancelled.
#[derive(Debug)]
pub(super) struct CuttableStream {
    inner: UnixStream,
    token: CancellationToken,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

// === impl CuttableStream ===

impl CuttableStream {
    pub(super) fn new(inner: UnixStream, token: CancellationToken) -> Self {
        let ended = Box::pin(token.clone().cancelled_owned());
        Self {
            inner,
            token,
            ended,
        }
    }

    fn broken(&self) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.token.is_cancelled() {
            return self.broken();
        }
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl Connected for CuttableStream {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> UdsConnectInfo {
        self.inner.connect_info()
    }
}

/// Connects once to a plugin's socket, with the authority that the kubelet sends and the user agent
/// of its gRPC library.
pub(super) async fn connect_once(
    socket: &Path,
    library: &str,
    token: CancellationToken,
) -> Result<Channel, tonic::transport::Error> {
    let socket = PathBuf::from(socket);
    // grpc-go sends `localhost` as `:authority` for unix sockets.
    Endpoint::from_static("http://localhost")
        .user_agent(library.to_owned())?
        .connect_with_connector(tower::service_fn(move |_| {
            let (socket, token) = (socket.clone(), token.clone());
            async move {
                if token.is_cancelled() {
                    return Err(io::Error::from(io::ErrorKind::BrokenPipe));
                }
                let stream = UnixStream::connect(&socket).await?;
                Ok(TokioIo::new(CuttableStream::new(stream, token)))
            }
        }))
        .await
}

/// Size in bytes of a message above the limit, if the status is tonic's error for one.
pub(super) fn oversize_bytes(status: &Status) -> Option<usize> {
    let rest = status.message().split_once("too large: found ")?.1;
    rest.split(' ').next()?.parse().ok()
}

/// Formats the status as grpc-go does, which is how it appears in messages of the kubelet.
pub(super) fn format_status(status: &Status) -> String {
    if let Some(size) = oversize_bytes(status) {
        return format!(
            "rpc error: code = ResourceExhausted desc = grpc: received message larger than max ({size} vs. {MESSAGE_LIMIT})"
        );
    }
    let code = match status.code() {
        Code::Ok => "OK".to_owned(),
        Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    };
    format!("rpc error: code = {code} desc = {}", status.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_of_a_status_as_grpc_go_does() {
        let status = Status::invalid_argument("no such device");
        assert_eq!(
            format_status(&status),
            "rpc error: code = InvalidArgument desc = no such device"
        );
        let status = Status::cancelled("bye");
        assert_eq!(
            format_status(&status),
            "rpc error: code = Canceled desc = bye"
        );
    }
}
