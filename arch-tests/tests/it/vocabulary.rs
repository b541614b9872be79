//! The words of the code base: no retired names, no retired phrases, and figures about names and files within their targets.
//!
//! `ARCHITECTURE.md` has the glossary. A line that must quote a retired word, such as text sent by a peer or a published option,
//! ends with a comment: `// quoted`, `# quoted` or `<!-- quoted -->`.

use std::collections::HashSet;

use turnbuckle_arch_tests::{
    source,
    style::{self, SourceText, StyleReport},
};

/// Files that hold the lists themselves.
const LISTS: [&str; 2] = [
    "arch-tests/src/style.rs",
    "arch-tests/tests/it/vocabulary.rs",
];

/// Returns the files with prose of ours. Of TOML files only comments and descriptions are prose.
fn prose_files() -> Vec<SourceText> {
    let mut files = source::texts(&["rs", "md", "py", "mjs", "yml", "toml"]);
    files.retain(|file| !LISTS.contains(&file.path.as_str()));
    assert!(files.len() > 500, "only {} files were found", files.len());
    let script = std::fs::read_to_string(turnbuckle_arch_tests::root().join("test"));
    files.push(SourceText {
        path: "test".to_owned(),
        text: script.expect("the script can be read"),
    });
    files
}

/// Returns the prose of a line; empty for a line that quotes.
fn prose<'a>(path: &str, line: &'a str) -> &'a str {
    const QUOTED: [&str; 3] = ["// quoted", "# quoted", "<!-- quoted -->"];
    let line = line.trim();
    if QUOTED.iter().any(|mark| line.ends_with(mark)) {
        return "";
    }
    let is_prose =
        !path.ends_with(".toml") || line.starts_with('#') || line.starts_with("description");
    if is_prose { line } else { "" }
}

/// Returns the non-test files under `crates/`.
fn library_files() -> Vec<SourceText> {
    let mut files = source::texts(&["rs"]);
    files.retain(|file| {
        let path = file.path.strip_prefix("crates/");
        path.is_some_and(|path| !style::is_test(path))
    });
    files
}

#[test]
fn names_and_files_meet_the_targets() {
    let files = library_files();
    let report = StyleReport::new(&files);
    let figures = [
        ("one-word type names, %", report.one_word_types(), 35.0),
        (
            "types that share a name, %",
            report.shared_type_names(),
            15.0,
        ),
        (
            "participles as type names, %",
            report.participle_types(),
            2.0,
        ),
        (
            "retired phrases per 1,000 comment lines",
            report.retired_phrases(),
            2.0,
        ),
        (
            "doc comments that begin with a question word, %",
            report.question_openings(),
            4.0,
        ),
        (
            "matches on bool per 1,000 lines",
            report.bool_matches(),
            1.0,
        ),
        (
            "files per 10,000 lines",
            report.files_per_10_000_lines(),
            58.0,
        ),
    ];

    for (name, value, target) in figures {
        assert!(
            value <= target,
            "{name}: {value:.1}, at most {target}; shared: {:?}",
            report.shared_names()
        );
    }
    let many_of_one_shape =
        |folder: &str| folder.ends_with("/types") || folder.ends_with("/commands");
    let mut large = report.folders_over(20);
    large.retain(|(folder, _)| !many_of_one_shape(folder));
    assert!(
        large.is_empty(),
        "folders with more than 20 files: {large:?}"
    );
    let single = report.folders_of_one_file();
    assert!(single.len() <= 4, "folders of one file: {single:?}");
}

