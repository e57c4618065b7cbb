//! The text form of rules, over generated rules and over any text.

use proptest::prelude::*;
use stockade_policy::{EgressPolicy, EgressRule, Host, Method, PathPattern};

fn label() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]([a-zA-Z0-9-]{0,8}[a-zA-Z0-9])?"
}

fn host() -> impl Strategy<Value = String> {
    let labels = (prop::collection::vec(label(), 0..4), "[a-zA-Z]{2,6}");
    (any::<bool>(), labels).prop_map(|(wildcard, (mut labels, last))| {
        labels.push(last);
        let name = labels.join(".");
        if wildcard { format!("*.{name}") } else { name }
    })
}

fn path() -> impl Strategy<Value = String> {
    let segment = "[a-zA-Z0-9_~@-][a-zA-Z0-9._~@:+-]{0,6}";
    (prop::collection::vec(segment, 0..4), any::<bool>()).prop_map(|(mut segments, below)| {
        if below {
            segments.push("*".to_owned());
        }
        format!("/{}", segments.join("/"))
    })
}

fn rule() -> impl Strategy<Value = EgressRule> {
    let ports = prop::collection::btree_set(1..=u16::MAX, 1..4);
    let methods = prop::option::of(prop::collection::btree_set("[A-Z][A-Z-]{1,8}", 1..4));
    let paths = prop::option::of(prop::collection::btree_set(path(), 1..4));
    (host(), ports, methods, paths).prop_map(|(host, ports, methods, paths)| {
        let mut rule = EgressRule::new(&host)
            .and_then(|rule| rule.with_ports(ports))
            .expect("generated well formed");
        if let Some(methods) = &methods {
            let methods = methods.iter().map(String::as_str);
            rule = rule.with_methods(methods).expect("generated well formed");
        }
        if let Some(paths) = &paths {
            let paths = paths.iter().map(String::as_str);
            rule = rule.with_paths(paths).expect("generated well formed");
        }
        rule
    })
}

proptest! {
    #[test]
    fn a_rule_survives_its_text_form(rule in rule()) {
        let text = rule.to_string();
        let back: Result<EgressRule, _> = text.parse();
        prop_assert_eq!(back, Ok(rule), "{}", text);
    }

    #[test]
    fn the_text_form_is_a_fixed_point(text in "[A-Z,]{0,6} ?(https://)?[a-z.*-]{0,12}(:[0-9,]{0,8})?(/[a-z*.%0-9]{0,6}){0,3}( /[a-z]{0,3})?") {
        if let Ok(rule) = text.parse::<EgressRule>() {
            let once = rule.to_string();
            let again: EgressRule = once.parse().expect("what was written can be read");
            prop_assert_eq!(again.to_string(), once);
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in any::<String>()) {
        let _ = text.parse::<EgressRule>();
        let _ = text.parse::<Host>();
        let _ = text.parse::<Method>();
        let _ = text.parse::<PathPattern>();
    }

    #[test]
    fn a_host_that_was_taken_is_a_name_and_no_address(text in "\\*?\\.?[a-z0-9x.-]{0,20}") {
        if let Ok(host) = text.parse::<Host>() {
            let name = host.name();
            prop_assert!(name.parse::<std::net::IpAddr>().is_err());
            prop_assert!(name.len() <= 253 && !name.ends_with('.') && !name.contains('*'));
        }
    }

    #[test]
    fn a_policy_keeps_each_rule_once_and_in_order(rules in prop::collection::vec(rule(), 1..6)) {
        let twice = rules.iter().chain(&rules).cloned();
        match (EgressPolicy::new(rules.clone()), EgressPolicy::new(twice)) {
            (Ok(once), Ok(twice)) => prop_assert_eq!(once, twice),
            (once, twice) => prop_assert!(once.is_err() && twice.is_err()),
        }
    }
}
