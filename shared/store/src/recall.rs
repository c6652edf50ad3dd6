//! The search in a memory scope, version 1: words in common, over a bounded number of facts and episodes. No index, no
//! vectors; what it reads is bounded ([`crate::memory::MAX_FACTS_READ`] facts and [`EPISODES_READ`] episodes), so its
//! cost is too.
//!
//! A query is cut into terms: the words of scripts that write spaces, and for scripts that write none (Chinese, Japanese,
//! Thai …) each pair of neighbouring characters. A word counts where the same word stands, half where it begins another
//! one; a pair counts where it stands. Short common words count like any other, so a query of nothing else finds much:
//! the limit and the order (most terms, then newest) bound what is shown.

use std::collections::BTreeSet;

use crate::Store;
use crate::error::StoreError;
use crate::memory::{Episode, Fact, MAX_FACTS_READ};

/// The most episodes that a search looks at.
pub const EPISODES_READ: usize = 50;
/// The most characters of a query that are looked at.
const QUERY_CHARS: usize = 500;

/// Something that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recalled {
    /// A fact.
    Fact(Fact),
    /// A stretch of a conversation.
    Episode(Episode),
}

impl Recalled {
    /// The text that was searched.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Fact(fact) => fact.text(),
            Self::Episode(episode) => episode.summary(),
        }
    }

    fn at(&self) -> turnlock_domain::time::Millis {
        match self {
            Self::Fact(fact) => fact.evidence().at(),
            Self::Episode(episode) => episode.evidence().at(),
        }
    }
}

impl Store {
    /// At most `limit` memories of a scope that have terms of `query` in common with it, the best first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn recall(&self, scope: &str, query: &str, limit: usize) -> Result<Vec<Recalled>, StoreError> {
        let facts = self.facts(scope, MAX_FACTS_READ).await?.into_iter().map(Recalled::Fact);
        let episodes = self.episodes(scope, EPISODES_READ).await?.into_iter().map(Recalled::Episode);
        Ok(rank(query, facts.chain(episodes).collect(), limit))
    }
}

/// The best `limit` of `memories`; those without a term in common are left out.
#[must_use]
pub fn rank(query: &str, memories: Vec<Recalled>, limit: usize) -> Vec<Recalled> {
    let query: String = query.chars().take(QUERY_CHARS).collect();
    let (words, pairs) = terms(&query);
    let mut scored: Vec<(usize, Recalled)> = memories
        .into_iter()
        .map(|memory| (score(&words, &pairs, &searched(&memory)), memory))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by(|(a, one), (b, two)| b.cmp(a).then(two.at().cmp(&one.at())));
    scored.truncate(limit);
    scored.into_iter().map(|(_, memory)| memory).collect()
}

/// A fact is found by its key as well.
fn searched(memory: &Recalled) -> String {
    match memory {
        Recalled::Fact(fact) => format!("{} {}", fact.key(), fact.text()),
        Recalled::Episode(episode) => episode.summary().to_owned(),
    }
}

fn score(words: &BTreeSet<String>, pairs: &BTreeSet<String>, text: &str) -> usize {
    let (known, _) = terms(text);
    let lower = text.to_lowercase();
    let of_word = |word: &String| {
        let begins = || known.range(word.clone()..).next().is_some_and(|next| next.starts_with(word.as_str()));
        if known.contains(word) { 2 } else { usize::from(word.chars().count() > 2 && begins()) }
    };
    words.iter().map(of_word).sum::<usize>() + 2 * pairs.iter().filter(|pair| lower.contains(pair.as_str())).count()
}

/// The words, and the pairs of characters of scripts without spaces (a single one stands for itself).
fn terms(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut words, mut pairs) = (BTreeSet::new(), BTreeSet::new());
    for run in text.to_lowercase().split(|character: char| !character.is_alphanumeric()) {
        let characters: Vec<char> = run.chars().collect();
        for part in characters.chunk_by(|one, two| writes_no_spaces(*one) == writes_no_spaces(*two)) {
            if !writes_no_spaces(part[0]) {
                words.insert(part.iter().collect());
            } else if let [single] = part {
                pairs.insert(single.to_string());
            } else {
                pairs.extend(part.windows(2).map(|pair| pair.iter().collect::<String>()));
            }
        }
    }
    (words, pairs)
}

/// Thai to Myanmar, Khmer, kana, Bopomofo, Han and their extensions. Korean writes spaces, but its endings stick to the
/// words, so pairs find more there too.
fn writes_no_spaces(character: char) -> bool {
    matches!(u32::from(character),
        0x0E00..=0x109F | 0x1780..=0x17FF | 0x3005..=0x3007 | 0x3040..=0x312F | 0x31A0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFF9D | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use turnlock_domain::session::SessionKey;
    use turnlock_domain::time::Millis;

    use super::*;
    use crate::memory::Evidence;

    fn fact(text: &str, at: i64) -> Recalled {
        let session = SessionKey::new("telegram", "main", "1", None);
        let evidence = Evidence::new(session, 0, 0..2, vec![], "model", Millis(at)).expect("a range");
        Recalled::Fact(Fact::new("", text, evidence).expect("a text"))
    }

    fn found(query: &str, texts: &[&str]) -> Vec<String> {
        let memories = texts.iter().zip(0..).map(|(text, at)| fact(text, at)).collect();
        rank(query, memories, 2).iter().map(|memory| memory.text().to_owned()).collect()
    }

    #[test]
    fn the_most_words_in_common_come_first() {
        let texts = ["Ann has a cat", "Ann has a cat called Mia", "It rained"];
        assert_eq!(found("What is the CAT of Ann called?", &texts), ["Ann has a cat called Mia", "Ann has a cat"]);
        assert!(found("hologram", &texts).is_empty());
        assert!(found("", &texts).is_empty());
    }

    #[test]
    fn equal_ones_come_newest_first_and_the_limit_holds() {
        assert_eq!(found("tea", &["tea one", "tea two", "tea three"]), ["tea three", "tea two"]);
    }

    #[test]
    fn a_word_begins_another_one() {
        assert_eq!(found("rain", &["It was raining", "A train came"]), ["It was raining"]);
    }

    #[test]
    fn scripts_without_spaces_are_found_by_pairs() {
        assert_eq!(found("我的猫叫什么", &["用户的猫叫小白", "用户喜欢喝茶"]), ["用户的猫叫小白"]);
        assert_eq!(found("茶", &["用户的猫叫小白", "用户喜欢喝茶"]), ["用户喜欢喝茶"]);
        assert_eq!(found("コーヒー", &["好きなのはコーヒー", "紅茶"]), ["好きなのはコーヒー"]);
        assert_eq!(found("GPT模型", &["喜欢gpt", "谈论模型和gpt"]), ["谈论模型和gpt", "喜欢gpt"]);
    }
}
