//! What atomic locations in global memory hold besides their values, by word.
//!
//! Coherent data is atomic, too, so these are whole regions as a rule: pages of words rather than words by themselves.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::PAGE;
use super::clock::Message;

const PAGE_WORDS: u64 = PAGE / 4;

/// Messages by the number of their word (address / 4).
#[derive(Default)]
pub(super) struct Messages(FxHashMap<u64, Box<[Option<Arc<Message>>]>>);

impl Messages {
    pub(super) fn get(&self, word: u64) -> Option<&Arc<Message>> {
        self.0.get(&(word / PAGE_WORDS))?[(word % PAGE_WORDS) as usize].as_ref()
    }

    /// Puts a message, or none, in the place of the one before.
    pub(super) fn replace(&mut self, word: u64, message: Option<Arc<Message>>) -> Option<Arc<Message>> {
        let page = word / PAGE_WORDS;
        if message.is_none() && !self.0.contains_key(&page) {
            return None;
        }
        let words = self.0.entry(page).or_insert_with(|| vec![None; PAGE_WORDS as usize].into());
        std::mem::replace(&mut words[(word % PAGE_WORDS) as usize], message)
    }
}
