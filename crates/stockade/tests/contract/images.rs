//! Image references, digests and platforms.

use proptest::prelude::*;
use stockade::spec::Digest;
use stockade::{Image, SpecBuilder};

use crate::builder;

/// The fields that a builder's faults name.
fn fields(builder: SpecBuilder) -> Vec<&'static str> {
    match builder.build() {
        Ok(_) => Vec::new(),
        Err(errors) => errors.faults().iter().map(|fault| fault.field()).collect(),
    }
}

#[test]
fn image_references_are_those_of_docker() {
    let digest = format!("sha256:{}", "a1".repeat(32));
    for good in [
        "python",
        "python:3.13-slim",
        "library/python",
        "registry.example/a/b__c:T_1",
        "localhost/x",
        "localhost:5000/x/y:z",
        "[::1]:5000/x",
        "EXAMPLE.com/x",
        "a.b/c",
        "a/b-_c".replace('_', "").as_str(),
        &digest,
        &format!("python@{digest}"),
        &format!("r:5000/p:t@{digest}"),
    ] {
        assert_eq!(
            fields(builder().image(Image::reference(good))),
            [""; 0],
            "{good}"
        );
    }
    for bad in [
        "",
        "-v",
        "--privileged",
        "Python",
        "a b",
        "a:",
        "a:-t",
        "a@sha256:00",
        "a@",
        "a//b",
        "/a",
        "a/",
        "a..b",
        "a___b",
        "a_-b",
        "-a/b",
        "host:port/x",
        "http://a/b",
        "a\n",
        "a\0",
        "ä",
        &"a".repeat(256),
        &format!("a:{}", "t".repeat(129)),
        &digest.to_uppercase(),
    ] {
        assert_eq!(
            fields(builder().image(Image::reference(bad))),
            ["image"],
            "{bad:?}"
        );
    }
}

#[test]
fn a_digest_is_required_once() {
    let (one, two) = (
        format!("sha256:{}", "1".repeat(64)),
        format!("sha256:{}", "2".repeat(64)),
    );
    let image = |required: &str| {
        Image::reference(format!("python@{one}")).with_digest(required.parse().unwrap())
    };
    assert_eq!(fields(builder().image(image(&one))), [""; 0]);
    assert_eq!(fields(builder().image(image(&two))), ["image"]);
    let named = Image::reference(format!("python@{one}"));
    assert_eq!(named.digest().map(Digest::as_str), Some(one.as_str()));
    let built = Image::build("dir").with_digest(one.parse().unwrap());
    assert_eq!(fields(builder().image(built)), ["image"], "never ignored");
    for bad in [
        "",
        "sha256:",
        "sha512:00",
        &one[1..],
        &one.replace('1', "G"),
    ] {
        assert!(bad.parse::<Digest>().is_err(), "{bad}");
    }
}

#[test]
fn platforms_have_one_spelling() {
    for (text, canonical) in [
        ("linux/amd64", "linux/amd64"),
        ("linux/x86_64", "linux/amd64"),
        ("linux/aarch64", "linux/arm64"),
        ("linux/arm64/v8", "linux/arm64"),
        ("linux/arm/v7", "linux/arm/v7"),
    ] {
        let platform: stockade::spec::Platform = text.parse().unwrap();
        assert_eq!(platform.to_string(), canonical);
    }
    for bad in [
        "",
        "linux",
        "linux/",
        "/amd64",
        "Linux/amd64",
        "a/b/c/d",
        "linux/amd64,x",
    ] {
        assert!(bad.parse::<stockade::spec::Platform>().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn a_reference_that_was_taken_cannot_be_an_option(text in "-?-?[a-zA-Z0-9:/@._-]{0,20}") {
        if let Ok(spec) = builder().image(Image::reference(&text)).build() {
            prop_assert!(!spec.image().name().unwrap().starts_with('-'));
        }
    }
}
