//! Parts of albums: each is stored, and each that is for us sends the album's event, which its queue takes once. So the
//! rate counts an album as one, and whoever dies in between is made up for by the next part or the next delivery.

use tokio::time::timeout;
use turnlock_channels::AlbumPart;
use turnlock_config::Allow;
use turnlock_domain::event::InboundEvent;
use turnlock_store::albums::{Gathered, Part};

use super::entry::NotKnown;
use super::{Admission, Admitted, BUSY_RETRY, HELD_WITHIN, line, report};
use crate::journal_line::EventOutcome;
use crate::pairing::Standing;

impl Admission {
    /// Admits a part of an album. One that comes after its album's turn has begun, or that has no room in it, is an event
    /// of its own.
    pub async fn admit_part(&self, part: AlbumPart, allow: &Allow) -> Admitted {
        let AlbumPart { mut arrival, album, number, addressed } = part;
        let event = &arrival.event;
        let Ok(former) = self.former(&arrival).await else { return self.busy(event, BUSY_RETRY) };
        if addressed {
            if let Err(refused) = self.entry(event, former.as_ref(), allow).await {
                return refused;
            }
        } else {
            // Nothing was said to us: nobody is refused, and what a stranger says is not kept.
            match self.standing(event, former.as_ref(), allow).await {
                Ok(Standing::Allowed) => {}
                Ok(Standing::Stranger | Standing::SentCode) => return noted(event, "not_addressed"),
                Err(NotKnown) => return self.busy(event, BUSY_RETRY),
            }
        }
        let part = Part { event: event.event_id.clone(), number, content: event.content.clone(), addressed };
        let gathered = timeout(HELD_WITHIN, self.store.gather(&album, &part, self.clock.now_ms())).await;
        let is_album = match gathered {
            Ok(Ok(Gathered::Taken)) => return Admitted::AlreadyAccepted,
            Ok(Ok(Gathered::Kept | Gathered::NoRoom)) if !addressed => return noted(event, "not_addressed"),
            Ok(Ok(Gathered::Kept)) => true,
            // An album's turn begins only if a part of it was for us: then this one is, too.
            Ok(Ok(Gathered::Late | Gathered::NoRoom)) => false,
            Ok(Err(error)) => {
                report(event, &error, "a part of an album was not stored");
                return self.busy(event, BUSY_RETRY);
            }
            Err(_) => return self.busy(event, BUSY_RETRY),
        };
        if is_album {
            arrival.event.event_id = album;
        }
        if let Some(held) = self.held(&arrival.event).await {
            return self.hold(&arrival.event, held).await;
        }
        self.hand_over(arrival, former, is_album).await
    }
}

/// The line of a part that sends nothing by itself.
fn noted(event: &InboundEvent, reason: &str) -> Admitted {
    line(event, EventOutcome::Ignored, reason);
    Admitted::Noted
}
