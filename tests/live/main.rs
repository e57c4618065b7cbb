//! Tests against a real engine: what is promised, as a guest and a host see it.

mod attacks;
mod bad_input;
mod builds;
mod counts;
mod endings;
mod engine_restart;
mod files;
mod hardening;
mod images;
mod lifecycle;
mod limits;
mod operate;
mod output;
mod storage;
mod streams;
mod terminal;
mod trees;
mod writes;
