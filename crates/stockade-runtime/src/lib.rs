//! Carries the static guest runtime, so that a user needs no image build.
