//! Calls over pipes: sequential, and with many in flight.

use std::time::{Duration, Instant};

use turnbuckle_bench::{Failure, cores::Cores, message::Era};

use crate::programs::compare::{
    figure::{Figure, Goal, Metric, Sample},
    peer::{Ability, Peer},
    pipe::{Calls, Pipe},
};

const WARM_UP: Duration = Duration::from_millis(200);
const TIME: Duration = Duration::from_millis(800);
const BYTES: usize = 50;

/// Returns every figure of this group.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let mut figures: Vec<Box<dyn Figure>> = Vec::new();
    for in_flight in [1, 64] {
        for era in [Era::Modern, Era::Legacy] {
            figures.push(Box::new(Echo { era, in_flight }));
        }
    }
    figures
}

/// `echo`, with this many calls in flight.
#[derive(Clone, Copy, Debug)]
struct Echo {
    era: Era,
    in_flight: usize,
}

impl Figure for Echo {
    fn group(&self) -> &'static str {
        "stdio"
    }

    fn case(&self) -> String {
        let era = match self.era {
            Era::Modern => "modern",
            Era::Legacy => "session",
        };
        match self.in_flight {
            1 => format!("{era} echo {BYTES} B, one after the other"),
            many => format!("{era} echo {BYTES} B, {many} in flight"),
        }
    }

    fn goal(&self) -> Option<Goal> {
        (self.in_flight > 1).then_some(Goal::share(Metric::PerSecond, 0.6))
    }

    fn needs(&self) -> &'static [Ability] {
        match self.era {
            Era::Modern => &[Ability::Modern],
            Era::Legacy => &[Ability::Legacy],
        }
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let Some(mut command) = peer.stdio(&[]) else {
            return Ok(None);
        };
        let mut pipe = Pipe::open(&mut command, places)?;
        pipe.handshake(self.era)?;
        let mut calls = Calls::new(self.era, BYTES);
        calls.run(&mut pipe, self.in_flight, WARM_UP)?;
        let (cpu, began) = (pipe.cpu()?, Instant::now());
        let driven = calls.run(&mut pipe, self.in_flight, TIME)?;
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), pipe.cpu()? - cpu);
        let answered = driven.answered as f64;
        let mut sample = vec![
            (Metric::PerSecond, answered / seconds),
            (Metric::Cpu, cpu.as_secs_f64() * 1e6 / answered),
        ];
        // With many in flight a response waits for those before it: its latency only repeats the rate.
        if self.in_flight == 1 {
            sample.push((Metric::P50, driven.latency(0.5)));
            sample.push((Metric::P99, driven.latency(0.99)));
        }
        Ok(Some(sample))
    }
}
