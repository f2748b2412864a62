//! One rule: `Tool` or `Tool(specifier)`, as in Claude Code's own settings.

use super::ground::Ground;
use super::hosts::{HostPattern, host_of};
use super::paths::{PathPattern, Place};
use super::pattern::{CommandPattern, Wildcard};
use super::tools::{self, Access, Takes};
use super::{Decision, RuleRef};
use crate::core::text::diagnostic::nearest;
use std::path::Path;

/// How near to a slot a rule is defined. For rules on whole tools, only the nearest level counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Default,
    Role,
    Slot(String),
}

#[derive(Debug, Clone)]
pub struct Rule {
    pub decision: Decision,
    pub at: RuleRef,
    pub level: Level,
    meaning: Meaning,
}

/// What a rule matches.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// Every call of one tool, by its name.
    Tool(String),
    /// Every call of the tools whose names match.
    Tools(Wildcard),
    Command(CommandPattern),
    Path(Access, PathPattern),
    Host(HostPattern),
    Name {
        tool: &'static str,
        name: Wildcard,
    },
}

/// The syntax of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Claude Code's rules.
    Rules,
    /// Tool names with globs.
    ToolLists,
}

/// Why a text is not a valid rule, and how to correct it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRule {
    pub label: String,
    pub help: Option<String>,
}

fn bad<T>(label: impl Into<String>, help: impl Into<String>) -> Result<T, BadRule> {
    Err(BadRule {
        label: label.into(),
        help: Some(help.into()),
    })
}

impl Meaning {
    pub fn parse(
        text: &str,
        decision: Decision,
        dialect: Dialect,
        project: &Path,
    ) -> Result<Meaning, BadRule> {
        match text.split_once('(') {
            None => whole_tool(text, decision, dialect),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some("*") => whole_tool(name, decision, dialect),
                Some(specifier) if specifier.trim().is_empty() => bad(
                    "the brackets are empty",
                    format!("write `{name}` for every call of it, or say which ones"),
                ),
                Some(specifier) => specified(name, specifier, project),
                None => bad("the bracket is not closed", "write it as `Tool(specifier)`"),
            },
        }
    }

    /// Whether it names tools without a condition on their input.
    pub fn is_whole_tool(&self) -> bool {
        matches!(self, Meaning::Tool(_) | Meaning::Tools(_))
    }

    /// Whether it matches each tool that `other`, a rule on whole tools, matches.
    pub fn includes(&self, other: &Meaning) -> bool {
        match other {
            Meaning::Tool(name) => self.covers_tool(name),
            _ => self == other,
        }
    }

    pub fn covers_tool(&self, called: &str) -> bool {
        match self {
            Meaning::Tool(name) => tools::covers(name, called) || is_tool_of_server(name, called),
            Meaning::Tools(names) => names.matches(called),
            _ => false,
        }
    }
}

impl Rule {
    pub fn new(decision: Decision, at: RuleRef, level: Level, meaning: Meaning) -> Rule {
        Rule {
            decision,
            at,
            level,
            meaning,
        }
    }

    pub fn meaning(&self) -> &Meaning {
        &self.meaning
    }

    pub fn covers_tool(&self, called: &str) -> bool {
        self.meaning.covers_tool(called)
    }

