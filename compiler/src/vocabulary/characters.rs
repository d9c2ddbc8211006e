//! The characters that tokens spell, for vocabularies in which some bytes stand inside longer tokens only: where `é` is
//! a token, but neither of its two bytes is.
//!
//! A text of these characters can be spelled whatever it is, so that what may follow a whole character is known without
//! looking at tokens. Not so inside a character: if `é` is a token and so is its first byte, but not its second, nothing
//! completes `é` behind that byte. Tokens that may end so are listed, to be tried one by one.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::byteset::ByteSet;
use crate::charset::CharSet;

/// What tokens spell, by characters.
#[derive(Debug)]
pub struct Characters {
    /// The characters that tokens spell, whatever stands around them.
    pub spelled: CharSet,
    /// Others that tokens have inside, or may have between them.
    pub hidden: CharSet,
    /// The bytes of all characters that are spelled, and of marks.
    pub bytes: ByteSet,
    /// Tokens that end inside a character, where single bytes cannot complete every character that begins so; ascending.
    pub cut: Vec<u32>,
    /// Tokens that begin inside a character; none if no token is `cut`.
    pub inside: Vec<u32>,
}

/// The words of a set of characters that would be surrogates, which UTF-8 has not.
const SURROGATES: std::ops::Range<usize> = 0xD800 / 64..0xE000 / 64;

/// The byte stands inside a character, not at its beginning.
fn continues(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// The number of characters of a text in UTF-8; a cut one at its end counts.
pub fn count_characters(text: &[u8]) -> u32 {
    text.iter().filter(|&&byte| !continues(byte)).count() as u32
}

/// The bytes that one is: the whole character or, of one that is cut off, what there is of it.
enum Piece {
    Whole(u32),
    Beginning,
    Other,
}

fn piece(text: &[u8]) -> Piece {
    match std::str::from_utf8(text) {
        Ok(text) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(only), None) => Piece::Whole(only.into()),
                _ => Piece::Other,
            }
        }
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => Piece::Beginning,
        Err(_) => Piece::Other,
    }
}

/// The beginning of a character with which a text ends; empty if it ends otherwise.
fn cut_off(text: &[u8]) -> &[u8] {
    let from = text.len() - text.iter().rev().take(3).take_while(|&&b| continues(b)).count();
    let Some(from) = from.checked_sub(1) else { return &[] };
    if matches!(piece(&text[from..]), Piece::Beginning) { &text[from..] } else { &[] }
}

/// The code points, first and last, whose UTF-8 begins so.
fn beginning_with(beginning: &[u8]) -> (u32, u32) {
    let lead = u32::from(beginning[0]);
    let (length, bits) = match lead {
        0xC0..=0xDF => (2, lead & 0x1F),
        0xE0..=0xEF => (3, lead & 0x0F),
        _ => (4, lead & 0x07),
    };
    let bits = beginning[1..].iter().fold(bits, |bits, &b| (bits << 6) | (u32::from(b) & 0x3F));
    let open = 6 * (length - beginning.len() as u32);
    let least = [0x80, 0x800, 0x1_0000][length as usize - 2];
    ((bits << open).max(least), (((bits + 1) << open) - 1).min(0x10_FFFF))
}

impl Characters {
    /// `tokens`: the texts of tokens; `alone`: the bytes that are tokens; `marks`: those of marks of special tokens.
    pub(super) fn new(tokens: &[(&[u8], u32)], alone: ByteSet, marks: ByteSet) -> Characters {
        let spelled = spelled(tokens, alone);
        let mut cuts: FxHashMap<&[u8], Vec<u32>> = FxHashMap::default();
        for &(text, token) in tokens {
            let end = cut_off(text);
            if !end.is_empty() {
                cuts.entry(end).or_default().push(token);
            }
        }
        let mut inside: Vec<u32> = tokens.iter().filter(|(text, _)| continues(text[0])).map(|&(_, t)| t).collect();
        let mut hidden = held(tokens);
        if !inside.is_empty() {
            cuts.keys().map(|end| beginning_with(end)).for_each(|(first, last)| hidden.insert_range(first, last));
        }
        hidden.subtract(&spelled);
        let completes = |end: &[u8]| {
            let (first, last) = beginning_with(end);
            spelled.between(first, last).filter_map(char::from_u32).all(|c| {
                let mut text = [0; 4];
                c.encode_utf8(&mut text).as_bytes()[end.len()..].iter().all(|&b| alone.contains(b))
            })
        };
        let mut cut: Vec<u32> = cuts.iter().filter(|(end, _)| !completes(end)).flat_map(|(_, t)| t).copied().collect();
        if cut.is_empty() {
            inside.clear();
        } else {
            // where one of these leads depends on what stands before it
            let short = |text: &[u8]| text.len() < 3 && text.iter().all(|&b| continues(b));
            cut.extend(tokens.iter().filter(|(text, _)| short(text)).map(|&(_, token)| token));
            cut.sort_unstable();
        }
        Characters { bytes: spelled.bytes().or(marks), spelled, hidden, cut, inside }
    }
}

