//! What stands where: a row for each area, a column for each run.

use super::{Grade, Report, Run};
use crate::rule::Area;

/// What came of an area.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The area.
    pub area: Area,
    /// What came of it in each run.
    pub cells: Vec<Counts>,
}

/// How many rulings came down to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([usize; Grade::ALL.len()]);

impl Report {
    /// Returns a row for each area that was looked at.
    pub fn matrix(&self) -> Vec<Row> {
        let row = |&area: &Area| Row {
            area,
            cells: self.runs.iter().map(|run| Counts::of(run, area)).collect(),
        };
        let rows = Area::ALL.iter().map(row);
        rows.filter(|row| row.cells.iter().any(|cell| *cell != Counts::default()))
            .collect()
    }
}

impl Counts {
    fn of(run: &Run, area: Area) -> Self {
        let mut counts = Self::default();
        for ruling in run.rulings.iter().filter(|ruling| ruling.rule.area == area) {
            counts.0[ruling.grade() as usize] += 1;
        }
        counts
    }

    /// Returns how many came down to a grade.
    pub fn of_grade(&self, grade: Grade) -> usize {
        self.0[grade as usize]
    }

    /// Returns what a cell tells: what is broken, what is kept and what is not tested; what does not apply only if there is
    /// nothing else to say.
    pub fn told(&self) -> Vec<(Grade, usize)> {
        const ORDER: [Grade; 5] = [
            Grade::Fail,
            Grade::Warn,
            Grade::Advice,
            Grade::Pass,
            Grade::NotTested,
        ];
        let counted = |grade: Grade| (grade, self.of_grade(grade));
        let mut told: Vec<_> = ORDER.into_iter().map(counted).collect();
        told.retain(|(_, count)| *count > 0);
        if told.is_empty() {
            told.push(counted(Grade::NotApplicable));
            told.retain(|(_, count)| *count > 0);
        }
        told
    }

    /// Returns what is worst in it.
    pub fn worst(&self) -> Option<Grade> {
        self.told().first().map(|(grade, _)| *grade)
    }
}
