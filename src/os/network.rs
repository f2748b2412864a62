//! A program's network traffic, if the kernel counts it. It counts per network namespace and not per process, so only a
//! program in its own namespace has its own figures.

use crate::core::model::Traffic;

/// Why there are no figures.
pub const NOT_COUNTED: &str = "not counted: the kernel counts network traffic for a network namespace, not for a process, and this \
     session shares the daemon's namespace";

/// The traffic of a process's own namespace; `None` if it shares the daemon's, or is gone.
pub fn traffic_of(pid: u32) -> Option<Traffic> {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let (own, ours) = (namespace(&pid.to_string())?, namespace("self")?);
    if own == ours {
        return None;
    }
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    Some(in_table(&table))
}

/// Sums the kernel's table: `eth0: RECEIVED_BYTES and seven more, SENT_BYTES and seven more`, below two lines of
/// headings.
fn in_table(table: &str) -> Traffic {
    let mut sum = Traffic::default();
    for line in table.lines() {
        let Some((interface, figures)) = line.split_once(':') else {
            continue;
        };
        if interface.trim() == "lo" {
            continue;
        }
        let mut figures = figures.split_ascii_whitespace();
        let mut figure = |skipped| figures.nth(skipped)?.parse::<u64>().ok();
        sum.received += figure(0).unwrap_or_default();
        sum.sent += figure(7).unwrap_or_default();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_summed_without_the_loopback() {
        let table = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  999999     100    0    0    0     0          0         0   999999     100    0    0    0     0       0          0
  eth0:    1500      10    0    0    0     0          0         0      700       5    0    0    0     0       0          0
 wlan0:      20       1    0    0    0     0          0         0        3       1    0    0    0     0       0          0
";
        let (received, sent) = (1520, 703);
        assert_eq!(in_table(table), Traffic { received, sent });
        assert_eq!(in_table(""), Traffic::default());
    }

    #[test]
    fn a_process_in_our_own_namespace_has_no_figures_of_its_own() {
        assert_eq!(traffic_of(std::process::id()), None);
        assert_eq!(traffic_of(u32::MAX - 7), None);
    }
}