/// Type names that the glossary replaces.
const RETIRED_TYPES: &str = "
    Acceptable Agreed Alarm Always Ambiguous Answer AnswerForNobody Appended Around Arrival Arrived Arriving Asked AskError
    Asking Attached Audience BadAnswer BadMark BadValue Begun Bell Beside Book Both Broken Buried CallEvents CallFirst Came
    CannotShow Carrier Chatty Claimed Cleaner ClosedByUs Closing Complaint Completing Connected Contextual Copied CountSteps
    Course Cue Deaf Denied Dense Described Desk Dial Died Differences Discovered Door Ears Edge Elicited Ended Ending EraChoice
    EraMemory Excerpt Exchange Expectation Extra Family Fault Feed FileForm Filled Finding Flaw ForeignProgress Forget Forgotten
    Found Fusion Gate Gates Gather Gathered GeneralStreams GivenUp Gone Goodbye Grade Grave Guarded GuardLayer Habits HalfSent
    Hand HeadTimer Heard Hearing Held Here Hidden Hints Holding HttpFacts Hub Huge Ids Innermost Inside Interact Journals Keeper
    Kept Kinds Known KnownItem KnownProject KnownTool KnownTools Lacking LastClient Lease Leash Leaving LeftOut Library Life
    Link Listed Listening Live Lives Look Looked Looks Lost Lower Lowered Make Maker Malformed Mark MirroredParam Mismatch Needs
    News Noise NotAsPinned NotChecked Nothing Notice NotVerified Numbered Oddity Offer Offered OldHttp OnlyHandshakeOddly Ours
    Outgoing Outlet Owners OwnRandomness Pace PairError Patience Pause Person Pieces Place Places PlaceStats Play Played Poked
    Posted Posting Presence Presences Present Presented Problem Profiles Promise Proofs Published Pump PutAway Question
    Questions Raise Reach Readable ReadMatch Reason Refusal Refused Renewals Rounds Ruling Said SampleRequest Saved Scene Seat
    Seating Seen Seldom Sending SessionChange Settled Share Shares Shelf Shelves Shown Sight Speech Stage Starter Strange Stuck
    Sweeper Tags Take Taken Takes Talk Tape TargetWord TaskChange Tell Telling Told TooEarly TooLarge Traffic Travelling Trial
    Trials Trouble Turn Unanswered Unaskable Unasked Unfit Unmet Unreadable Unsealed Unsendable UnwelcomeRequest Uses Verdict
    Views Visit Visited VisitRequest Visits Voice Volume Volumes Waiting Walked Wanted Warming Watchers Watching Way Ways
    Welcome WhenStopped Whole Wish With WriteStall Written";

/// Function names that the glossary replaces.
const RETIRED_FUNCTIONS: &str = "
    admit advice agreed agreed_now all_left_out all_over allow_turn amend and_folder anew announces_visits another_look
    another_way answer_at_once aside ask ask_anew ask_further ask_in_rounds ask_once asked asked_too_often asking asks_first
    asks_more asks_or_fails attend awaits because begin_properly begins_anew beside blame body_budget briefly bring
    broken_promise bury bury_replaced by_hand call_as_known called_as_task_after came can_explode catch_up clear_away comes_back
    complain concerns connect_as connect_lines course cure deliberate dismiss edges embed_soon eras expect_question
    expect_silence first_on_connection first_question fitting five flushed for_one forgets fresh fresh_id freshen gathered
    gently give_back give_input go_on go_on_as_task going_along goodbye hand_on hand_out hand_over hang_up has_answered hear
    held hundred in_rounds instead interruptible introduced introduction is_clock is_flooded is_for_good is_forgotten is_mail
    is_moment is_nothing is_offered is_resting is_silent is_taken_in is_told is_too_much judge judge_request keep_as kept
    kept_answers kept_bytes knock known_as knows lacks_its_end last_awaited_by_server lead lead_all leads_away leads_elsewhere
    learn_tools let_go let_in listed_anew listened look look_at look_every look_everywhere look_lately lowered may_announce
    may_ask may_be_asked may_be_older may_have_session may_look_like_another met_another mirrored most_callers most_telling
    names_us narrow needed nobody nobody_listens nobody_registers none_fits not_asked not_judged not_proven notice null_ids
    objection of of_path of_the_user offered on_form on_oddity on_sample on_visit only_http_sse only_modern only_newer
    open_to_all open_uses or_login other_method over_unless own_alone own_headers own_params paint pass_on passed_on pasted
    patience patiently perform plainly play poll_roused_step pong primes_streams prints prompted prove_again published put_aside
    put_back put_together question_timeout quiet_start rang rearrange refresh_in_turn remembered renew_ahead renewed rest_until
    rests revive rough rouse says_goodbye scrub secured see_log seen_from serve_lines session_lives set_told settled
    shakes_no_hands shelve side_by_side silent since_1970 sleeper sort_out sort_out_tools speaking speaks_for_us spent spoil
    spoke spoken stamps stands_alone starts_over stays stays_put still_there strays stream_after suit take_aside take_down
    take_in take_out take_turn taken takes_hang_up takes_lists tell tell_all tell_known tell_on tell_roots_changed tell_some
    telling telling_terms tells_legacy ten tend to_its_end told too_much took touches try_out turn_into turned twenty unawaited
    undeclared_is_error under_way undisturbed unless_the_peer_left unremembered until_stopped until_stream untold us useless
    visit_first void_promises wanting wanting_login warming warn_of_what_stays_behind was_answered watch_inside welcome
    while_held why_nothing_was_spoken wind_down wish with_given";

