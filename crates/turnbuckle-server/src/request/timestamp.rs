//! Timestamps. `docs/decisions/timestamps.md` has the reason for formatting them by hand.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use turnbuckle_protocol::Principal;

/// Formats a time in UTC with milliseconds.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis(),
    )
}

/// Returns the date that is `days` days after 1970-01-01.
///
/// Years are counted from 1 March of the year 0, so that the leap day is the last day of a year; every 400 years have the same number of days.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, is_next_year) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + is_next_year, month, day_of_month)
}

/// Returns the time since the Unix epoch.
pub(crate) fn unix_time() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns the time until the credentials of a caller expire, if they do.
pub(crate) fn credential_lifetime(caller: Option<&Principal>) -> Option<Duration> {
    let expires_at = Duration::from_secs(caller?.expires_at?);
    Some(expires_at.saturating_sub(unix_time()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let at = |seconds, millis| {
            rfc3339(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis))
        };
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_785_196_799, 999), "2026-07-27T23:59:59.999Z");
        assert_eq!(at(1_798_761_600, 0), "2027-01-01T00:00:00.000Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
        assert_eq!(at(253_402_300_799, 0), "9999-12-31T23:59:59.000Z");
    }

    #[test]
    fn every_day_of_400_years_follows_the_one_before() {
        let mut before = civil(0);
        for days in 1..=146_097 {
            let (year, month, day) = civil(days);
            let is_next_day = (year, month, day) == (before.0, before.1, before.2 + 1);
            let is_next_month = (year, month, day) == (before.0, before.1 + 1, 1);
            let is_next_year = (year, month, day) == (before.0 + 1, 1, 1);
            assert!(
                is_next_day
                    || (before.2 >= 28 && is_next_month)
                    || (before.1 == 12 && is_next_year),
                "{days}"
            );
            before = (year, month, day);
        }
        assert_eq!(before, (2370, 1, 1));
    }
}
