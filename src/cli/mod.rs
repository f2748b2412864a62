//! The command line: one verb per file, each with its arguments (the doc comment is the manual), its
//! request and its printing. Verbs reach the daemon over its socket alone; what comes from a slot is printed through
//! `out`, which makes it harmless for a terminal.

use crate::core::model::envelope;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

mod address;
mod ansi;
mod columns;
mod complete;
mod consent;
mod context;
mod dialog;
mod done;
mod duration;
mod failure;
mod flags;
mod follow;
mod help;
mod message;
mod out;
mod overview;
mod reach;
mod reader;
mod reconnect;
mod redrawn;
mod rehearse;
mod sanitise;
mod signals;
mod slots;
mod states;
mod svg;
mod table;
mod tail;
mod target;

mod adopt;
mod ask;
mod attach;
mod audit;
mod bare;
mod cancel;
mod clear;
mod close;
mod completions;
mod config;
mod confirm;
mod cost;
mod demo;
mod disk_limit;
mod doctor;
mod down;
mod events;
mod exec;
mod history;
mod info;
mod init;
mod interrupt;
mod keys;
mod link;
mod logs;
mod man;
mod mcp;
mod metrics;
mod notify;
mod output;
mod pending;
mod policy;
mod reload;
mod replay;
mod request;
mod resize;
mod restart;
mod run;
mod screen;
mod search;
mod send;
mod session;
mod sessions;
mod settle;
mod setup;
mod signal;
mod spawn;
mod start;
mod stats;
mod status;
mod steps;
mod stop;
mod submit;
mod task;
mod tasks;
mod timeline;
mod top;
mod trust;
mod type_line;
mod uninstall;
mod up;
mod upgrade;
mod version;
mod wait;
mod watch;
mod web;
mod why;
mod write;

use context::Context;
use failure::Failure;
use flags::Flags;

/// Runs several Claude Code sessions ("slots"), answers their permission prompts by rules that you write, and asks you
/// for the rest.
#[derive(Debug, Parser)]
#[command(
    name = "missiond",
    version,
    after_help = EXAMPLES,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Verb>,
    #[command(flatten)]
    flags: Flags,
}

const EXAMPLES: &str = "\
Without a command, on a terminal: what every slot does if a daemon runs, else how to begin. With -c, or not on a
terminal: the same as `missiond run`.

Examples:
  missiond init                        write a first config
  missiond up                          start the daemon and its slots
  missiond top                         all slots on one screen; answer there
  missiond status                      what every slot does, those that need you first
  missiond send coder 'Run the tests'  send a message and print the answer
  missiond pending                     what the slots ask you
  missiond confirm coder yes           answer it
  missiond logs coder -f               follow a slot's log
  missiond attach coder                its live terminal; ctrl-q detaches

Exit codes: 0 done, 1 it failed, 2 wrong usage, config or name, 3 no daemon, 4 refused,
5 a person is needed, 6 turned away since the daemon is full, 124 timed out, 130 Ctrl-C ended the waiting.";

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::Run),
    Up(up::UpArgs),
    Down(down::Down),
    Upgrade(upgrade::Upgrade),
    Status(status::Status),
    Top(top::Top),
    Start(start::Start),
    Stop(stop::Stop),
    #[command(alias = "respawn")]
    Restart(restart::Restart),
    Adopt(adopt::Adopt),
    Send(send::Send),
    Task(task::TaskArgs),
    Session(session::SessionArgs),
    Pending(pending::Pending),
    Confirm(confirm::Confirm),
    Interrupt(interrupt::Interrupt),
    Reload(reload::Reload),
    Notify(notify::Notify),
    Stats(stats::Stats),
    Metrics(metrics::Metrics),
    Screen(screen::ScreenArgs),
    History(history::History),
    Search(search::SearchArgs),
    Logs(logs::Logs),
    Audit(audit::AuditArgs),
    Events(events::Events),
    Wait(wait::Wait),
    Write(write::Write),
    Attach(attach::Attach),
    Keys(keys::KeysArgs),
    Why(why::Why),
    Replay(replay::ReplayArgs),
    Timeline(timeline::TimelineArgs),
    Cost(cost::CostArgs),
    Link(link::LinkArgs),
    Config(config::ConfigArgs),
    Policy(policy::PolicyArgs),
    Demo(demo::Demo),
    Init(init::Init),
    Setup(setup::Setup),
    Uninstall(uninstall::Uninstall),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
    Version(version::VersionArgs),
    Mcp(mcp::Mcp),
    Web(web::Web),
    // What stands below `task` and `session` now, under the names that it had before.
    #[command(hide = true)]
    Ask(ask::AskArgs),
    #[command(hide = true)]
    Submit(submit::Submit),
    #[command(hide = true)]
    Tasks(tasks::Tasks),
    #[command(hide = true)]
    Cancel(cancel::Cancel),
    #[command(hide = true)]
    Spawn(spawn::Spawn),
    #[command(hide = true)]
    Sessions(sessions::SessionsArgs),
    #[command(hide = true)]
    Info(info::Info),
    #[command(hide = true)]
    Type(type_line::Type),
    #[command(hide = true)]
    Resize(resize::Resize),
    #[command(hide = true)]
    Signal(signal::Signal),
    #[command(hide = true)]
    Close(close::Close),
    #[command(hide = true)]
    Output(output::OutputArgs),
    #[command(hide = true)]
    Clear(clear::Clear),
    #[command(hide = true)]
    Follow(watch::Follow),
    #[command(hide = true)]
    Exec(exec::Exec),
}

