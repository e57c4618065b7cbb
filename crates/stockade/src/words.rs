//! Enumerations whose values have a fixed spelling, and sets of them.

use std::fmt;
use std::marker::PhantomData;

/// A text that is none of the values of an enumeration.
///
/// An unknown value is always this error, never a guess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    what: &'static str,
    asked: String,
    known: String,
}

/// A set of values of one enumeration.
///
/// Small enough to copy; iterates in the order in which the values are declared.
pub struct Words<W>(u64, PhantomData<fn() -> W>);

/// An enumeration with fixed spellings. Sealed: the contract's own.
pub trait Word: Copy + Eq + fmt::Display + sealed::Sealed + 'static {
    /// Every value, in the order of declaration.
    const ALL: &'static [Self];

    /// The place of the value in [`Word::ALL`].
    #[doc(hidden)]
    fn index(self) -> u32;
}

#[expect(unnameable_types, reason = "sealed on purpose")]
pub(crate) mod sealed {
    /// Keeps [`super::Word`] to this crate.
    pub trait Sealed {}
}

impl UnknownWord {
    pub(crate) fn new<W: Word>(what: &'static str, asked: &str) -> Self {
        let known: Vec<String> = W::ALL.iter().map(ToString::to_string).collect();
        Self {
            what,
            asked: crate::text::excerpt(asked),
            known: known.join(", "),
        }
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, asked, known } = self;
        write!(f, "{what} `{asked}` is unknown; use one of {known}")
    }
}

impl std::error::Error for UnknownWord {}

impl<W: Word> Words<W> {
    /// The empty set.
    #[must_use]
    pub const fn none() -> Self {
        Self(0, PhantomData)
    }

    /// Whether the value is in the set.
    #[must_use]
    pub fn contains(self, word: W) -> bool {
        self.0 & (1 << word.index()) != 0
    }

    /// Whether the set has no value.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of values.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The set with one more value.
    #[must_use]
    pub fn with(self, word: W) -> Self {
        Self(self.0 | (1 << word.index()), PhantomData)
    }

    /// The values that are in both sets.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self(self.0 & other.0, PhantomData)
    }

    /// The values of this set that the other one lacks.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0, PhantomData)
    }

    /// Whether the other set has every value of this one.
    #[must_use]
    pub fn is_subset(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    /// The values, in the order of declaration.
    pub fn iter(self) -> impl Iterator<Item = W> {
        W::ALL
            .iter()
            .copied()
            .filter(move |word| self.contains(*word))
    }
}

impl<W: Word> Default for Words<W> {
    fn default() -> Self {
        Self::none()
    }
}

impl<W> Clone for Words<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Words<W> {}

impl<W> PartialEq for Words<W> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<W> Eq for Words<W> {}

impl<W: Word> FromIterator<W> for Words<W> {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> Self {
        words.into_iter().fold(Self::none(), Self::with)
    }
}

impl<W: Word, const N: usize> From<[W; N]> for Words<W> {
    fn from(words: [W; N]) -> Self {
        words.into_iter().collect()
    }
}

impl<W: Word> fmt::Debug for Words<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// The values joined by `, `, or `none`.
impl<W: Word> fmt::Display for Words<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (at, word) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{word}")?;
        }
        Ok(())
    }
}

/// Declares an enumeration with fixed spellings.
///
/// `ranked` ones are ordered as declared; the others have no order at all, so
/// that nobody takes one value for more than another.
macro_rules! words {
    (ranked $($rest:tt)*) => {
        $crate::words::words! { @declare [PartialOrd, Ord] $($rest)* }
    };
    (unranked $($rest:tt)*) => {
        $crate::words::words! { @declare [] $($rest)* }
    };
    (@declare [$($order:ident),*] $what:literal
        $(#[$meta:meta])*
        $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash $(, $order)*)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$about])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The fixed spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.iter().copied().find(|word| word.as_str() == text);
                known.ok_or_else(|| $crate::words::UnknownWord::new::<Self>($what, text))
            }
        }

        impl $crate::words::sealed::Sealed for $name {}

        impl $crate::words::Word for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn index(self) -> u32 {
                self as u32
            }
        }
    };
}

pub(crate) use words;
