//! The template and the binaries on a local AWS, from the HTTP route to the chat.

mod chats;
mod kit;
