//! The CPU arms, one file a family.

mod blend;