/// File names that the glossary replaces, without `.rs`.
const RETIRED_FILES: &str = "
    abandoned absent admit ahead aim answer answering answers arriving asked asking audience begin begun bell beyond_types book
    bury calling catalogue chatty closing connected connecting conversation cue cut declared delivery dense desk discard door
    edge ending eras erase exchange failing family feed flaw fuse gate gather general given_up guard guard_layer guarded hand
    head_timer heard held hub innermost interact judge keeper kept known known_tools library live lives lowered mark mirror
    mirrored nearest news no_guard no_keyring no_logins no_socket notation oddity offer offline old origins overheard pages
    pairs part pause person pieces pinned place places poke posted posting presence presented problem proofs published pump
    pushed question questions races reach reads refusal renew rooms rounds scene seen seldom serving shape shares shelf similar
    speech stage stall stamp starter strange sweep take taken tape telling together told tool_calls traffic trial trials turn
    typed unasked unchecked unremembered untold unvalidated using visit visits voice wait waiting watched watching welcome
    wording words written";

#[test]
fn a_quoted_line_and_toml_data_are_not_prose() {
    let quotes = [
        "whoever // quoted",
        "whoever # quoted",
        "whoever <!-- quoted -->",
    ];

    assert!(quotes.iter().all(|line| prose("a.rs", line).is_empty()));
    assert_eq!(prose("a.toml", "find = \"whoever\""), "");
    assert_eq!(prose("a.toml", "# whoever"), "# whoever");
    assert_eq!(prose("a.py", " whoever"), "whoever");
}

#[test]
fn no_definition_has_a_retired_name() {
    let mut violations = Vec::new();
    let (types, functions) = (list(RETIRED_TYPES), list(RETIRED_FUNCTIONS));
    let files = list(RETIRED_FILES);
    for file in source::texts(&["rs"]) {
        let stem = file
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        if files.contains(stem) {
            violations.push(file.path.clone());
        }
        let code = source::without_comments_and_strings(&file.text);
        let tokens = source::tokens(&code);
        for pair in tokens.windows(2) {
            let retired = match pair[0].text {
                "struct" | "enum" | "trait" | "type" => &types,
                "fn" => &functions,
                _ => continue,
            };
            if retired.contains(pair[1].text) {
                violations.push(format!("{}:{}: {}", file.path, pair[1].line, pair[1].text));
            }
        }
    }

    let count = violations.len();
    assert!(
        violations.is_empty(),
        "{count} retired names:\n{}",
        violations.join("\n")
    );
}

#[test]
fn no_text_has_a_retired_phrase() {
    let mut violations = Vec::new();
    for file in prose_files() {
        for (index, line) in file.text.lines().enumerate() {
            for phrase in style::retired_phrases(prose(&file.path, line)) {
                violations.push(format!("{}:{}: {phrase}", file.path, index + 1));
            }
        }
    }

    let count = violations.len();
    assert!(
        violations.is_empty(),
        "{count} retired phrases:\n{}",
        violations.join("\n")
    );
}

fn list(names: &str) -> HashSet<&str> {
    names.split_whitespace().collect()
}
