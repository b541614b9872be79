//! Methods, status codes and headers of HTTP: not quite right.

use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![]
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
