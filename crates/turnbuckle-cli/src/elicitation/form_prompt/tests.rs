use serde_json::json;
use turnbuckle_protocol::types::{
    ElicitFormParams,
    elicitation::{
        BooleanSchema, EnumOption, MultiSelectSchema, NumberSchema, SingleSelectSchema,
        StringFormat, StringSchema,
    },
};

use super::*;

fn trip() -> ElicitFormParams {
    let schema = ElicitSchema::new()
        .required(
            "city",
            StringSchema::new()
                .title("City")
                .description("Where to?")
                .min_length(2u64),
        )
        .required(
            "days",
            NumberSchema::integer()
                .minimum(1.0)
                .maximum(7.0)
                .default(3.0),
        )
        .optional(
            "unit",
            SingleSelectSchema::new([
                EnumOption::titled("C", "Celsius"),
                EnumOption::titled("F", "Fahrenheit"),
            ]),
        )
        .optional(
            "tags",
            MultiSelectSchema::new(["sun", "rain"]).max_items(1u64),
        )
        .optional("loud", BooleanSchema::new().default(false));
    ElicitFormParams::new("Plan the trip\u{1b}[2J\nplease", schema)
}

fn answer(form: &ElicitFormParams, typed: &str) -> (ElicitResult, String) {
    let mut shown = Vec::new();
    let mut reader = typed.as_bytes();
    let result = fill_form(
        "weather",
        &form.message,
        &form.requested_schema,
        &mut Prompter::new(&mut reader, &mut shown),
    )
    .unwrap();
    (result, style::strip(&String::from_utf8(shown).unwrap()))
}

#[test]
fn a_form_is_prompted_field_by_field() {
    let (result, shown) = answer(&trip(), "O\nOslo\n9\n\n2\n1,2\n1\ny\nyes\n");

    assert_eq!(result.action, ElicitAction::Accept);
    assert_eq!(
        Value::Object(result.content.unwrap()),
        json!({"city": "Oslo", "days": 3, "unit": "F", "tags": ["sun"], "loud": true})
    );
    // Typed text is not echoed, so the newlines after the prompts are missing.
    insta::assert_snapshot!(shown, @r"
    weather requests input:
    │ Plan the trip\u{1b}[2J
    │ please
    Press Enter to accept the value in brackets. Enter `:decline` to decline, press Ctrl-D to cancel.

    City (text)
    │ Where to?
    >   enter at least 2 characters
    > 
    days (integer, 1 to 7)
    [3] >   expected: integer, 1 to 7
    [3] > 
    unit (number of an option, optional)
      1) Celsius
      2) Fahrenheit
    > 
    tags (numbers of options, 1 or less, separated by commas, optional)
      1) sun
      2) rain
    >   expected: numbers of options, 1 or less, separated by commas
    > 
    loud (yes or no, optional)
    [no] > 
      city = Oslo
      days = 3
      unit = F
      tags = sun
      loud = yes
    Send it? [y]es, [e]dit, [n]o:
    ");
}

#[test]
fn a_form_can_be_edited_before_it_is_sent() {
    let form = ElicitFormParams::new(
        "Who?",
        ElicitSchema::new().required("name", StringSchema::new()),
    );

    let (result, shown) = answer(&form, "Ad\ne\nAda\nmaybe\ny\n");

    assert_eq!(
        Value::Object(result.content.unwrap()),
        json!({"name": "Ada"})
    );
    assert!(shown.contains("[Ad] > "), "{shown}");
}

#[test]
fn decline_and_cancel_differ() {
    let form = ElicitFormParams::new(
        "Who?",
        ElicitSchema::new().required("name", StringSchema::new()),
    );
    let action = |typed| answer(&form, typed).0.action;

    assert_eq!(action("Ada\nn\n"), ElicitAction::Decline);
    assert_eq!(action(":decline\n"), ElicitAction::Decline);
    assert_eq!(action(":cancel\n"), ElicitAction::Cancel);
    assert_eq!(action("Ada\n"), ElicitAction::Cancel);
    assert_eq!(action(""), ElicitAction::Cancel);
}

#[test]
fn formats_are_checked() {
    let fits = |format, text| parse_field(&StringSchema::new().format(format).into(), text).is_ok();

    assert!(fits(StringFormat::Email, "ada@example.com"));
    assert!(!fits(StringFormat::Email, "ada"));
    assert!(!fits(StringFormat::Email, "@example.com"));
    assert!(fits(StringFormat::Uri, "urn:isbn:1"));
    assert!(!fits(StringFormat::Uri, "example.com"));
    assert!(fits(StringFormat::Date, "2028-02-29"));
    assert!(!fits(StringFormat::Date, "2027-02-29"));
    assert!(!fits(StringFormat::Date, "2027-2-9"));
    assert!(fits(StringFormat::DateTime, "2026-01-31T12:00:00Z"));
    assert!(fits(
        StringFormat::DateTime,
        "2026-01-31T12:00:00.123+01:00"
    ));
    assert!(!fits(StringFormat::DateTime, "2026-01-31 12:00"));
    assert!(!fits(StringFormat::DateTime, "2026-01-31T25:00:00Z"));
}

#[test]
fn numbers_are_checked() {
    let read = |field: NumberSchema, text| parse_field(&field.into(), text);

    assert_eq!(read(NumberSchema::integer(), "3"), Ok(json!(3)));
    assert_eq!(read(NumberSchema::new(), "0.5"), Ok(json!(0.5)));
    assert!(read(NumberSchema::integer(), "0.5").is_err());
    assert!(read(NumberSchema::new(), "inf").is_err());
    assert!(read(NumberSchema::new(), "NaN").is_err());
    insta::assert_snapshot!(read(NumberSchema::new().minimum(1.0), "0").unwrap_err(), @"expected: number, 1 or more");
}

#[test]
fn an_invalid_default_is_not_used() {
    let default = |field: PrimitiveSchema| valid_default(&field);

    let number = NumberSchema::integer().minimum(1.0);
    assert_eq!(default(number.clone().default(0.0).into()), None);
    assert_eq!(default(number.default(2.0).into()), Some(json!(2)));
    assert_eq!(
        default(StringSchema::new().min_length(2u64).default("O").into()),
        None
    );
    let one = SingleSelectSchema::new(["2", "1"]);
    assert_eq!(default(one.clone().default("3").into()), None);
    assert_eq!(default(one.default("1").into()), Some(json!("1")));
    let some = MultiSelectSchema::new(["sun", "rain"]).max_items(1u64);
    assert_eq!(
        default(
            some.clone()
                .default(["sun".to_owned(), "rain".to_owned()])
                .into()
        ),
        None
    );
    assert_eq!(
        default(some.default(["sun".to_owned()]).into()),
        Some(json!(["sun"]))
    );
}
