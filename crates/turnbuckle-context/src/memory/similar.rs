//! What says nearly the same.

/// Something that says nearly the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Similar {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How much of the text they share, from 0 to 1.
    pub similarity: f64,
}
