//! Server-sent events, as much of them as chat completions use: `data` lines, joined until a blank line. Comments and
//! other fields are skipped. Safe for every split of the bytes, since only whole lines are ever decoded.

/// The longest line, and the longest event: an endpoint that never ends one must not fill the memory.
pub(super) const LINE_MAX: usize = 1 << 20;

/// An event is longer than [`LINE_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of the stream is longer than {LINE_MAX} bytes")]
pub(super) struct TooLong;

/// Splits bytes into events.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    line: Vec<u8>,
    data: Option<String>,
    /// The last byte was a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    started: bool,
}

impl SseParser {
    /// The data of the events that `bytes` complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, end) = match piece.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                _ => (piece, None),
            };
            let completes_return = std::mem::take(&mut self.after_return) && text.is_empty() && end == Some(b'\n');
            if completes_return {
                continue;
            }
            self.after_return = end == Some(b'\r');
            self.line.extend_from_slice(text);
            if self.line.len() > LINE_MAX {
                return Err(TooLong);
            }
            if end.is_some() {
                events.extend(self.end_line()?);
            }
        }
        Ok(events)
    }

    /// The data of an event that the end of the stream completes: some servers leave out the last blank line.
    pub(super) fn finish(&mut self) -> Result<Option<String>, TooLong> {
        Ok(self.end_line()?.or_else(|| self.data.take()))
    }

    fn end_line(&mut self) -> Result<Option<String>, TooLong> {
        let line = std::mem::take(&mut self.line);
        let mut line = String::from_utf8_lossy(&line);
        if !std::mem::replace(&mut self.started, true)
            && let Some(rest) = line.strip_prefix('\u{feff}')
        {
            line = rest.to_owned().into();
        }
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let Some(value) = line.strip_prefix("data") else { return Ok(None) };
        let value = match value.strip_prefix(':') {
            Some(value) => value.strip_prefix(' ').unwrap_or(value),
            None if value.is_empty() => value,
            None => return Ok(None),
        };
        let data = match self.data.take() {
            Some(earlier) => earlier + "\n" + value,
            None => value.to_owned(),
        };
        if data.len() > LINE_MAX {
            return Err(TooLong);
        }
        self.data = Some(data);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(bytes: &[u8]) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut events = parser.push(bytes).expect("short lines");
        events.extend(parser.finish().expect("short lines"));
        events
    }

    #[test]
    fn it_reads_what_servers_write() {
        let table: [(&str, &[&str]); 9] = [
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            ("data: a\r\rdata: b\r\r", &["a", "b"]),
            ("data:a\n\n", &["a"]),
            (": ping\n\n:\n\nevent: x\nid: 1\ndata: a\nretry: 3\n\n", &["a"]),
            ("data: {\ndata: }\n\n", &["{\n}"]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("data: a", &["a"]),
            ("datax: a\n\ndata\n\n", &[""]),
        ];
        for (text, want) in table {
            assert_eq!(whole(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut parser = SseParser::default();
        assert_eq!(parser.push(&vec![b'x'; LINE_MAX]), Ok(vec![]));
        assert_eq!(parser.push(b"x"), Err(TooLong));
        let mut parser = SseParser::default();
        let line = format!("data: {}\n", "x".repeat(LINE_MAX / 2));
        assert_eq!(parser.push(line.as_bytes()), Ok(vec![]));
        assert_eq!(parser.push(line.as_bytes()), Err(TooLong), "nor is an event of many lines");
    }

    proptest! {
        #[test]
        fn every_split_reads_the_same(
            lines in proptest::collection::vec("(data: ?|: |event: )?[a-zé€😀 ]{0,6}(\n|\r\n|\r|\n\n)", 0..12),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        ) {
            let bytes = lines.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut parser = SseParser::default();
            let mut events = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                events.extend(parser.push(&bytes[from..cut]).expect("short lines"));
                from = cut;
            }
            events.extend(parser.finish().expect("short lines"));
            prop_assert_eq!(events, whole(&bytes));
        }
    }
}