/// The characters that are tokens, that single bytes spell, or parts of a character that are tokens.
fn spelled(tokens: &[(&[u8], u32)], alone: ByteSet) -> CharSet {
    let mut found = spelled_by_bytes(alone);
    let by_bytes = |text: &[u8]| text.iter().all(|&b| alone.contains(b));
    let is_end = |text: &&[u8]| text.len() < 4 && text.iter().all(|&b| continues(b));
    let ends: Vec<&[u8]> = tokens.iter().map(|t| t.0).filter(is_end).collect();
    let only_bytes = ends.iter().all(|end| by_bytes(end));
    let mut met: FxHashSet<Vec<u8>> = FxHashSet::default();
    let mut todo: Vec<Vec<u8>> =
        tokens.iter().map(|t| t.0).filter(|text| text.len() <= 4).map(<[u8]>::to_vec).collect();
    while let Some(text) = todo.pop() {
        match piece(&text) {
            Piece::Whole(c) => found.insert(c),
            // what bytes alone complete is found already
            Piece::Beginning if !(only_bytes && by_bytes(&text)) && met.insert(text.clone()) => {
                todo.extend(ends.iter().map(|end| [&text, *end].concat()).filter(|next| next.len() <= 4));
            }
            _ => {}
        }
    }
    found
}

/// The characters of which all bytes are in the set.
fn spelled_by_bytes(alone: ByteSet) -> CharSet {
    let mut found = CharSet::default();
    alone.iter().filter(u8::is_ascii).for_each(|b| found.insert(b.into()));
    // the words of characters by the bytes before the last one; each word has characters of one length
    for word in (2..CharSet::WORDS).filter(|word| !SURROGATES.contains(word)) {
        let c = char::from_u32(word as u32 * 64).expect("no surrogate");
        let mut text = [0; 4];
        let text = c.encode_utf8(&mut text).as_bytes();
        if text[..text.len() - 1].iter().all(|&b| alone.contains(b)) {
            found.insert_endings(word, alone);
        }
    }
    found
}

/// The characters that tokens have.
fn held(tokens: &[(&[u8], u32)]) -> CharSet {
    let mut found = CharSet::default();
    for part in tokens.iter().flat_map(|(text, _)| text.utf8_chunks()) {
        part.valid().chars().for_each(|c| found.insert(c.into()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn characters(tokens: &[&[u8]]) -> Characters {
        let mut alone = ByteSet::NONE;
        tokens.iter().filter(|text| text.len() == 1).for_each(|text| alone.insert(text[0]));
        let tokens: Vec<(&[u8], u32)> = tokens.iter().copied().zip(0..).collect();
        Characters::new(&tokens, alone, ByteSet::NONE)
    }

    fn listed(set: &CharSet) -> String {
        set.iter().filter_map(char::from_u32).collect()
    }

    #[test]
    fn characters_are_tokens_or_spelled_by_parts() {
        let found = characters(&[b"a", "é".as_bytes(), b"zz", b"\xE2\x82", b"\xAC", "aü".as_bytes()]);
        assert_eq!(listed(&found.spelled), "aé€");
        assert!(found.hidden.contains('z' as u32) && found.hidden.contains('ü' as u32));
        assert!(!found.hidden.contains('é' as u32) && !found.hidden.contains('b' as u32));
        assert_eq!(
            found.bytes,
            [b'a', 0xC3, 0xA9, 0xE2, 0x82, 0xAC].into_iter().fold(ByteSet::NONE, |mut set, b| {
                set.insert(b);
                set
            })
        );
    }

    #[test]
    fn tokens_behind_which_a_character_may_be_impossible_to_complete_are_listed() {
        // é is a token, ÿ is spelled by its bytes: behind the first byte only ÿ is possible
        let found = characters(&[b"a", b"\xC3", b"\xBF", b"a\xC3", "é".as_bytes(), b"\xBFa"]);
        assert_eq!(listed(&found.spelled), "aéÿ");
        assert_eq!((found.cut.len(), found.inside), (3, vec![2, 5]));
        // all that begins with C3 can be completed
        let found = characters(&[b"a", b"\xC3", b"\xBF", b"a\xC3", "ÿ".as_bytes(), "ā".as_bytes()]);
        assert_eq!(listed(&found.spelled), "aÿā");
        assert_eq!((found.cut, found.inside), (vec![], vec![]));
    }

    #[test]
    fn code_points_of_a_beginning() {
        assert_eq!(beginning_with(b"\xC3"), (0xC0, 0xFF));
        assert_eq!(beginning_with(b"\xE0"), (0x800, 0xFFF));
        assert_eq!(beginning_with(b"\xE2\x82"), (0x2080, 0x20BF));
        assert_eq!(beginning_with(b"\xF0"), (0x1_0000, 0x3_FFFF));
        assert_eq!(beginning_with(b"\xF4"), (0x10_0000, 0x10_FFFF));
    }
}
