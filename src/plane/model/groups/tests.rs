#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use proptest::prelude::*;

use super::*;

fn rule(kind: RuleKind, pattern: &str) -> Rule {
    Rule { kind, pattern: pattern.to_owned(), position: 0, id: String::new() }
}

fn group(name: &str, rules: &[(RuleKind, &str)]) -> Group {
    Group { name: name.to_owned(), rules: rules.iter().map(|(kind, pattern)| rule(*kind, pattern)).collect() }
}

fn compile(groups: &[Group]) -> Groups {
    Groups::compile("shop", "web", groups).unwrap()
}

fn name_of(groups: &Groups, path: &str) -> String {
    groups.names()[groups.matching(path).group as usize].to_string()
}

use RuleKind::{Exact, Prefix, Regex, Template};

#[test]
fn b131_a_group_that_is_not_there_is_unknown_and_a_bad_uri_invalid() {
    let groups = compile(&[group("search", &[(Prefix, "/search/")])]);
    let unknown = groups.route("serch", "/search/x").unwrap_err();
    assert_eq!(unknown.reason(), "endpoint_group_unknown");
    assert_eq!(unknown.to_string(), "endpoint group \"serch\" does not exist; did you mean \"search\"?");
    for uri in ["search", "/search /x"] {
        assert_eq!(groups.route("", uri).unwrap_err().reason(), "uri_invalid");
    }
    // An explicit group wins, and the URI is not even looked at.
    assert_eq!(groups.route("search", "not a uri"), Ok(1));
    assert_eq!(groups.route("_default", ""), Ok(DEFAULT_INDEX));
    assert_eq!(groups.route("", ""), Ok(DEFAULT_INDEX));
}

#[test]
fn b132_a_prefix_rule_takes_paths_and_urls_and_the_rest_is_default() {
    let groups = compile(&[group("search", &[(Prefix, "/search/")])]);
    let search = groups.index_of("search").unwrap();
    assert_eq!(groups.route("", "/search/items?q=1"), Ok(search));
    assert_eq!(groups.route("", "https://h/search/x"), Ok(search));
    assert_eq!(groups.route("", "/search"), Ok(DEFAULT_INDEX));
    assert_eq!(groups.route("", "/other?x=/search/"), Ok(DEFAULT_INDEX));
    assert_eq!(groups.matching("/other"), Route { group: DEFAULT_INDEX, rule: None });
    assert_eq!(groups.matching("/search/x").rule.map(|rule| rule.kind), Some(Prefix));
}

#[test]
fn b133_exact_beats_template_beats_longest_prefix_beats_regex() {
    let groups = compile(&[
        group("regex", &[(Regex, "a")]),
        group("short", &[(Prefix, "/a")]),
        group("long", &[(Prefix, "/a/")]),
        group("template", &[(Template, "/a/{id}")]),
        group("exact", &[(Exact, "/a/1")]),
    ]);
    for (path, name) in [
        ("/a/1", "exact"),
        ("/a/2", "template"),
        ("/a/", "long"),
        ("/a/1/", "long"),
        ("/a", "short"),
        ("/apix", "short"),
        ("/xa", "regex"),
        ("/x", "_default"),
    ] {
        assert_eq!(name_of(&groups, path), name, "{path}");
    }
}

#[test]
fn of_templates_the_one_with_more_literals_wins_then_the_rank() {
    let groups = compile(&[
        group("one", &[(Template, "/{a}/{b}/c")]),
        group("two", &[(Template, "/a/{b}/{c}")]),
        group("three", &[(Template, "/{a}/b/c")]),
        group("slash", &[(Template, "/{a}/")]),
    ]);
    assert_eq!(name_of(&groups, "/a/b/c"), "three");
    assert_eq!(name_of(&groups, "/a/x/c"), "one", "equal literals: the first written");
    assert_eq!(name_of(&groups, "/a/x/y"), "two");
    assert_eq!(name_of(&groups, "/x/"), "slash");
    assert_eq!(name_of(&groups, "/x"), "_default");
    assert_eq!(name_of(&groups, "//"), "_default", "a parameter is never empty");
}

#[test]
fn rank_is_the_order_of_position_then_id_then_writing() {
    let ranked = |rules: &[(i64, &str)]| {
        let groups: Vec<Group> = rules
            .iter()
            .enumerate()
            .map(|(n, (position, id))| Group {
                name: format!("g{n}"),
                rules: vec![Rule { kind: Regex, pattern: "x".to_owned(), position: *position, id: (*id).to_owned() }],
            })
            .collect();
        name_of(&compile(&groups), "/x")
    };
    assert_eq!(ranked(&[(2, "a"), (1, "b"), (1, "a")]), "g2");
    assert_eq!(ranked(&[(1, "b"), (1, "b")]), "g0");
    assert_eq!(ranked(&[(1, ""), (-1, "z")]), "g1");
}

#[test]
fn a_hundred_expressions_keep_their_order() {
    let groups: Vec<Group> = (0..100).map(|n| group(&format!("g{n}"), &[(Regex, &format!("^/p{n}[a-z]?"))])).collect();
    let groups = compile(&groups);
    assert_eq!(name_of(&groups, "/p99x"), "g9", "found in the first part before the last");
    assert_eq!(name_of(&groups, "/p45"), "g4");
    assert_eq!(name_of(&groups, "/q"), "_default");
}

