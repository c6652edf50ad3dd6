//! The template and the binaries on a local AWS, from the HTTP route to the chat. A test is one deployment.

mod chats;
mod cost;
mod crashes;
mod kit;
mod load;
mod queues;
mod redrive;
mod rights;
