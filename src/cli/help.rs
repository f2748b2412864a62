//! Two lengths of help: `-h` is one screen with what is used most, `--help` is the manual.

use crate::cli::overview;
use clap::Command;

/// The most examples that `-h` shows.
const FEW: usize = 3;
/// The lines of a usual terminal, without the one for the next command.
const SCREEN: usize = 23;

/// The command with its pages, if this line may ask for them: the one of the program itself names all verbs, or those to begin
/// with. Making them takes longer than all else that a short command does.
pub fn with_pages(command: Command) -> Command {
    let line: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if !line.iter().any(|word| may_ask(word)) {
        return command;
    }
    let has = |flag: &str| line.iter().any(|word| word == flag);
    // Before the command is built: clap keeps the places of arguments from then on.
    let command = match has("-h") {
        true => shortened(command, &line),
        false => command,
    };
    match has("--help") {
        true => overview::all(command),
        false => overview::first(command),
    }
}

/// Whether a word can be a wish for help: the verb, the flag, or short flags in one word.
fn may_ask(word: &str) -> bool {
    let is_short = word.starts_with('-') && !word.starts_with("--");
    word == "help" || word == "--help" || is_short && word.contains('h')
}

/// The command whose verb in this line has a help that fits on a screen: first it has fewer examples, then the options that
/// are named last go.
fn shortened(command: Command, line: &[String]) -> Command {
    let path = verb_in(&command, line);
    let Some(verb) = below(&command, &path).filter(|_| !path.is_empty()) else {
        return command;
    };
    let options = verb.get_opts().filter(|option| !option.is_hide_set());
    let options: Vec<clap::Id> = options.map(|option| option.get_id().clone()).collect();
    let steps = (1..=FEW).rev().map(|examples| (examples, options.len()));
    let steps = steps.chain((0..options.len()).rev().map(|shown| (1, shown)));
    let mut shorter = command.clone();
    for (examples, shown) in steps {
        let hidden = &options[shown..];
        shorter = changed(command.clone(), &path, &|verb| {
            let verb = with_examples(verb, examples);
            hidden.iter().fold(verb, |verb, option| {
                verb.mut_arg(option, |option| option.hide_short_help(true))
            })
        });
        if fits(&shorter, &path) {
            break;
        }
    }
    shorter
}

/// The names of the verb that a line begins with, behind flags.
fn verb_in(command: &Command, line: &[String]) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let mut at = command;
    for word in line.iter().filter(|word| !word.starts_with('-')) {
        match at.find_subcommand(word) {
            Some(below) => {
                path.push(below.get_name().to_owned());
                at = below;
            }
            // Before the verb it is the value of a flag.
            None if path.is_empty() => {}
            None => break,
        }
    }
    path
}

fn below<'a>(command: &'a Command, path: &[String]) -> Option<&'a Command> {
    let mut names = path.iter();
    names.try_fold(command, |command, name| command.find_subcommand(name))
}

fn changed(command: Command, path: &[String], change: &dyn Fn(Command) -> Command) -> Command {
    match path {
        [] => change(command),
        [name, rest @ ..] => command.mut_subcommand(name, |below| changed(below, rest, change)),
    }
}

fn fits(command: &Command, path: &[String]) -> bool {
    let mut built = command.clone();
    built.build();
    let help = below(&built, path).map(|verb| verb.clone().render_help().to_string());
    help.is_none_or(|help| help.lines().count() <= SCREEN)
}

fn with_examples(verb: Command, most: usize) -> Command {
    let Some(all) = verb.get_after_help().cloned() else {
        return verb;
    };
    let text = all.to_string();
    let few: Vec<&str> = text.lines().take(1 + most).collect();
    verb.after_help(few.join("\n")).after_long_help(all)
}
