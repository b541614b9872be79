//! The words of the code base: no retired names, no retired phrases, and figures about names and files within their targets.
//!
//! `ARCHITECTURE.md` has the glossary. A line that must quote a retired word, such as text sent by a peer or a published option,
//! ends with the comment `quoted`.

use turnbuckle_arch_tests::{
    source,
    style::{self, SourceText, StyleReport},
};

/// Files that hold the lists themselves.
const LISTS: [&str; 2] = [
    "arch-tests/src/style.rs",
    "arch-tests/tests/it/vocabulary.rs",
];

fn prose_files() -> Vec<SourceText> {
    let mut files = source::texts(&["rs", "md", "py"]);
    files.retain(|file| !LISTS.contains(&file.path.as_str()));
    assert!(files.len() > 500, "only {} files were found", files.len());
    files
}

/// Returns the non-test files under `crates/`.
fn library_files() -> Vec<SourceText> {
    let mut files = source::texts(&["rs"]);
    files.retain(|file| file.path.starts_with("crates/") && !is_test(&file.path));
    files
}

fn is_test(path: &str) -> bool {
    const TEST_FOLDERS: [&str; 5] = ["test", "tests", "benches", "fuzz", "examples"];
    path.ends_with("tests.rs") || path.split('/').any(|part| TEST_FOLDERS.contains(&part))
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
            5.0,
        ),
        (
            "doc comments that begin with a question word, %",
            report.question_openings(),
            5.0,
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
    Acceptable Agreed Alarm Ambiguous Answer AnswerForNobody Around Arrival Arrived Arriving AskError Asked Asking Audience
    BadAnswer BadMark Begun Bell Beside Book Broken Buried Came CannotShow Carrier Chatty Complaint Completing Connected
    Consent Course Cue Deaf Denied Desk Discovered Door Ears EraChoice EraMemory Elicited Ended Ending Exchange Fault Feed Filled
    Finding Flaw Forgotten Found Gate Gates Gather Gathered GeneralStreams GivenUp Gone Goodbye Grave Greeting Guarded
    GuardLayer Habits HalfSent Hand HeadTimer Heard Hearing Held Hidden Holding HttpFacts Hub Huge Innermost Interact Journals
    Keeper Kept Known KnownItem KnownProject KnownTool KnownTools Lacking Leash Leaving LeftOut Library Life Listening Live Lives
    Look Looked Looks Lost Lowered Maker Mark MirroredParam Needs News NotAsPinned NotChecked Nothing Oddity OldHttp
    OwnRandomness Pace Patience Person Place PlaceStats Places Play Played Poked Posted Posting Presence Presences Present
    Presented Problem Promise Pump PutAway Question Questions Readable Receipt Refusal Refused Renewals Rounds Ruling Said
    SampleRequest Scene Seat Seating Seen Seldom Settled Share Shares Shelf Shelves Shown Sight Speech Stage Starter Stuck
    Take Taken Takes Talk Tape TargetWord Telling Told TooEarly Travelling Trial Trials Trouble Turn Unanswered Unaskable
    Unasked Unfit Unmet Unreadable Unsealed Unsendable UnwelcomeRequest Verdict Visit VisitRequest Visited Visits Voice Volume
    Volumes Walked Wanted Warming Way Ways Welcome Wish Written";

/// Function names that the glossary replaces.
const RETIRED_FUNCTIONS: &str = "
    admit advice agreed_now all_over allow_turn announces_visits another_look answer_at_once ask ask_anew ask_further
    ask_in_rounds ask_once asked asked_too_often asking asks_first asks_more asks_or_fails begin_properly begins_anew blame
    body_budget briefly broken_promise bury bury_replaced by_hand call_as_known called_as_task_after came can_explode clear_away
    comes_back complain concerns connect_as connect_lines cure embed_soon expect_question expect_silence first_question
    fitting five forgets fresh_id freshen gently give_back give_input go_on go_on_as_task going_along goodbye greet hand_on
    hand_out hand_over hang_up has_answered hear held hundred in_rounds introduced introduction is_clock is_flooded is_for_good
    is_forgotten is_mail is_moment is_nothing is_offered is_resting is_silent is_taken_in is_told is_too_much judge
    judge_request keep_as kept knock known_as knows lacks_its_end leads_away leads_elsewhere learn_tools let_go let_in
    listed_anew look_at look_every look_everywhere look_lately lowered may_announce may_ask may_be_asked may_be_older
    may_have_session may_look_like_another met_another mirrored most_callers most_telling names_us needed nobody
    nobody_listens nobody_registers none_fits not_asked not_judged objection of of_path of_the_user offered on_form on_oddity
    on_sample on_visit only_modern open_to_all or_login over_unless own_alone passed_on pasted patience patiently perform
    plainly poll_roused_step pong primes_streams put_aside put_back put_together question_timeout quiet_start rang rearrange
    refresh_in_turn renew_ahead rest_until rests revive rouse says_goodbye scrub see_log seen_from sleeper serve_lines
    session_lives set_told settled shakes_no_hands shelve side_by_side sort_out sort_out_tools speaking speaks_for_us spoke
    stands_alone starts_over stays stays_put still_there strays take_aside take_turn takes_hang_up tell tell_all tell_known
    tell_on tell_roots_changed tell_some telling_terms tells_legacy ten tend to_its_end told too_much took try_out turned
    twenty unawaited undeclared_is_error under_way undisturbed unless_the_peer_left unremembered untold useless visit_first
    void_promises wanting wanting_login warn_of_what_stays_behind was_answered watch_inside while_held
    why_nothing_was_spoken wind_down wish with_given";

/// File names that the glossary replaces, without `.rs`.
const RETIRED_FILES: &str = "
    abandoned absent admit ahead aim answer answering answers arriving asked asking audience begun bell beyond_types book bury
    catalogue closing connected connecting conversation cue declared delivery dense desk discard door edge ending eras erase
    exchange family feed flaw fuse gate gather general given_up guard guard_layer guarded hand head_timer held hub innermost
    interact judge keeper kept known known_tools library live lives lowered mark mirror mirrored nearest news no_keyring
    no_logins notation oddity offer overheard part pause person pieces place places poke posted posting presence presented
    problem proofs published pump pushed question questions races refusal rooms rounds scene seldom serving shares shelf
    similar speech stall starter tape telling together told trial trials turn typed unasked unchecked unremembered untold
    unvalidated visit visits voice waiting watching words written";

#[test]
fn no_definition_has_a_retired_name() {
    let mut violations = Vec::new();
    for file in source::texts(&["rs"]) {
        let stem = file
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        if list(RETIRED_FILES).any(|retired| retired == stem) {
            violations.push(file.path.clone());
        }
        let code = source::without_comments_and_strings(&file.text);
        let tokens = source::tokens(&code);
        for pair in tokens.windows(2) {
            let retired = match pair[0].text {
                "struct" | "enum" | "trait" | "type" => RETIRED_TYPES,
                "fn" => RETIRED_FUNCTIONS,
                _ => continue,
            };
            if list(retired).any(|name| name == pair[1].text) {
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
            if line.trim_end().ends_with("// quoted") {
                continue;
            }
            for phrase in style::retired_phrases(line) {
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

fn list(names: &str) -> impl Iterator<Item = &str> {
    names.split_whitespace()
}
