use super::*;
use super::by_connection as answer;

request! {
    /// Answers once, then the connection is the live terminal of a slot or session: frames instead of lines.
    Attach = "attach", AttachParams => AttachAnswer;
    access: PersonOnly;
    names: Either;
}
