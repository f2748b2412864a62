//! The texts of Claude Code's screens that the reader searches for, each with the recorded versions that show it.
//!
//! `cargo test --test recordings vocabulary -- --nocapture` prints which text each recorded version shows, and fails if a row
//! says something else. A text that no supported version shows can be removed.

/// A text that the reader searches for on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phrase {
    /// The constant that it belongs to.
    pub group: &'static str,
    /// Upper and lower case do not count.
    pub text: &'static str,
    /// The first and the last recorded version that shows it, or [`NOWHERE`].
    pub seen: &'static str,
}

/// In [`Phrase::seen`]: no recording shows it.
pub const NOWHERE: &str = "nowhere";

/// Defines a constant for each entry, and the list of all phrases. `one` is a text, `any` a list of texts with one meaning, and
/// `named` a list of texts with a name for each.
macro_rules! vocabulary {
    (one {$($(#[$one_doc:meta])* $one:ident: $one_text:literal, $one_seen:expr;)*}
     any {$($(#[$any_doc:meta])* $any:ident: [$($any_text:literal, $any_seen:expr;)*])*}
     named {$($(#[$named_doc:meta])* $named:ident: [$($named_text:literal => $name:literal, $named_seen:expr;)*])*}
    ) => {
        $($(#[$one_doc])* pub(super) const $one: &str = $one_text;)*
        $($(#[$any_doc])* pub(super) const $any: &[&str] = &[$($any_text,)*];)*
        $($(#[$named_doc])* pub(super) const $named: &[(&str, &str)] = &[$(($named_text, $name),)*];)*

        /// All texts that the reader searches for.
        pub const PHRASES: &[Phrase] = &[
            $(Phrase { group: stringify!($one), text: $one_text, seen: $one_seen },)*
            $($(Phrase { group: stringify!($any), text: $any_text, seen: $any_seen },)*)*
            $($(Phrase { group: stringify!($named), text: $named_text, seen: $named_seen },)*)*
        ];
    };
}

vocabulary! {
    one {
        /// In the footer while Claude Code can be interrupted, that is while it works.
        INTERRUPTIBLE: "esc to interrupt", "2.0.42 to 2.1.328";
        /// The beginning of the shortcuts panel: `! for shell mode`, or `bash mode` in older versions.
        SHORTCUTS: "! for ", "2.0.42 to 2.1.325";
        /// In front of the footer in an editor's mode.
        INSERT_MODE: "-- INSERT -- ", NOWHERE;
        /// Below a question of the model.
        ENTER_TO_SELECT: "Enter to select", "2.0.42 to 2.1.328";
        /// How the question of a permission dialog begins.
        DO_YOU_WANT: "Do you want", "2.0.42 to 2.1.328";
        /// How it continues if it names the action.
        DO_YOU_WANT_TO: "Do you want to ", "2.0.42 to 2.1.328";
        /// The end of the paragraph above the choices of a plan.
        PROCEED: "Would you like to proceed?", "2.0.42 to 2.1.310";
        /// Above the text of a plan.
        PLAN_BEGINS: "Here is Claude's plan:", "2.0.42 to 2.1.310";
        /// How the paragraph above the choices of a plan begins.
        PLAN_READY: "Claude has written up a plan and is ready to execute.", "2.1.30 to 2.1.310";
        /// In the dialog about a plan that has no text.
        LEAVES_PLAN: "Claude wants to exit plan mode", "2.1.0 to 2.1.328";
        /// The title of the dialog for all other tools, which name themselves in the row below it.
        GENERIC_TITLE: "Tool use", "2.0.42 to 2.1.328";
        /// After the title if an agent has made the call.
        OF_AGENT: "· from the ", "2.1.235 to 2.1.325";
        /// How the title of a skill's dialog begins.
        USE_SKILL: "Use skill \"", "2.1.160 to 2.1.325";
        /// Marks a tool of an MCP server.
        OF_MCP: "(MCP)", "2.0.42 to 2.1.328";
        /// The beginning of the text about a tool, below the values of its call.
        ABOUT_TOOL: "About the ", "2.0.65 to 2.1.328";
        /// How a dialog shows a call of Grep, and one of Glob.
        SEARCH: "Search(", "2.0.42 to 2.1.328";
        /// Between the path of a file and the part of it that is to be read.
        PART_OF_FILE: " · ", "2.0.42 to 2.1.328";
        /// The part: `lines 10-14`.
        LINES_OF_FILE: "lines ", "2.0.42 to 2.1.325";
        /// The part: `from line 10`.
        REST_OF_FILE: "from line ", NOWHERE;
        /// The part: `pages 1-5`.
        PAGES_OF_FILE: "pages ", NOWHERE;
        /// Behind the query of a search: the only sites that are to be searched.
        ALLOWED_DOMAINS: ", only allowing domains: ", "2.1.104 to 2.1.231";
        /// Behind these: the sites that are not to be searched.
        BLOCKED_DOMAINS: ", blocking domains: ", NOWHERE;
        /// Below a command with an explanation.
        HIDE_EXPLANATION: "ctrl+e to hide", "2.1.160 to 2.1.210";
        /// In a dialog that omits lines.
        MORE_LINES: "more lines", NOWHERE;
        /// The choice to answer a question in a message.
        TALK_INSTEAD: "Chat about this", "2.1.12 to 2.1.328";
        /// The choice that ends the questions before a plan.
        SKIP_INTERVIEW: "Skip interview and plan immediately", NOWHERE;
        /// In the title of the question about an API key from the environment.
        API_KEY: "API key", "2.0.42 to 2.1.328";
        /// The no to that question.
        NO_API_KEY: "No (recommended)", "2.0.42 to 2.1.328";
        /// The no to the question whether the folder is trusted.
        NO_TRUST: "No, exit", "2.0.42 to 2.1.328";
        /// In a spinner: the request failed, and is sent again.
        RETRYING: "Retrying in", "2.0.76 to 2.1.328";
        /// In a spinner: the conversation is being compacted.
        COMPACTING: "compacting", "2.0.42 to 2.1.328";
        /// Below a call whose dialog is about to appear.
        WAITING_FOR_PERMISSION: "Waiting for permission…", "2.1.325 to 2.1.328";
        /// Below a call that was refused or cut off.
        INTERRUPTED_CALL: "Interrupted", "2.0.42 to 2.1.328";
        /// The beginning of a spinner that waits for agents.
        WAITING_FOR: "Waiting for ", "2.1.235 to 2.1.328";
        /// Below the last queued message.
        SEND_NOW: "ctrl+x ctrl+s to send now", "2.1.290 to 2.1.328";
        /// In front of that.
        QUEUED: "Queued · ", "2.1.327 to 2.1.328";
        /// In the upper rule of an input box that does not show the beginning of its draft: `─── ↑ 1 more ───`.
        MORE_ABOVE: " ↑ ", "2.1.100 to 2.1.328";
        /// At the right margin, right above the input box.
        NOT_LOGGED_IN: "Not logged in", "2.1.150 to 2.1.325";
        /// After the text of something that failed.
        BEHIND_ERROR: "· API Error", NOWHERE;
        /// At the end of the terminal's title, in the view of all agents.
        AGENTS_TITLE: "claude agents", "2.1.325 to 2.1.325";
    }
    any {
        /// The beginnings of the hints in an empty input box, for screens without any colour.
        HINTS: [
            "Try \"", "2.0.42 to 2.1.75";
            "Press up to edit", "2.0.42 to 2.1.328";
        ]
        /// The descriptions of keys. Searched only in the last rows of a screen without an input box.
        KEY_HINTS: [
            "esc to ", "2.0.42 to 2.1.328";
            "enter to ", "2.0.42 to 2.1.328";
            "ctrl+o to ", "2.0.42 to 2.1.328";
            "ctrl-o to ", NOWHERE;
            "←/→ to ", "2.1.140 to 2.1.325";
            "↑/↓ to ", "2.1.12 to 2.1.328";
            "space to ", "2.0.42 to 2.1.325";
            "to navigate", "2.0.42 to 2.1.328";
            "to go back", "2.1.113 to 2.1.325";
            "q to ", NOWHERE;
            "showing detailed transcript", "2.0.42 to 2.1.325";
        ]
        /// In a dialog whose value did not fit on the screen.
        CUT_NOTES: [
            "cannot be shown in full", "2.1.285 to 2.1.328";
            "can't be shown in full", NOWHERE;
        ]
        /// In a dialog about a command with invisible characters. Some versions omit these.
        UNSEEN_NOTES: [
            "Unicode whitespace", "2.1.160 to 2.1.325";
            "control characters", NOWHERE;
            "invisible format characters", NOWHERE;
        ]
        /// The beginning of the row below a notebook's path, which names the action.
        CELL_NOTES: [
            "Replace cell", "2.0.42 to 2.1.328";
            "Insert ", NOWHERE;
            "Delete cell", NOWHERE;
        ]
        /// Titles of the question whether to trust the folder.
        TRUST_TITLES: [
            "Accessing workspace", "2.1.20 to 2.1.328";
            "Do you trust", "2.0.42 to 2.1.12";
        ]
        /// Titles of the dialog about a plan.
        PLAN_TITLES: [
            "Ready to code?", "2.0.42 to 2.1.310";
            "Exit plan mode", "2.1.0 to 2.1.328";
        ]
        /// Below a plan if the gate has asked about it, around what the gate has said.
        PLAN_ASKED: [
            "Hook PreToolUse:ExitPlanMode requires confirmation for this tool:", NOWHERE;
            "/hooks to update", NOWHERE;
            "Permission rule ExitPlanMode requires confirmation for this tool.", NOWHERE;
            "/permissions to update rules", "2.0.65 to 2.1.290";
        ]
        /// In the labels of a dialog about a command.
        OF_COMMANDS: [
            "similar commands", "2.0.42 to 2.1.220";
            "ask again for: ", "2.1.50 to 2.1.328";
        ]
        /// The beginning of an error above the input box.
        ERRORS: [
            "API Error", "2.0.42 to 2.1.328";
            "Invalid API key", NOWHERE;
            "Please run /login", NOWHERE;
            "Not logged in", "2.1.150 to 2.1.325";
            "Login expired", NOWHERE;
            "You've hit your", NOWHERE;
            "Usage limit reached", NOWHERE;
            "OAuth token", NOWHERE;
        ]
        /// The row that submits a question with several choices; it has no number.
        BUTTONS: [
            "Submit", "2.0.42 to 2.1.328";
            "Next", "2.0.72 to 2.1.328";
        ]
        /// The choices on the review page of the model's questions.
        REVIEW: [
            "Submit answers", "2.0.42 to 2.1.328";
            "Cancel", "2.0.42 to 2.1.328";
        ]
        /// In the label of an option that says more than yes to one call.
        WIDENS: [
            "don't ask", "2.0.42 to 2.1.328";
            "don’t ask", "2.1.50 to 2.1.328";
            "allow all", "2.0.42 to 2.1.220";
            "auto mode", "2.1.113 to 2.1.328";
            "auto-accept", "2.0.42 to 2.1.328";
            "accept edits", "2.0.42 to 2.1.328";
            "auto-approve", "2.1.235 to 2.1.328";
            "bypass", NOWHERE;
            "always", "2.1.20 to 2.1.325";
            "this session", "2.0.42 to 2.1.328";
            "allow reading", "2.0.42 to 2.1.328";
            "allow access", "2.1.20 to 2.1.325";
        ]
        /// The modes that a yes to a plan switches to, and that ask each time.
        ASKING_MODES: [
            "default (ask each time)", "2.1.290 to 2.1.328";
            "manual (ask each time)", NOWHERE;
        ]
    }
    named {
        /// The permission mode in the footer, and Claude Code's own name for it.
        MODES: [
            "manual mode on" => "manual", "2.1.210 to 2.1.328";
            "auto mode on" => "auto", "2.1.165 to 2.1.325";
            "plan mode on" => "plan", "2.0.42 to 2.1.328";
            "accept edits on" => "acceptEdits", "2.1.165 to 2.1.325";
            "auto-accept edits on" => "acceptEdits", NOWHERE;
            "bypass permissions on" => "bypassPermissions", NOWHERE;
            "don't ask on" => "dontAsk", NOWHERE;
        ]
        /// Titles of permission dialogs, with their tools.
        TITLES: [
            "Bash command" => "Bash", "2.0.42 to 2.1.328";
            "PowerShell command" => "PowerShell", NOWHERE;
            "Edit file" => "Edit", "2.0.42 to 2.1.328";
            "Create file" => "Write", "2.0.42 to 2.1.328";
            "Write file" => "Write", NOWHERE;
            "Overwrite file" => "Write", NOWHERE;
            "Edit notebook" => "NotebookEdit", "2.0.42 to 2.1.328";
            "Read file" => "Read", "2.0.42 to 2.1.328";
            "Read files" => "Read", NOWHERE;
            "Search files" => "Grep", NOWHERE;
            "Fetch" => "WebFetch", "2.0.42 to 2.1.328";
            "Web search" => "WebSearch", "2.0.42 to 2.1.328";
        ]
        /// How the questions of some dialogs continue after `Do you want to `, with their tools.
        QUESTIONS: [
            "create " => "Write", "2.0.42 to 2.1.328";
            "overwrite " => "Write", NOWHERE;
            "make this edit to " => "Edit", "2.0.42 to 2.1.328";
            "allow Claude to fetch " => "WebFetch", "2.0.42 to 2.1.328";
        ]
        /// How a dialog shows a call, with its tool.
        CALLS: [
            "Read(" => "Read", "2.0.42 to 2.1.328";
            "Web Search(" => "WebSearch", "2.0.42 to 2.1.328";
            "Search(" => "Grep", "2.0.42 to 2.1.328";
            "Glob(" => "Glob", NOWHERE;
            "Grep(" => "Grep", NOWHERE;
            "List(" => "LS", NOWHERE;
            "Task(" => "Task", "2.0.42 to 2.1.50";
            "Agent(" => "Agent", "2.1.75 to 2.1.328";
            "Skill(" => "Skill", "2.1.160 to 2.1.325";
        ]
    }
}
