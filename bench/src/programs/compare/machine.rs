//! The machine of the measurements.

use turnbuckle_bench::cores::Cores;

/// Returns the processor, its cores, the memory and the system, in a line.
pub(crate) fn describe(places: Cores) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = if places.are_apart() {
        format!(
            "{} cores, servers on one and the driver on another",
            online(&read("/proc/cpuinfo"))
        )
    } else {
        format!("{cores} core")
    };
    format!(
        "{} ({cores}), {} GiB of memory, Linux {}",
        field(&read("/proc/cpuinfo"), "model name").unwrap_or("an unnamed processor"),
        gibibytes(&read("/proc/meminfo")),
        read("/proc/sys/kernel/osrelease").trim_end(),
    )
}

fn online(cpuinfo: &str) -> usize {
    let is_core = |line: &&str| line.starts_with("processor");
    cpuinfo.lines().filter(is_core).count()
}

fn gibibytes(meminfo: &str) -> u64 {
    let total = field(meminfo, "MemTotal").and_then(|value| value.split_whitespace().next());
    let kibibytes: u64 = total.and_then(|value| value.parse().ok()).unwrap_or(0);
    (kibibytes + (1 << 19)) >> 20
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}
