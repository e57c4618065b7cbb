//! Rules of the tree itself.