/// The whole program for everything that is typed by people.
pub fn main() -> ExitCode {
    complete::note_shell();
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    cli.flags.apply_colour();
    let context = Context::new(cli.flags);
    let json = context.out.json;
    let outcome = match cli.command {
        Some(command) => dispatch(command, &context),
        None => bare::run(&context),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let failure = failure.addressed(&context.target());
            failure.report(json);
            ExitCode::from(failure.blame.exit_code())
        }
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let matches = help::with_pages(Cli::command()).try_get_matches()?;
    match matches.subcommand_name() {
        Some(door @ ("mcp" | "web")) => envelope::speak_as(door),
        _ => envelope::speak_as(&format!("cli {}", verb_of(&matches))),
    }
    Cli::from_arg_matches(&matches)
}

/// The verb that was typed: the last word of it, so that `session spawn` is `spawn` as before.
fn verb_of(matches: &clap::ArgMatches) -> &str {
    match matches.subcommand() {
        Some((group @ ("session" | "task"), below)) => below.subcommand_name().unwrap_or(group),
        Some((verb, _)) => verb,
        None => "",
    }
}

/// Help and version are answers; anything else is wrong usage, in JSON where the line asked for it.
fn misused(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let (message, next) = text.split_once("\n\n").unwrap_or((&text, ""));
        let message = message.trim_start_matches("error: ").trim();
        let failure = Failure::usage(message).next(next.trim());
        failure.report(true);
        return ExitCode::from(failure.blame.exit_code());
    }
    // A reader that is gone wants no help text.
    let _ = error.print();
    ExitCode::from(u8::from(error.use_stderr()) * 2)
}

/// Whether it runs for as long as somebody wants, and may wait for a disk as long as that takes.
fn stays(command: &Verb) -> bool {
    matches!(
        command,
        Verb::Run(_) | Verb::Mcp(_) | Verb::Web(_) | Verb::Top(_) | Verb::Attach(_) | Verb::Demo(_)
    )
}

fn dispatch(command: Verb, context: &Context) -> Result<(), Failure> {
    if !stays(&command) {
        disk_limit::start(context.out.json);
    }
    macro_rules! run {
        (alone: $($alone:ident),+; on_a_runtime: $($verb:ident),+ $(,)?) => {
            match command {
                $(Verb::$alone(verb) => verb.run(context),)+
                $(Verb::$verb(verb) => context::block_on(verb.run(context)),)+
            }
        };
    }
    run! {
        // These need no runtime of ours: the daemon has its own.
        alone:
            Run, Completions, Man, Replay, Config, Policy;
        on_a_runtime:
            Init, Setup, Uninstall, Up, Down, Upgrade, Status, Top, Start, Stop, Restart, Adopt, Send, Ask, Submit, Task, Session,
            Tasks, Cancel, Pending, Confirm, Interrupt, Reload, Notify, Stats, Metrics, Screen, History,
            Search, Logs, Audit, Events, Attach, Wait, Write, Keys, Spawn, Sessions, Info, Type,
            Resize, Signal, Close, Output, Clear, Follow, Exec, Why, Timeline, Cost, Link, Demo, Doctor,
            Mcp, Web, Version,
    }
}
