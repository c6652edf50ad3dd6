//! Telegram's route: updates of one bot. Whatever is not 2xx is delivered again for a day, and holds back the chat's
//! later updates: so only what a second delivery can mend answers with an error.

use turnlock_channels::{AlbumPart, IngressRequest, IngressResponse, Normalised, telegram};
use turnlock_domain::event::Channel;

use super::{Ingress, done, error, ignore, later, refuse, traced, unknown_account};
use crate::admit::Admitted;

impl Ingress {
    /// Answers one request of Telegram's to the bot `account`.
    pub async fn telegram(&self, account: &str, request: IngressRequest) -> IngressResponse {
        let Some(route) = self.telegram.get(account) else { return unknown_account(Channel::Telegram) };
        match telegram::receive(&route.bot, route.secret_token.as_ref(), &request, self.clock.now()) {
            Ok(Normalised::Event(arrival)) => {
                told(self.admission.admit(traced(*arrival, &request), &route.allow).await)
            }
            Ok(Normalised::AlbumPart(part)) => {
                let part = AlbumPart { arrival: traced(part.arrival, &request), ..*part };
                told(self.admission.admit_part(part, &route.allow).await)
            }
            Ok(Normalised::Unreadable { reason, arrival }) => {
                self.admission.unreadable(&arrival, reason, &route.allow).await;
                done()
            }
            Ok(Normalised::Ignored { reason, event_id }) => {
                ignore(Channel::Telegram, account, event_id.as_ref(), reason);
                done()
            }
            Ok(Normalised::Chat { event_id, news }) => {
                self.chat_news((Channel::Telegram, account), &event_id, &news).await
            }
            Ok(Normalised::Answer(answer)) => answer,
            Err(refusal) => refuse(Channel::Telegram, account, &refusal),
        }
    }
}

/// The decision as Telegram reads it.
fn told(admitted: Admitted) -> IngressResponse {
    match admitted {
        Admitted::Busy { retry_after } => later(503, "busy", retry_after),
        Admitted::Conflict => error(409, "conflict", "this update came before with another body"),
        // The person was told where there was something to tell; a second delivery would change nothing.
        Admitted::Accepted
        | Admitted::AlreadyAccepted
        | Admitted::Limited { .. }
        | Admitted::NotAllowed
        | Admitted::Noted
        | Admitted::TooLarge { .. }
        | Admitted::Unsendable => done(),
    }
}