#[test]
fn an_error_names_site_client_group_and_pattern() {
    let error = Groups::compile("shop", "web", &[group("search", &[(Template, "/a/{1}")])]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "site shop, client web, endpoint group search: template pattern \"/a/{1}\": parameter \"1\"; allowed: letters, digits and _, not starting with a digit"
    );
    let error = Groups::compile("shop", "web", &[group("search", &[(Regex, "(")])]).unwrap_err();
    assert!(error.to_string().contains("regex pattern \"(\": not a regular expression: unclosed group"), "{error}");
    let twice = [group("a", &[]), group("a", &[])];
    assert!(Groups::compile("shop", "web", &twice).unwrap_err().to_string().contains("declared twice"));
    assert!(Groups::compile("shop", "web", &[group("_default", &[(Exact, "/")])]).is_err());
    assert!(Groups::compile("shop", "web", &[group("_default", &[])]).is_ok());
    assert!(Groups::compile("shop", "Web", &[]).is_err() && Groups::compile("", "web", &[]).is_err());
    let rules = |count: usize| Group { name: "g".to_owned(), rules: (0..count).map(|n| rule(Exact, &format!("/{n}"))).collect() };
    assert!(Groups::compile("shop", "web", &[rules(500)]).is_ok());
    assert!(Groups::compile("shop", "web", &[rules(501)]).unwrap_err().to_string().contains("501 rules"));
}

#[test]
fn the_deepest_template_is_found() {
    let pattern: String = (0..300).map(|n| format!("/{{p{n}}}")).collect();
    let literal: String = (0..300).map(|_| "/x").collect();
    let groups = compile(&[group("p", &[(Template, &pattern)]), group("x", &[(Template, &format!("{literal}/y"))])]);
    assert_eq!(name_of(&groups, &literal), "p");
    assert_eq!(name_of(&groups, &format!("{literal}/y")), "x");
}

/// The rules of the contract in the slowest and plainest way.
fn slow(groups: &[Group], path: &str) -> u32 {
    let mut rules: Vec<(u32, &Rule)> =
        groups.iter().zip(1..).flat_map(|(group, index)| group.rules.iter().map(move |rule| (index, rule))).collect();
    rules.sort_by_key(|(_, rule)| (rule.position, rule.id.clone()));
    let of = |kind| rules.iter().enumerate().filter(move |(_, (_, rule))| rule.kind == kind);
    if let Some((_, (group, _))) = of(Exact).find(|(_, (_, rule))| rule.pattern == path) {
        return *group;
    }
    let fits = |pattern: &str| {
        let (pattern, path) = (pattern.split('/').collect::<Vec<_>>(), path.split('/').collect::<Vec<_>>());
        pattern.len() == path.len()
            && pattern.iter().zip(&path).all(|(p, s)| if p.starts_with('{') { !s.is_empty() } else { p == s })
    };
    let parameters = |pattern: &str| pattern.matches('{').count();
    let literals = |pattern: &str| pattern.split('/').count() - parameters(pattern);
    let best = of(Template)
        .filter(|(_, (_, rule))| fits(&rule.pattern))
        .min_by_key(|(rank, (_, rule))| (std::cmp::Reverse(literals(&rule.pattern)), parameters(&rule.pattern), *rank));
    if let Some((_, (group, _))) = best {
        return *group;
    }
    let longest = of(Prefix)
        .filter(|(_, (_, rule))| path.starts_with(&rule.pattern))
        .min_by_key(|(rank, (_, rule))| (std::cmp::Reverse(rule.pattern.len()), *rank));
    if let Some((_, (group, _))) = longest {
        return *group;
    }
    of(Regex).find(|(_, (_, rule))| regex::Regex::new(&rule.pattern).unwrap().is_match(path)).map_or(0, |(_, (group, _))| *group)
}

fn written_rule() -> impl Strategy<Value = Rule> {
    let path =
        prop::collection::vec(prop::sample::select(vec!["a", "b", "", "ab"]), 1..5).prop_map(|s| format!("/{}", s.join("/")));
    let template = prop::collection::vec(prop::sample::select(vec!["a", "b", "", "{}", "{}"]), 1..5).prop_map(|segments| {
        let named = segments.iter().enumerate().map(|(n, s)| if *s == "{}" { format!("{{p{n}}}") } else { (*s).to_owned() });
        format!("/{}", named.collect::<Vec<_>>().join("/"))
    });
    let regex = prop::sample::select(vec!["a", "b$", "^/a", "ab?/", "/{2}", "x|b"]).prop_map(str::to_owned);
    let pattern = prop_oneof![
        path.clone().prop_map(|pattern| (Exact, pattern)),
        template.prop_map(|pattern| (Template, pattern)),
        path.prop_map(|pattern| (Prefix, pattern)),
        regex.prop_map(|pattern| (Regex, pattern)),
    ];
    (pattern, -1_i64..2, "[ab]?").prop_map(|((kind, pattern), position, id)| Rule { kind, pattern, position, id })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_compiled_rules_answer_like_the_plain_ones(
        rules in prop::collection::vec(prop::collection::vec(written_rule(), 0..8), 0..6),
        paths in prop::collection::vec(prop::collection::vec("[abx]{0,2}", 1..5), 1..12),
    ) {
        let groups: Vec<Group> =
            rules.into_iter().enumerate().map(|(n, rules)| Group { name: format!("g{n}"), rules }).collect();
        let compiled = compile(&groups);
        for path in paths {
            let path = format!("/{}", path.join("/"));
            prop_assert_eq!(compiled.matching(&path).group, slow(&groups, &path), "{}", path);
        }
    }

    #[test]
    fn any_pattern_is_compiled_or_refused(
        kind in prop::sample::select(RuleKind::ALL.to_vec()),
        pattern in "\\PC{0,30}|/[a-z{}/?#. ]{0,30}|[\\[\\](){}*+?|a^$\\\\]{0,20}",
        path in "\\PC{0,30}",
    ) {
        if let Ok(groups) = Groups::compile("shop", "web", &[group("g", &[(kind, &pattern)])]) {
            let _ = groups.matching(&path);
            let _ = groups.route("", &path);
        }
    }
}
