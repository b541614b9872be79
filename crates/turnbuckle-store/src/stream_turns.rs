//! Which GET stream of a session sends which changes.

use crate::Position;

/// Maximum number of turns that are kept.
const MAX_TURNS: usize = 16;

/// The turns of the GET streams of a session.
///
/// One stream at a time sends the changes of the [bus](crate::ChangeBus), so that each is sent once. A stream is resumed
/// by repeating the changes of its own turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTurns(Option<Box<TurnList>>);

/// A turn of a GET stream: it sends the changes after a position, until the next turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTurn {
    /// The number of the stream in its session, starting at 1. A stream that was opened later has a higher number.
    pub generation: u32,
    /// The position after which the turn begins.
    pub after: Position,
    /// Identifies the endpoint that sends the stream, by a random number.
    pub sender: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TurnList {
    newest_generation: u32,
    /// Oldest first.
    turns: Vec<StreamTurn>,
}

impl StreamTurns {
    /// Creates the turns from their parts, as a store has written them.
    pub fn new(newest_generation: u32, turns: Vec<StreamTurn>) -> Self {
        if newest_generation == 0 {
            return Self(None);
        }
        Self(Some(Box::new(TurnList {
            newest_generation,
            turns,
        })))
    }

    /// Returns the number of the newest stream, or 0 if there was none.
    pub fn newest_generation(&self) -> u32 {
        self.0.as_ref().map_or(0, |list| list.newest_generation)
    }

    /// Returns the turns that are known, oldest first. Earlier ones are forgotten.
    pub fn turns(&self) -> &[StreamTurn] {
        self.0.as_ref().map_or(&[], |list| &list.turns)
    }

    /// Returns the newest turn.
    pub fn current(&self) -> Option<StreamTurn> {
        self.turns().last().copied()
    }

    /// Returns whether the change at a position belongs to a stream. Before the turns that are known, each stream may have
    /// sent it.
    pub fn is_turn_of(&self, generation: u32, position: Position) -> bool {
        let mut from_newest = self.turns().iter().rev();
        let turn = from_newest.find(|turn| turn.after < position);
        turn.is_none_or(|turn| turn.generation == generation)
    }

    /// Begins a turn of an existing stream, or of a new one. The newest stream may begin a turn at any endpoint, an older
    /// one only at that of the current turn; otherwise nothing changes.
    pub(crate) fn begin(&mut self, generation: Option<u32>, after: Position, sender: u64) {
        if generation.is_some() && self.0.is_none() {
            return;
        }
        let list = self.0.get_or_insert_default();
        let last = list.turns.last_mut();
        let generation = match generation {
            None => {
                list.newest_generation = list.newest_generation.saturating_add(1);
                list.newest_generation
            }
            Some(generation) if generation == list.newest_generation => generation,
            Some(generation)
                if (1..list.newest_generation).contains(&generation)
                    && last.as_ref().is_some_and(|last| last.sender == sender) =>
            {
                generation
            }
            Some(_) => return,
        };
        match last {
            Some(last) if last.generation == generation => last.sender = sender,
            _ => {
                list.turns.push(StreamTurn {
                    generation,
                    after,
                    sender,
                });
                if list.turns.len() > MAX_TURNS {
                    list.turns.remove(0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the streams that may have sent each of the changes 1 to 9.
    fn owners(turns: &StreamTurns) -> Vec<Vec<u32>> {
        let of = |position| {
            let position = Position::new(position);
            (1..=3).filter(move |generation| turns.is_turn_of(*generation, position))
        };
        (1..=9).map(|position| of(position).collect()).collect()
    }

    #[test]
    fn each_change_belongs_to_one_stream() {
        let mut turns = StreamTurns::default();
        turns.begin(None, Position::new(0), 7);
        turns.begin(None, Position::new(3), 7);
        turns.begin(Some(1), Position::new(5), 7);
        turns.begin(Some(2), Position::new(6), 8);

        let expected: Vec<Vec<u32>> = [1, 1, 1, 2, 2, 1, 2, 2, 2].map(|one| vec![one]).into();
        assert_eq!(owners(&turns), expected);
        let current = turns.current().unwrap();
        assert_eq!((current.generation, current.sender), (2, 8));
    }

    #[test]
    fn an_older_stream_gets_no_turn_at_another_endpoint() {
        let mut turns = StreamTurns::default();
        turns.begin(None, Position::new(0), 7);
        turns.begin(None, Position::new(3), 8);
        let before = turns.clone();

        turns.begin(Some(1), Position::new(5), 7);
        turns.begin(Some(3), Position::new(5), 8);

        assert_eq!(turns, before);
    }

    #[test]
    fn a_stream_that_goes_on_at_another_endpoint_keeps_its_turn() {
        let mut turns = StreamTurns::default();
        turns.begin(None, Position::new(4), 7);
        turns.begin(Some(1), Position::new(6), 8);

        let current = turns.current().unwrap();
        assert_eq!((current.after, current.sender), (Position::new(4), 8));
        assert_eq!(turns.turns().len(), 1);
    }

    #[test]
    fn the_number_of_turns_is_limited() {
        let mut turns = StreamTurns::default();
        for number in 0..100 {
            turns.begin(None, Position::new(number), 7);
        }

        assert_eq!(turns.turns().len(), MAX_TURNS);
        assert_eq!(turns.newest_generation(), 100);
        assert!(turns.is_turn_of(1, Position::new(1)), "forgotten");
        assert!(!turns.is_turn_of(1, Position::new(100)));
    }
}
