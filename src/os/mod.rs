//! What the operating system offers: files, paths, sockets, processes, control groups. It depends only on the core.

pub mod allocator;
pub mod blocking;
pub mod cgroup;
pub mod daemon_lock;
pub mod directory_watch;
pub mod disk_wait;
pub mod files;
pub mod headroom;
pub mod local_time;
pub mod log_file;
pub mod network;
pub mod orphans;
pub mod outbox;
pub mod paths;
pub mod pause;
pub mod peer;
pub mod process_stat;
pub mod random;
pub mod real_paths;
pub mod remedy;
pub mod socket;
pub mod tcp_peer;
pub mod trusted_file;
pub mod usage;
pub mod worktree;
pub mod write_queue;