    pub fn command(&self) -> Option<&CommandPattern> {
        match &self.meaning {
            Meaning::Command(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Whether the rule matches this place. An `allow` rule must match the path as written and its real path; for a restriction
    /// one of them is enough. A path that may not be read may not be changed either.
    pub fn covers_place(&self, access: Access, place: &Place, ground: &Ground<'_>) -> bool {
        let Meaning::Path(about, pattern) = &self.meaning else {
            return false;
        };
        let matches = |path: &Path| pattern.matches(path, ground);
        match self.decision {
            Decision::Allow => *about == access && place.ways().all(matches),
            Decision::Silent | Decision::Ask | Decision::Deny => {
                (*about == access || *about == Access::Read) && place.ways().any(matches)
            }
        }
    }

    /// Whether the rule matches everything in a directory that is searched, whatever the names are.
    pub fn covers_tree(&self, access: Access, place: &Place, ground: &Ground<'_>) -> bool {
        // A name that only a wildcard matches.
        const ANY: &str = "\u{fffd}";
        let covers = |below: &Place| self.covers_place(access, below, ground);
        let child = place.join(ANY);
        let within = [child.join(ANY), child];
        covers(place)
            || match self.decision {
                Decision::Allow => within.iter().all(covers),
                Decision::Silent | Decision::Ask | Decision::Deny => within.iter().any(covers),
            }
    }

    pub fn covers_host(&self, host: &str) -> bool {
        matches!(&self.meaning, Meaning::Host(pattern) if pattern.matches(host))
    }

    /// Whether the rule matches the thing that a tool is to use, by its name. A restriction also matches other spellings:
    /// `/deploy`, and `plugin:deploy`.
    pub fn covers_name(&self, called: &str, name: &str) -> bool {
        let Meaning::Name { tool, name: wanted } = &self.meaning else {
            return false;
        };
        let bare = name.trim().trim_start_matches('/');
        let own = bare.rsplit(':').next().unwrap_or_default();
        let first = own.split_whitespace().next().unwrap_or_default();
        let lower = first.to_lowercase();
        let others = [bare, own, first, &lower];
        let is_meant = || others.iter().any(|other| wanted.matches(other));
        tools::covers(tool, called)
            && (wanted.matches(name) || self.decision > Decision::Allow && is_meant())
    }

    pub fn says_the_same_as(&self, other: &Rule) -> bool {
        self.level == other.level && self.meaning == other.meaning
    }

    /// Whether it certainly matches nothing that `other` does not match. For commands that is certain only if both are the same:
    /// a rule with more literal words also matches more of what a wildcard excludes.
    pub fn is_within(&self, other: &Rule) -> bool {
        let within = match (&self.meaning, &other.meaning) {
            (Meaning::Path(access, pattern), Meaning::Path(about, around)) => {
                access == about && pattern.is_within(around)
            }
            _ => false,
        };
        self.level == other.level && (within || self.meaning == other.meaning)
    }

    /// Whether it is less strict than `farther` and may replace it: of rules on whole tools, only those of the nearest level
    /// count.
    pub fn takes_the_place_of(&self, farther: &Rule) -> bool {
        self.level > farther.level
            && self.decision < farther.decision
            && self.meaning.is_whole_tool()
            && farther.meaning.is_whole_tool()
    }

    /// Whether Claude Code gets this rule too: it has checks of its own for commands and files.
    pub fn is_shared(&self) -> bool {
        match &self.meaning {
            Meaning::Command(_) | Meaning::Path(..) => true,
            Meaning::Tool(name) => tools::find(name)
                .is_some_and(|tool| matches!(tool.takes, Takes::Command | Takes::Path(_))),
            Meaning::Tools(_) | Meaning::Host(_) | Meaning::Name { .. } => false,
        }
    }

    /// The rule for settings that belong to no directory.
    pub fn for_settings(&self, project: &Path) -> String {
        let (Meaning::Path(access, pattern), Some((_, rest))) =
            (&self.meaning, self.at.text.split_once('('))
        else {
            return self.at.text.clone();
        };
        let tool = match access {
            Access::Read => "Read",
            Access::Write => "Edit",
        };
        let specifier = rest.strip_suffix(')').unwrap_or(rest);
        format!("{tool}({})", pattern.for_settings(specifier, project))
    }
}

fn is_tool_of_server(rule: &str, called: &str) -> bool {
    let is_server = rule
        .strip_prefix("mcp__")
        .is_some_and(|server| !server.contains("__"));
    is_server
        && called
            .strip_prefix(rule)
            .is_some_and(|rest| rest.starts_with("__"))
}

fn whole_tool(name: &str, decision: Decision, dialect: Dialect) -> Result<Meaning, BadRule> {
    if name.contains('*') {
        return tool_glob(name, decision, dialect);
    }
    if name.starts_with("mcp__") {
        return mcp_tool(name);
    }
    match tools::find(name) {
        Some(_) => Ok(Meaning::Tool(name.to_owned())),
        None => unknown_tool(name),
    }
}

fn mcp_tool(name: &str) -> Result<Meaning, BadRule> {
    let parts: Vec<&str> = name.splitn(3, "__").collect();
    if parts[1..].iter().any(|part| part.is_empty()) {
        return bad(
            "an MCP tool is named `mcp__server__tool`",
            "name the server, and the tool or nothing behind it",
        );
    }
    Ok(Meaning::Tool(name.to_owned()))
}

/// A glob in `allow` must not match tools that nobody thought of: after a literal MCP server name it can't. In lists of tool
/// names it may also match built-in tools, but never the shell.
fn tool_glob(name: &str, decision: Decision, dialect: Dialect) -> Result<Meaning, BadRule> {
    let glob = Wildcard::new(name);
    if decision != Decision::Allow || names_one_server(&glob) {
        return Ok(Meaning::Tools(glob));
    }
    let reaches_mcp =
        "mcp__".starts_with(glob.literal_start()) || glob.literal_start().starts_with("mcp__");
    if dialect == Dialect::ToolLists && !reaches_mcp && !glob.matches("Bash") {
        return match tools::names().any(|tool| glob.matches(tool)) {
            true => Ok(Meaning::Tools(glob)),
            false => unknown_tool(name),
        };
    }
    bad(
        format!("`{name}` would allow tools that nobody named"),
        "name each tool, such as `Read`; a `*` may only follow a literal MCP server, such as `mcp__github__get_*`",
    )
}

fn names_one_server(glob: &Wildcard) -> bool {
    glob.literal_start()
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
        .is_some_and(|(server, _)| !server.is_empty())
}

fn unknown_tool<T>(name: &str) -> Result<T, BadRule> {
    let help = match nearest(name, tools::names()) {
        Some(close) => format!("did you mean `{close}`?"),
        None => "tools are named as Claude Code names them, such as `Bash`, `Read`, `Edit` or `mcp__server__tool`".to_owned(),
    };
    bad(format!("`{name}` is not a tool of Claude Code"), help)
}

fn specified(name: &str, specifier: &str, project: &Path) -> Result<Meaning, BadRule> {
    let Some(tool) = tools::find(name) else {
        return if name.starts_with("mcp__") {
            bad(
                "rules for MCP tools take no specifier",
                format!("write `{name}`"),
            )
        } else {
            unknown_tool(name)
        };
    };
    if let Some((key, _)) = specifier.split_once(':')
        && tool.keys.contains(&key)
    {
        return bad(
            format!("`{key}:` is not understood here"),
            format!(
                "a rule can't name a field of the input; write `{name}({})`",
                specifier[key.len() + 1..].trim_start()
            ),
        );
    }
    match tool.takes {
        Takes::Command if name == "Bash" => command(specifier),
        Takes::Path(access) => path(name, access, specifier, project),
        Takes::Host => host(specifier),
        Takes::Name { .. } => Ok(Meaning::Name {
            tool: tool.name,
            name: name_pattern(specifier),
        }),
        Takes::Command => bad(
            format!("`{name}` takes no specifier"),
            format!("`Bash({specifier})` covers it too"),
        ),
        Takes::Nothing => bad(
            format!("`{name}` takes no specifier"),
            format!("write `{name}`"),
        ),
    }
}

fn command(specifier: &str) -> Result<Meaning, BadRule> {
    if specifier.trim().is_empty() {
        return bad(
            "there is no command here",
            "write a command, such as `Bash(cargo test *)`",
        );
    }
    Ok(Meaning::Command(CommandPattern::new(specifier)))
}

fn path(name: &str, access: Access, specifier: &str, project: &Path) -> Result<Meaning, BadRule> {
    let right = match access {
        Access::Read => "Read",
        Access::Write => "Edit",
    };
    if name != right {
        return bad(
            format!("`{name}` takes no path"),
            format!(
                "`{right}({specifier})` covers every tool that works on files, including `{name}`"
            ),
        );
    }
    match PathPattern::parse(specifier, project) {
        Ok(pattern) => Ok(Meaning::Path(access, pattern)),
        Err(why) => Err(BadRule {
            label: why,
            help: None,
        }),
    }
}

fn host(specifier: &str) -> Result<Meaning, BadRule> {
    let Some(host) = specifier.strip_prefix("domain:") else {
        let host = host_of(specifier).unwrap_or_else(|| specifier.to_owned());
        return bad(
            "a host is written with `domain:`",
            format!("write `WebFetch(domain:{host})`"),
        );
    };
    match HostPattern::parse(host.trim()) {
        Ok(pattern) => Ok(Meaning::Host(pattern)),
        Err(why) => Err(BadRule {
            label: why,
            help: None,
        }),
    }
}

/// `name:*` and `name *` mean the same for skills as for commands, except that they do not match the name alone.
fn name_pattern(specifier: &str) -> Wildcard {
    Wildcard::new(specifier.trim())
}
